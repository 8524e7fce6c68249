#!/usr/bin/python3
"""Whether bf16 products learn as f32 ones do: trains with several seeds in both precisions and compares the validation
curves with the spread from seed to seed.

usage: bench/precision.py PROGRAM OUT [--seeds N] [--only NAME[,NAME]] [--svg FILE]

PROGRAM is the lacuna program. OUT keeps what each run printed; runs that are there are not repeated. The data are those of
../shared/data; gaps (half of the views, half of the labels) and splits are drawn by the program.
"""
import argparse
import html
import json
import os
import statistics
import subprocess

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "data")
CASES = {  # name: data set, preset, epochs
    "emotions": ("emotions/emotions.mat", "best", 0),
    "yeast": ("yeast/yeast.mat", "best", 0),
    "corel5k": ("corel5k/corel5k_six_view.mat", "best", 50),
    "emotions-repaired": ("emotions/emotions.mat", "repaired", 60),
    "yeast-repaired": ("yeast/yeast.mat", "repaired", 60),
}
PRECISIONS = {"f32": "#4477aa", "bf16": "#ee6677"}
RANGES = 4  # of epochs, in the table


def curve(program, out, name, seed, precision):
    """[(epoch, AP on validation)] of one run."""
    data, preset, epochs = CASES[name]
    data = os.path.join(DATA, data)
    result = os.path.join(out, f"{name}-{precision}-{seed}.json")
    if not os.path.exists(result):
        folds = os.path.join(out, f"{name.split('-')[0]}-folds.npz")
        if not os.path.exists(folds):
            subprocess.run([program, "data", "mask", data, folds, "--repeats", "1", "--seed", "1"], check=True,
                           stdout=subprocess.DEVNULL)
        command = [program, "train", data, "--folds", folds, "--preset", preset, "--precision", precision, "--seed", str(seed),
                   "--set", "validate-every=1", "--patience", "0", "--quiet", "--json", "--out", os.path.join(out, "model.safetensors")]
        if epochs:
            command += ["--epochs", str(epochs)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        with open(result + ".tmp", "w", encoding="utf-8") as file:
            file.write(printed)
        os.replace(result + ".tmp", result)
    with open(result, encoding="utf-8") as file:
        history = json.load(file)["history"]
    return [(point["epoch"], point["validation"]["AP"]) for point in history if point.get("validation")]


def table(name, curves):
    """A line for each range of epochs and one for the best epoch: means, their difference, the spread from seed to seed."""
    epochs = len(curves["f32"][0])
    parts = [(epochs * part // RANGES, epochs * (part + 1) // RANGES) for part in range(RANGES)]
    levels = [(f"{curves['f32'][0][begin][0]}-{curves['f32'][0][end - 1][0]}",
               lambda run, begin=begin, end=end: statistics.mean(ap for _, ap in run[begin:end])) for begin, end in parts]
    lines = []
    for label, level in levels + [("best epoch", lambda run: max(ap for _, ap in run))]:
        values = {precision: [level(run) for run in runs] for precision, runs in curves.items()}
        mean = {precision: statistics.mean(of_seeds) for precision, of_seeds in values.items()}
        spread = (sum(statistics.variance(of_seeds) for of_seeds in values.values()) / len(values)) ** .5
        lines.append(f"| {name} | {label} | {mean['f32']:.4f} | {mean['bf16']:.4f} | {mean['bf16'] - mean['f32']:+.4f} | {spread:.4f} |")
    return lines


def picture(all_curves):
    width, height, gap = 260, 190, 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{len(all_curves) * (width + gap) + 20}" height="{height + 75}" '
           'font-family="sans-serif" font-size="12">']
    for k, (name, curves) in enumerate(all_curves.items()):
        left, top = gap + k * (width + gap), 30
        points = [point for runs in curves.values() for run in runs for point in run]
        last = max(epoch for epoch, _ in points)
        low, high = min(ap for _, ap in points), max(ap for _, ap in points)
        out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#bbbbbb"/>')
        out.append(f'<text x="{left + width / 2}" y="{top - 10}" text-anchor="middle">{html.escape(name)}</text>')
        for value, y in ((high, top + 10), (low, top + height)):
            out.append(f'<text x="{left - 5}" y="{y}" text-anchor="end">{value:.2f}</text>')
        out.append(f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">epoch {last}</text>')
        for precision, runs in curves.items():
            for run in runs:
                line = " ".join(f"{left + width * epoch / last:.1f},{top + height * (high - ap) / (high - low):.1f}" for epoch, ap in run)
                out.append(f'<polyline points="{line}" fill="none" stroke="{PRECISIONS[precision]}" stroke-width="1" opacity=".7"/>')
    for k, (precision, colour) in enumerate(PRECISIONS.items()):
        x, y = gap + k * 80, height + 60
        out.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="{y}">{precision}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--svg")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    all_curves = {}
    print("| data, preset | epochs | AP f32 | AP bf16 | difference | spread of seeds |\n|---|---|---|---|---|---|")
    for name in arguments.only.split(","):
        all_curves[name] = {precision: [curve(arguments.program, arguments.out, name, seed, precision)
                                        for seed in range(1, arguments.seeds + 1)] for precision in PRECISIONS}
        print("\n".join(table(f"{name.split('-')[0]}, {CASES[name][1]}", all_curves[name])), flush=True)
    if arguments.svg:
        with open(arguments.svg, "w", encoding="utf-8") as file:
            file.write(picture(all_curves))


main()
