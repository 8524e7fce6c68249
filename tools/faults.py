#!/usr/bin/env python3
"""Kills, full disks, injected errors and memory limits, over training, experiments, conversion and tuning.

usage: tools/faults.py LACUNA [--kills N] [--full N] [--injected N] [--memory N] [--jobs J] [--seed S] [--seconds T] [--preload SO] [--out FILE]

Every subject is a command that can be started again. It runs undisturbed once; that gives the bytes that all others must
reach. After T seconds no new round begins, and the table tells what was done. A round disturbs the command several times, looks after each disturbance whether the result is either absent or
whole, byte by byte, and runs the command to its end. A disturbance must not end the program by a signal of its own (a crash); only kill -9 may.
SO is tests/faulty_writes.c, compiled. Full disks are small tmpfs mounts, or a limit of file sizes where mounting is forbidden.
"""
import argparse
import concurrent.futures
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SMALL = ["--epochs", "12", "--checkpoint-every", "0", "--threads", "1", "--quiet"]
NETWORKS = {"lacuna": ["best", "paired", "distilled", "auto"], "mtd": ["repaired", "authors", "paper"],
            "dicnet": ["default", "original", "semi"], "c2ae": ["default", "original"]}
TINY = {"lacuna": ["--encoder-widths", "6", "--embedding", "6"], "mtd": ["--width", ".02", "--embedding", "4"]}


class Subject:
    """A command, where its result lies, and which of its bytes may not depend on interruptions."""

    def __init__(self, name, command, files):
        self.name, self.command, self.files = name, command, files

    def result(self, folder):
        found = {}
        for path in sorted(p for pattern in self.files for p in folder.glob(pattern)):
            if not path.parent.name.startswith("."):  # a cell that is being written has a hidden folder
                found[str(path.relative_to(folder))] = path.read_bytes()
        return found


def subjects(lacuna, data):
    def train(method, preset=None):
        more = ["--preset", preset] if preset else []
        small = SMALL if method in NETWORKS else ["--checkpoint-every", "0", "--threads", "1", "--quiet"]
        if method == "lacuna" and preset != "auto":
            more += ["--members", "2" if preset == "distilled" else "1"]
        return Subject(f"train {method} {preset or ''}".strip(),
                       [lacuna, "train", data, "--out", "m.safetensors", "--method", method, "--resume", *more,
                        *TINY.get(method, []), *small], ["m.safetensors"])

    return [
        *(train(method, preset) for method, presets in NETWORKS.items() for preset in presets), train("naim3l"), train("glocal"),
        Subject("convert npz", [lacuna, "data", "convert", data, "m.npz"], ["m.npz"]),
        Subject("convert native", [lacuna, "data", "convert", data, "native"], ["native/*"]),
        Subject("tune", [lacuna, "tune", data, "--out", "tuned", "--method", "naim3l", "--trials", "4", "--threads", "1"],
                ["tuned/best.safetensors"]),
        Subject("bench", [lacuna, "bench", "table", "--data", data, "--out", "bench", "--methods", "prior,naim3l,mtd", "--repeats", "2",
                          "--threads", "1", "--set", "mtd.width=.02", "--set", "mtd.embedding=4", "--set", "mtd.epochs=4"],
                ["bench/cells/*/result.json"]),
    ]


class Round:
    def __init__(self, subject, whole, seconds, rng, options):
        self.subject, self.whole, self.seconds, self.rng, self.options = subject, whole, seconds, rng, options
        self.problems = []

    def start(self, folder, environment=None, limits=None):
        command = list(self.subject.command)
        if self.subject.name == "bench" and (folder / "bench/experiments").exists():
            command += ["--resume", "--retry-failed"]  # cells that lacked memory are kept as failed

        def prepare():
            for what, value in (limits or {}).items():
                resource.setrlimit(what, (value, value))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        log = open(folder.parent / (folder.name + ".log"), "wb")
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **(environment or {})},
                                preexec_fn=prepare, start_new_session=True)

    def said(self, folder):
        return (folder.parent / (folder.name + ".log")).read_text(errors="replace")[-400:]

    def look(self, folder, when):
        """Every file that is there is whole: the undisturbed run's, to the byte."""
        for name, content in self.subject.result(folder).items():
            if name.startswith("native/"):
                continue  # a folder is written part by part, and is one when its dataset.toml is there
            if content != self.whole.get(name):
                self.problems.append(f"{self.subject.name}: {name} is not whole {when}")

    def finish(self, folder):
        process = self.start(folder)
        if process.wait() != 0:
            self.problems.append(f"{self.subject.name}: ended with {process.returncode} afterwards: {self.said(folder)}")
        elif self.subject.result(folder) != self.whole:
            self.problems.append(f"{self.subject.name}: other bytes afterwards")

    def ended_well(self, process, folder, what):
        if process.returncode < 0:
            self.problems.append(f"{self.subject.name}: signal {-process.returncode} under {what}: {self.said(folder)}")
        elif process.returncode > 0 and not self.said(folder).strip():
            self.problems.append(f"{self.subject.name}: no message under {what}")

    def kill(self, folder, times):
        done = 0
        for _ in range(20 * times):
            process = self.start(folder)
            time.sleep(self.rng.uniform(0, .8) * self.seconds)
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            killed = process.wait() == -signal.SIGKILL
            self.look(folder, "after kill -9")
            done += killed
            if done == times:
                break
            if not killed:  # it was faster: once more from the beginning
                shutil.rmtree(folder)
                folder.mkdir()
        self.finish(folder)
        return done

    def inject(self, folder, times):
        for _ in range(times):
            fault = self.rng.choice(["ENOSPC", "EIO", "short"])
            at = self.rng.choice([1, 2, 3, self.rng.randint(1, 40)])
            process = self.start(folder, {"LD_PRELOAD": self.options.preload, "FAULT": fault, "AT": str(at)})
            process.wait()
            self.ended_well(process, folder, f"{fault} at write {at}")
            self.look(folder, f"after {fault} at write {at}")
        self.finish(folder)
        return times

    def limit_memory(self, folder, times):
        for _ in range(times):
            megabytes = int(8 * 2 ** self.rng.uniform(0, 6))
            process = self.start(folder, limits={resource.RLIMIT_AS: megabytes << 20})
            process.wait()
            # Where not even the program itself fits, the kernel or the loader ends it.
            if process.returncode != -signal.SIGKILL and megabytes > 64:
                self.ended_well(process, folder, f"{megabytes} MB of memory")
            self.look(folder, f"after {megabytes} MB of memory")
        self.finish(folder)
        return times

    def fill_disk(self, folder, times):
        size = max(sum(map(len, self.whole.values())), 4096)
        for k in range(times):
            room = int(size * self.rng.uniform(.05, 1.5)) + 4096
            small = folder / "small"
            small.mkdir(exist_ok=True)
            mounted = subprocess.call(["mount", "-t", "tmpfs", "-o", f"size={room}", "none", str(small)], stderr=subprocess.DEVNULL) == 0
            inner = small if mounted else folder
            process = self.start(inner if mounted else folder, limits={} if mounted else {resource.RLIMIT_FSIZE: room})
            process.wait()
            self.ended_well(process, inner, "a full disk")
            self.look(inner, "after a full disk")
            if mounted:
                subprocess.check_call(["umount", str(small)])
        self.finish(folder)
        return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lacuna")
    for name in ("kills", "full", "injected", "memory"):
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--preload", default="")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.injected and not options.preload:
        parser.error("--injected needs --preload")
    options.preload = os.path.abspath(options.preload)
    work = Path(tempfile.mkdtemp(prefix="lacuna-faults-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    lacuna, data = os.path.abspath(options.lacuna), str(work / "data.npz")
    subprocess.check_call([lacuna, "data", "simulate", data, "--rows", "90", "--views", "2", "--labels", "4", "--sizes", "7,5",
                           "--seed", "3"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    plan = []
    rng = random.Random(options.seed)
    for subject in subjects(lacuna, data):
        folder = work / ("whole " + subject.name)
        folder.mkdir()
        begun = time.time()
        first = Round(subject, {}, 1, rng, options)
        if first.start(folder).wait() != 0:
            raise SystemExit(f"{subject.name} fails undisturbed: {first.said(folder)}")
        plan.append((subject, subject.result(folder), time.time() - begun))
        if not plan[-1][1]:
            raise SystemExit(f"{subject.name} left nothing to compare")
    kinds = [("kill -9", options.kills, Round.kill), ("full disk", options.full, Round.fill_disk),
             ("ENOSPC, EIO, short writes", options.injected, Round.inject), ("memory limit", options.memory, Round.limit_memory)]
    tasks, deadline = [], time.time() + options.seconds
    for kind, wanted, how in kinds:
        while wanted > 0:
            for subject, whole, seconds in plan:
                times = min(wanted, 5)
                if times > 0:
                    tasks.append((kind, how, subject, whole, seconds, times, rng.random()))
                    wanted -= times

    rng.shuffle(tasks)

    def work_off(task):
        kind, how, subject, whole, seconds, times, seed = task
        if time.time() > deadline:
            return kind, subject.name, 0, []
        folder = Path(tempfile.mkdtemp(dir=work))
        one = Round(subject, whole, seconds, random.Random(seed), options)
        done = how(one, folder, times)
        shutil.rmtree(folder, ignore_errors=True)
        return kind, subject.name, done, one.problems

    counts, problems, rounds = Counter(), [], Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for kind, name, done, found in pool.map(work_off, tasks):
            counts[kind, name] += done
            rounds[kind] += done > 0
            problems += [f"{kind}: {p}" for p in found]
    shutil.rmtree(work, ignore_errors=True)
    print("| fault | times | commands | rounds that ended in the same bytes |\n|---|---|---|---|")
    for kind, wanted, _ in kinds:
        bad = len({p.split(":")[1] for p in problems if p.startswith(kind)})
        total = sum(n for (k, _), n in counts.items() if k == kind)
        if wanted:
            print(f"| {kind} | {total} of {wanted} | {len({n for k, n in counts if k == kind})} | {rounds[kind]}, {bad} commands with problems |")
    for problem, times in Counter(problems).most_common(40):
        print(f"{times} x {problem}")
    if options.out:
        Path(options.out).write_text(json.dumps({"counts": {f"{k}/{n}": v for (k, n), v in counts.items()}, "problems": problems}, indent=1))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
