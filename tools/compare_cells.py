"""Systems of one experiments folder against each other, paired over repetitions.

    python3 tools/compare_cells.py RESULTS [--part test|val] [--metric AP] A B [C ...]

RESULTS is a folder that `lacuna bench` wrote. A, B, ... are EXPERIMENT:METHOD (table:mtd, table:mtd:authors). For each
data set: the mean of each system, and of B, C, ... less A on the same repetitions the mean difference and its standard
error. `val` is the metric on validation rows at the epoch that the training itself selected; methods that do not keep
a history have none.
"""
import argparse
import json
import pathlib
import statistics


def read(folder, experiment, method, part, metric):
    """{data set: {repetition: value}}"""
    plan = json.loads((folder / "experiments" / f"{experiment}.json").read_text())
    values = {}
    for cell in plan["cells"]:
        result = folder / "cells" / cell["cell"] / "result.json"
        if cell["method"] != method or not result.exists():
            continue
        value = score(json.loads(result.read_text()), part, metric)
        if value is not None:
            values.setdefault(cell["data"], {})[cell["fold"]] = value
    return values


def score(result, part, metric):
    if part == "test":
        return result["metrics"][metric]
    epochs = [line["validation"] for line in result["history"] if "validation" in line]
    if not epochs:
        return None
    # The rule of --select authors; of equal epochs the later one.
    chosen = max(enumerate(epochs), key=lambda e: (.5 * e[1]["AP"] + .25 * e[1]["1-RL"] + .5 * e[1]["AUC"], e[0]))[1]
    return chosen[metric]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("systems", nargs="+", metavar="EXPERIMENT:METHOD")
    parser.add_argument("--part", choices=["test", "val"], default="test")
    parser.add_argument("--metric", default="AP")
    options = parser.parse_args()
    tables = [read(options.results, *system.split(":", 1), options.part, options.metric)
              for system in options.systems]
    first = tables[0]
    for system, table in zip(options.systems, tables):
        print(system)
        for data in first:
            common = sorted(set(first[data]) & set(table.get(data, {})))
            if not common:
                continue
            values = [table[data][k] for k in common]
            line = f"  {data:24} {statistics.mean(values):.4f}  ({' '.join(f'{v:.4f}' for v in values)})"
            if table is not first:
                differences = [table[data][k] - first[data][k] for k in common]
                error = statistics.stdev(differences) / len(common) ** .5 if len(common) > 1 else float("nan")
                line += f"  difference {statistics.mean(differences):+.4f} +- {error:.4f}"
            print(line)


main()
