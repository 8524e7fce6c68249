#!/usr/bin/env python3
"""Breaks one place of a source at a time and expects its tests to fail: a measure of how much the tests notice.

usage: tools/mutate.py BUILD [--sample N] [--seed S] [--only PART] [--out FILE]

BUILD is a build folder in which the test programs of TARGETS are built; nothing in it is changed. Every mutant is compiled
from a copy of its source and linked before the library, so it takes the place of the original. N mutants are drawn from
all possible ones, the same for the same seed; --only takes the sources whose path holds PART.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# What is broken, and the tests that must notice.
TARGETS = {
    "src/data/metrics.cc": ["test_metrics"],
    "src/ops/reference_losses.cc": ["test_ops"],
    "src/ops/cpu_losses.cc": ["test_engines"],
    "src/data/folds.cc": ["test_folds", "test_mechanism", "test_protocol"],
    "src/data/folds_file.cc": ["test_folds_file", "test_folds"],
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
    def __init__(self, folder, root):
        self.folder, self.root = folder, root
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {str(Path(entry["file"]).relative_to(root)): entry["command"]
                        for entry in commands if entry["file"].startswith(f"{root}/src/")}
        self.link = {}

    def compile_command(self, source, path, out):
        words = shlex.split(self.compile[source])
        words = words[next(k for k, word in enumerate(words) if re.search(r"(c|g|clang)\+\+(-\d+)?$", word)):]
        words[words.index("-o") + 1] = str(out)
        words[words.index("-c") + 1] = str(path)
        for flag in ("-MD", "-Werror"):
            if flag in words:
                words.remove(flag)
        for flag in ("-MT", "-MF"):
            if flag in words:
                at = words.index(flag)
                del words[at:at + 2]
        return words + ["-w", "-O1", "-I", str((self.root / source).parent)]

    def link_command(self, test, extra, out):
        if test not in self.link:
            said = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "-s", f"tests/{test}"], check=True,
                                  capture_output=True, text=True).stdout.strip().split("\n")[-1]
            self.link[test] = said.removeprefix(": && ").split(" && ")[0]
        words = shlex.split(self.link[test])
        words[words.index("-o") + 1] = str(out)
        first = next(k for k, word in enumerate(words) if word.endswith(".o"))
        return words[:first] + [str(extra)] + words[first:]


def passes(program, limit):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run([program, "--gtest_fail_fast", "--gtest_brief=1"], cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=limit).returncode == 0
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
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a test program hangs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="what happened to every mutant, as JSON lines")
    given = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    build = Build(given.build.resolve(), root)
    everything = [mutant for source in TARGETS if given.only in source
                  for mutant in mutants(source, (root / source).read_text())]
    for test in sorted({test for mutant in everything for test in TARGETS[mutant["source"]]}):
        if not passes(build.folder / "tests" / test, given.limit):
            raise SystemExit(f"{test} fails without any mutant")
    # Rules are not equally frequent: shuffle, and go on until enough mutants have compiled.
    random.Random(given.seed).shuffle(everything)
    counts, survivors, told = {}, [], []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for mutant, fate in zip(everything[:given.sample], pool.map(lambda m: judge(build, m, given.limit),
                                                                   everything[:given.sample])):
            by_fate = counts.setdefault(mutant["source"], {"killed": 0, "survived": 0, "invalid": 0})
            by_fate[fate] += 1
            told.append({"fate": fate, **{key: mutant[key] for key in ("source", "line", "was", "is")}})
            if fate == "survived":
                survivors.append(mutant)
                print(f"{mutant['source']}:{mutant['line']}\n  was {mutant['was']}\n  is  {mutant['is']}", flush=True)
    print(f"\n{len(everything)} mutants are possible, {min(given.sample, len(everything))} were drawn (seed {given.seed})")
    total = {fate: sum(by_fate[fate] for by_fate in counts.values()) for fate in ("killed", "survived", "invalid")}
    for source, by_fate in sorted(counts.items()) + [("all", total)]:
        valid = by_fate["killed"] + by_fate["survived"]
        share = f"{100 * by_fate['killed'] / valid:.0f} %" if valid else "-"
        print(f"{source:36} {by_fate['killed']:4} of {valid:4} killed, {share:>5}   ({by_fate['invalid']} do not compile)")
    if given.out:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
