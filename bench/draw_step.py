"""Draws where a step's time goes: bench_step --parts FILE, then draw_step.py FILE > docs/step.svg"""
import html
import sys

PARTS = ["linear forward", "linear backward + update", "sparse layers forward", "sparse layers backward + update", "rounding", "dropout",
         "norm", "losses", "everything else"]
COLOURS = ["#4477aa", "#ee6677", "#88aacc", "#f5a6ae", "#aa3377", "#ccbb44", "#66ccee", "#228833", "#bbbbbb"]
IN_A_ROW, PITCH = 4, 205  # of the legend


def merged(name):
    if name.startswith("loss"):
        return "losses"
    return name if name in PARTS else "everything else"


bars = {}
for line in open(sys.argv[1], encoding="utf-8"):
    network, precision, part, ms = line.rstrip("\n").split("\t")
    bar = bars.setdefault((network, precision), dict.fromkeys(PARTS, 0.0))
    bar[merged(part)] += float(ms)

used = [(part, colour) for part, colour in zip(PARTS, COLOURS) if any(bar[part] > 0 for bar in bars.values())]
digits = 1 if max(sum(bar.values()) for bar in bars.values()) >= 10 else 2
width, left, height, gap = 720, 120, 26, 14
print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 110}" height="{len(bars) * (height + gap) + 76}" '
      'font-family="sans-serif" font-size="13">')
for row, ((network, precision), bar) in enumerate(bars.items()):
    y, x, total = 10 + row * (height + gap), float(left), sum(bar.values())
    print(f'<text x="{left - 8}" y="{y + 18}" text-anchor="end">{html.escape(network)} {precision}</text>')
    for part, colour in used:
        w = width * bar[part] / total
        print(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{height}" fill="{colour}">'
              f'<title>{part}: {bar[part]:.2f} ms</title></rect>')
        if w > 52:
            print(f'<text x="{x + w / 2:.1f}" y="{y + 18}" text-anchor="middle" fill="white">{bar[part]:.{digits}f} ms</text>')
        x += w
    print(f'<text x="{left + width + 8}" y="{y + 18}">{total:.{digits}f} ms</text>')
for k, (part, colour) in enumerate(used):
    x, y = 40 + k % IN_A_ROW * PITCH, len(bars) * (height + gap) + 26 + k // IN_A_ROW * 22
    print(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="{y + 11}">{part}</text>')
print("</svg>")
