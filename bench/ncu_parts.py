"""Where a step's time goes on a GPU, from the kernels that ncu has seen, as lines for draw_step.py:

  ncu --clock-control none --csv --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum \\
      --launch-skip 3000 --launch-count 140 --kill yes bench_cuda --no-peers --only best > best.csv
  ncu_parts.py best best.csv > parts.tsv       and draw_step.py parts.tsv > docs/cuda-step.svg

A step is what lies between two launches of the first layer's gather. What the wide kernels read and write goes to stderr.
"""
import csv
import sys

PARTS = [("forward", "linear forward"), ("plain_forward", "linear forward"), ("backward_kernel", "linear backward + update"),
         ("prepare", "rounding"), ("dropout", "dropout"), ("norm", "norm"), ("bce", "losses"), ("guess", "losses"),
         ("view_kernel", "losses"), ("graph", "losses"), ("unit", "losses"), ("label_bits", "losses"), ("contrast", "losses"),
         ("instance", "losses"), ("pair", "losses"), ("reconstruction", "losses"), ("count", "losses"), ("add_up", "losses")]


def part(name):
    if "norm" in name:
        return "norm"
    if "relu" in name or "gate" in name:
        return "everything else"
    return next((to for word, to in PARTS if word in name), "everything else")


def microseconds(row):
    return float(row["Metric Value"].replace(",", "")) * {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3}[row["Metric Unit"]]


def read(path):
    kernels = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            kernel = kernels.setdefault(int(row["ID"]), {"name": row["Kernel Name"].split("(")[0].split("::")[-1], "bytes": 0.0})
            if row["Metric Name"].startswith("gpu__time"):
                kernel["us"] = microseconds(row)
            elif row["Metric Name"].startswith("dram__bytes"):
                kernel["bytes"] += float(row["Metric Value"].replace(",", ""))
    return [kernels[k] for k in sorted(kernels)]


network, path = sys.argv[1:3]
kernels = read(path)
norms = [k for k, kernel in enumerate(kernels) if kernel["name"] in ("layer_norm_kernel", "batch_norm_kernel")]
if len(norms) < 2:
    sys.exit(f"{path}: {len(kernels)} kernels hold no whole step; take a larger --launch-count")
sums = {}
for kernel in kernels[norms[0]:norms[1]]:
    sums[part(kernel["name"])] = sums.get(part(kernel["name"]), 0) + kernel["us"]
    if kernel["us"] > 20:
        print(f'{kernel["name"]:44} {kernel["us"]:8.1f} us {kernel["bytes"] / kernel["us"] * 1e-6:6.2f} TB/s', file=sys.stderr)
for name, us in sums.items():
    print(f"{network}\tbf16\t{name}\t{us * 1e-3:.4f}")
print(f"{network}: {norms[1] - norms[0]} launches, {sum(sums.values()):.0f} us", file=sys.stderr)
