"""Mean and standard deviation over folds of what tools/ten_folds.sh wrote.

    python3 tools/summarise_folds.py build/folds/results.jsonl [--markdown]
"""
import json
import statistics
import sys

METRICS = ["AP", "1-HL", "1-RL", "AUC", "1-OE", "1-Cov"]


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    markdown = "--markdown" in sys.argv
    runs = {}
    for path in paths:
        with open(path) as lines:
            for line in lines:
                run = json.loads(line)
                runs.setdefault(run["system"], {})[run["fold"]] = run
    bar = " | " if markdown else "  "
    header = ["system", "folds", "parameters"] + METRICS + ["val AP", "seconds"]
    if markdown:
        print("| " + bar.join(header) + " |")
        print("|" + "---|" * len(header))
    else:
        print(bar.join(f"{h:>13}" for h in header))
    for system, folds in sorted(runs.items()):
        cells = [system, str(len(folds)), str(next(iter(folds.values()))["train"]["parameters"])]
        for metric in METRICS:
            values = [run["test"]["metrics"][metric] for run in folds.values()]
            deviation = statistics.stdev(values) if len(values) > 1 else float("nan")
            cells.append(f"{statistics.mean(values):.4f}±{deviation:.4f}")
        cells.append(f"{statistics.mean(r['train']['metrics']['AP'] for r in folds.values()):.4f}")
        cells.append(f"{statistics.mean(r['seconds'] for r in folds.values()):.0f}")
        print("| " + bar.join(cells) + " |" if markdown else bar.join(f"{c:>13}" for c in cells))
    for system, folds in sorted(runs.items()):
        print(f"{system}, test AP by fold:",
              " ".join(f"{folds[k]['test']['metrics']['AP']:.4f}" for k in sorted(folds)))


main()
