#!/usr/bin/env python3
"""Breaks one place of a source at a time and expects its tests to fail: a measure of how much the tests notice.

usage: tools/mutate.py BUILD [--sample N] [--seed S] [--only PART] [--seconds S] [--compiler C] [--again FILE] [--out FILE]
       tools/mutate.py BUILD --pack FOLDER

BUILD is a build folder in which the test programs of TARGETS are built; nothing in it is changed. Every mutant is compiled
alone, without optimisation, and linked before the library, so that it takes the place of the original. N mutants of each source
are drawn from all possible ones, the same for the same seed; --only takes the sources whose path holds PART. After --seconds no
mutant is begun: sources take turns, so that each has about as many.

Where the program reads a place too far, only a build under sanitizers notices: --again takes the survivors of FILE, an --out of
before, and judges them in another BUILD.

--pack gathers what another machine with g++ and Python needs, and no more: there, FOLDER/mutate.py FOLDER does the same.
"""
import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What is broken, and the tests that must notice.
TARGETS = {
    "src/data/metrics.cc": ["test_metrics"],
    "src/ops/reference_losses.cc": ["test_ops", "test_engines"],
    "src/ops/cpu_losses.cc": ["test_engines", "test_ops"],
    "src/data/folds.cc": ["test_folds", "test_folds_file", "test_mechanism", "test_protocol"],
    "src/data/protocol.cc": ["test_protocol"],
    "src/data/rates.cc": ["test_folds"],
    "src/data/mechanism.cc": ["test_mechanism", "test_folds"],
    "src/data/stratify.cc": ["test_folds"],
    "src/experiments/statistics.cc": ["test_statistics"],
    "src/experiments/distributions.cc": ["test_statistics"],
}

# Patterns and what takes their place. Operators of templates and declarations are told by the blanks around them.
RULES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" < ", " > "),
    (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "),
    (r" \+= ", " -= "), (r" -= ", " += "), (r" \*= ", " /= "), (r" /= ", " *= "),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bcontinue;", "break;"), (r"\bbreak;", "continue;"),
    (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"), (r"(?<![\w.])2(?![\w.])", "3"),
    (r"(?<![\w.])\.5\b", ".25"), (r"\bif \((.*)\) (?=\S)", r"if (!(\1)) "),
    (r"^(\s+)(?!return|const|auto|case|using|if|for|else|std::size_t|double|float|bool|static|constexpr)(\w[^{}]*;)$", r"\1;"),
]


def code_lines(text):
    """Numbers of the lines that hold statements: no comments, includes, assertions, declarations of names alone."""
    for number, line in enumerate(text.split("\n")):
        code = line.split("//")[0].rstrip()
        if not line.startswith(" ") or not code.strip() or "assert(" in code or re.match(r"\s*(template|using|#)", code):
            continue
        yield number, code


def mutants(source, text):
    lines = text.split("\n")
    for number, code in code_lines(text):
        for pattern, instead in RULES:
            for match in re.finditer(pattern, code):
                if code[:match.start()].count('"') % 2:
                    continue  # inside a text
                broken = code[:match.start()] + match.expand(instead) + code[match.end():]
                yield {"source": source, "line": number + 1, "was": lines[number].strip(), "is": broken.strip(),
                       "text": "\n".join(lines[:number] + [broken] + lines[number + 1:])}


class Build:
    """How sources are compiled and tests are linked: read from a build folder, or from what --pack wrote."""

    def __init__(self, folder, compiler=None):
        self.folder, self.packed = folder, (folder / "commands.json").exists()
        self.root = folder if self.packed else Path(__file__).resolve().parent.parent
        if self.packed:
            self.__dict__.update(json.loads((folder / "commands.json").read_text()))
            return
        entries = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {source: self.plain(next(entry["command"] for entry in entries if self.compiles(entry["file"], source)))
                        for source in TARGETS}
        if compiler:
            self.compile = {source: [compiler, *words[1:]] for source, words in self.compile.items()}
        self.link = {test: self.link_words(test) for test in sorted({test for tests in TARGETS.values() for test in tests})}

    @staticmethod
    def compiles(file, source):
        """Sources of one module are compiled with the same command line, alone or several together."""
        return file.endswith(source) or f"/unity_{Path(source).parent.name}_" in file

    @staticmethod
    def from_compiler(words):
        """Without what is started before the compiler, such as a cache."""
        return words[next(k for k, word in enumerate(words) if re.search(r"(c|g|clang)\+\+(-\d+)?$", word)):]

    @staticmethod
    def plain(command):
        words = Build.from_compiler(shlex.split(command))
        for flag in ("-o", "-c", "-MT", "-MF"):
            if flag in words:
                at = words.index(flag)
                del words[at:at + 2]
        return [word for word in words if word not in ("-MD", "-Werror") and not word.startswith(("-W", "-O"))] + ["-w", "-O0"]

    def link_words(self, test):
        said = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "-s", f"tests/{test}"], check=True,
                              capture_output=True, text=True).stdout.strip().split("\n")[-1]
        words = self.from_compiler(shlex.split(said.removeprefix(": && ").split(" && ")[0]))
        at = words.index("-o")
        return words[:at] + words[at + 2:]

    def compile_command(self, source, path, out):
        return self.compile[source] + ["-I", str((self.root / source).parent), "-o", str(out), "-c", str(path)]

    def link_command(self, test, extra, out):
        """Where several sources are compiled in one, the mutant's functions are there twice; the first are taken."""
        words = self.link[test]
        return [words[0], str(extra)] + words[1:] + ["-Wl,--allow-multiple-definition", "-o", str(out)]

    def pack(self, to):
        """Sources, headers, objects and libraries under one folder, with commands that name them there."""
        def take(path, where):
            path = Path(path) if Path(path).is_absolute() else self.folder / path
            (to / where).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to / where / path.name)
            return f"{where}/{path.name}"

        for header in [*self.root.glob("src/*/*.h"), *(self.root / source for source in TARGETS)]:
            take(header, str(header.parent.relative_to(self.root)))
        system = Path("/usr/include")
        for folder in ("fmt", "nlohmann"):
            shutil.copytree(system / folder, to / "include" / folder, dirs_exist_ok=True)
        compile_words = {source: ["g++", *(word for word in words[1:] if not re.match(r"-I|-isystem|/", word)), "-I", "src", "-isystem", "include"]
                         for source, words in self.compile.items()}
        link = {}
        for test, words in self.link.items():
            link[test] = ["g++"]
            for word in words[1:]:
                if word.endswith((".o", ".a")):
                    word = take(word, f"objects/{test}" if word.endswith(".o") else "libraries")
                elif re.search(r"/lib(fmt|z)\.so", word):
                    word = take(Path(word).resolve(), "libraries")
                    library = re.search(r"\S*\.so\.\d+", word).group()
                    shutil.copy(to / word, to / library)
                elif ".so" in word or word.startswith(("-Wl,-rpath", "-fuse-ld", "-B")):
                    continue  # of HDF5 and MATLAB files, which no test of TARGETS reads; another linker
                link[test].append(word)
            link[test] += ["-no-pie", "-Wl,--unresolved-symbols=ignore-all"]
        shutil.copy(__file__, to / "mutate.py")
        (to / "commands.json").write_text(json.dumps({"compile": compile_words, "link": link}, indent=1))


def passes(program, limit):
    """False also where it takes more than `limit` processor seconds, on however busy a machine, or sleeps for long."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            # Tests of whole programs start one that has no mutant.
            return subprocess.run([program, "--gtest_fail_fast", "--gtest_brief=1", "--gtest_filter=-*Program*"], cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=60 + 60 * limit,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def judge(build, mutant, limit):
    """'killed', 'survived', or 'invalid' where it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        source = folder / Path(mutant["source"]).name
        source.write_text(mutant["text"])
        out = folder / "mutant.o"
        if subprocess.run(build.compile_command(mutant["source"], source, out), cwd=build.folder,
                          capture_output=True).returncode != 0:
            return "invalid"
        for test in TARGETS[mutant["source"]]:
            program = folder / test
            linked = subprocess.run(build.link_command(test, out, program), cwd=build.folder, capture_output=True, text=True)
            if linked.returncode != 0:
                raise SystemExit(f"{test} does not link:\n{linked.stderr}")
            if not passes(program, limit):
                return "killed"
            program.unlink()
    return "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--sample", type=int, default=50, help="mutants of each source")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=20, help="processor seconds after which a test program hangs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no mutant is begun after them")
    parser.add_argument("--compiler", help="for mutants, instead of the build's: clang++ takes half of g++'s time")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only the mutants that survived there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="what happened to every mutant, as JSON lines")
    parser.add_argument("--pack", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    build = Build(given.build.resolve(), given.compiler)
    if given.pack:
        build.pack(given.pack)
        return 0
    texts = {source: (build.root / source).read_text() for source in TARGETS if given.only in source}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        fates = pool.map(lambda source: judge(build, {"source": source, "text": texts[source]}, given.limit), texts)
        failing = [source for source, fate in zip(texts, fates) if fate != "survived"]
    if failing:
        raise SystemExit(f"the tests fail without any mutant: {', '.join(failing)}")
    drawn, possible, again = [], {}, None
    if given.again:
        known = map(json.loads, given.again.read_text().splitlines())
        again = {(mutant["source"], mutant["line"], mutant["is"]) for mutant in known if mutant["fate"] == "survived"}
    for source, text in texts.items():
        everything = list(mutants(source, text))
        possible[source] = len(everything)
        random.Random(given.seed).shuffle(everything)
        if again is not None:
            everything = [mutant for mutant in everything if (source, mutant["line"], mutant["is"]) in again]
        drawn += enumerate(everything[:given.sample])
    drawn = [mutant for _, mutant in sorted(drawn, key=lambda ranked: ranked[0])]
    end = time.monotonic() + given.seconds
    counts = {source: {"killed": 0, "survived": 0, "invalid": 0} for source in possible}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool, open(given.out or os.devnull, "w") as out:
        for mutant, fate in zip(drawn, pool.map(lambda m: judge(build, m, given.limit) if time.monotonic() < end else None, drawn)):
            if fate is None:
                continue
            counts[mutant["source"]][fate] += 1
            print(json.dumps({"fate": fate, **{key: mutant[key] for key in ("source", "line", "was", "is")}}), file=out, flush=True)
            if fate == "survived":
                print(f"{mutant['source']}:{mutant['line']}\n  was {mutant['was']}\n  is  {mutant['is']}", flush=True)
    total = {fate: sum(by_fate[fate] for by_fate in counts.values()) for fate in ("killed", "survived", "invalid")}
    print(f"\n| source | possible | drawn (seed {given.seed}) | do not compile | killed | share |\n|---|---|---|---|---|---|")
    for source, by_fate in [*counts.items(), ("all", total)]:
        valid = by_fate["killed"] + by_fate["survived"]
        share = f"{100 * by_fate['killed'] / valid:.0f} %" if valid else "-"
        print(f"| {source} | {possible.get(source, sum(possible.values()))} | {valid + by_fate['invalid']} | {by_fate['invalid']} | "
              f"{by_fate['killed']} of {valid} | {share} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
