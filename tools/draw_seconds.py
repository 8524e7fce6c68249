"""Draws validation AP against seconds of training, as an SVG on standard output.

    python3 tools/draw_seconds.py "authors=authors.history.json@11.3" "best=best.history.json@0.5" "three=150:0.535"

NAME=FILE@S is a curve: FILE is the MODEL.history.json of a training, S its seconds an epoch on the machine that the
picture speaks of (without @S the seconds that the history itself holds). A training gives the same bits on a busy and
on a quiet machine, its seconds are those of the machine. NAME=SECONDS:AP is a single point, for an ensemble, whose AP
exists only at the end. Both axes are labelled at the curves; colours follow the reader's light or dark setting.
"""
import json
import math
import sys

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 140, 34, 46
# Two sets of the same hues, for a white and for a dark page.
COLOURS = [("#b5482b", "#f0916f"), ("#1f6fb4", "#7cbcf0"), ("#2e7d32", "#86cf8a"), ("#7b4ea3", "#c7a3ea")]
STYLE = """<style>
  svg { background: #fff; font: 13px system-ui, sans-serif; }
  text { fill: #222; } .grid { stroke: #ddd; } .note { fill: #555; font-size: 12px; }
  %s
  @media (prefers-color-scheme: dark) {
    svg { background: #14161a; }
    text { fill: #e6e6e6; } .grid { stroke: #33373d; } .note { fill: #a5abb3; }
    %s
  }
</style>"""


def selection(metrics):
    """What --select authors maximises; of equal epochs the later one is kept."""
    return .5 * metrics["AP"] + .25 * metrics["1-RL"] + .5 * metrics["AUC"]


def read(argument):
    """Name, points (seconds, AP), and the point of what the training keeps."""
    name, _, source = argument.partition("=")
    if not source:
        sys.exit(f"{argument}: write NAME=FILE@SECONDS or NAME=SECONDS:AP")
    if ":" in source:
        seconds, _, ap = source.partition(":")
        return name, [(float(seconds), float(ap))], (float(seconds), float(ap))
    path, _, per_epoch = source.partition("@")
    with open(path) as file:
        lines = json.load(file)["history"]
    lines = [line for line in lines if line.get("validation")]
    if not lines:
        sys.exit(f"{path}: no epoch was validated")
    points = [(line["epoch"] * float(per_epoch) if per_epoch else line["seconds"], line["validation"]["AP"])
              for line in lines]
    return name, points, points[max(range(len(lines)), key=lambda k: (selection(lines[k]["validation"]), k))]


def duration(seconds):
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    series = [read(argument) for argument in sys.argv[1:]]
    every = [point for _, points, _ in series for point in points]
    low, high = math.log10(min(s for s, _ in every)), math.log10(max(s for s, _ in every))
    floor = math.floor(min(ap for _, ap in every) * 10) / 10
    ceiling = math.ceil(max(ap for _, ap in every) * 20) / 20

    def x(seconds):
        return LEFT + (math.log10(seconds) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(ap):
        return TOP + (ceiling - ap) / (ceiling - floor) * (HEIGHT - TOP - BOTTOM)

    def rules(theme):
        return " ".join(f".c{k} {{ stroke: {COLOURS[k % len(COLOURS)][theme]}; }} "
                        f".f{k} {{ fill: {COLOURS[k % len(COLOURS)][theme]}; }}" for k in range(len(series)))

    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
          f'height="{HEIGHT}" role="img" aria-label="Validation AP against seconds of training">')
    print(STYLE % (rules(0), rules(1)))
    for tick in [s for s in (1, 3, 10, 30, 60, 180, 600, 1800, 3600, 7200) if low <= math.log10(s) <= high]:
        print(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
              f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{duration(tick)}</text>')
    for step in range(round(floor * 20), round(ceiling * 20) + 1):
        ap = step / 20
        print(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ap):.1f}" y2="{y(ap):.1f}"/>'
              f'<text x="{LEFT - 8}" y="{y(ap) + 4:.1f}" text-anchor="end">{ap:.2f}</text>')
    print(f'<text class="note" x="{LEFT}" y="{TOP - 14}">AP on validation rows</text>')
    print(f'<text class="note" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">'
          'seconds of training (logarithmic)</text>')
    names = []  # (wanted height, x, series, text)
    for k, (name, points, (seconds, ap)) in enumerate(series):
        path = " ".join(f"{x(s):.1f},{y(ap):.1f}" for s, ap in points)
        if len(points) > 1:
            print(f'<polyline class="c{k}" fill="none" stroke-width="2" points="{path}"/>')
        print(f'<circle class="f{k}" cx="{x(seconds):.1f}" cy="{y(ap):.1f}" r="4.5">'
              f'<title>{name}: AP {ap:.4f} after {seconds:.0f} s</title></circle>')
        end, last = points[-1]
        names.append([y(last), x(end) + 10, k, f"{name} {ap:.3f}"])
    names.sort()
    for before, after in zip(names, names[1:]):
        if abs(after[1] - before[1]) < 130:
            after[0] = max(after[0], before[0] + 16)
    for height, left, k, text in names:
        print(f'<text class="f{k}" x="{left:.1f}" y="{height + 4:.1f}" font-weight="600" style="fill: inherit">'
              f'<tspan class="f{k}">{text}</tspan></text>')
    print("</svg>")


main()
