#!/usr/bin/env python3
"""Draws tables like those of a cancer cohort: mRNA, methylation and protein of partly different patients, and
clinical tags that are known only in part. The numbers are random; the habits of the files are those of real ones.

    python3 examples/omics/draw.py OUT [--patients 300] [--new 60] [--seed 1] [--tags columns|list]

    OUT/cohort/mrna.csv          as pandas writes it: the first header cell is empty; log2(TPM + 1)
    OUT/cohort/methylation.tsv   as R's write.table does: the header is one cell short; beta values, some are NA
    OUT/cohort/protein.csv       as a European Excel does: byte order mark, semicolons, decimal commas, CRLF
    OUT/cohort/labels.csv        Sample_ID and a column for each tag: yes, no, or blank = nobody has looked
    OUT/new/mrna.csv, ...        further patients, without labels; their columns come in another order
    OUT/new_labels.csv           what these patients turned out to have

With --tags list, labels.csv has one column `tags` that lists the tags of a patient, joined by semicolons.
Only Python's standard library is needed. The same arguments draw the same files.
"""
import argparse
import math
import os
import random

FACTORS = 6  # hidden causes, such as the activity of a pathway
SHARE_WITHOUT = {"mrna": 0.10, "methylation": 0.30, "protein": 0.45}  # patients whose sample was not measured so
SHARE_UNKNOWN = 0.15  # tags that nobody has looked for
SHARE_NA = 0.002  # beta values that failed quality control

# Names as they are met: dashes, dots, a name with a comma, and two genes that a spreadsheet took for dates.
GENES = ["TP53", "BRCA1", "HLA-A", "HLA-DRB1", "C1orf112", "1-Mar", "2-Sep", "MT-ND4", "RP11-34P13.7", "ERBB2"]
PROTEINS = ["HER2_pY1248", "Akt_pS473", "14-3-3_epsilon", "c-Myc", "ER-alpha", "p38 MAPK, phospho", "β-Catenin"]
# Tag, the hidden causes behind it, how rare it is.
TAGS = [
    ("ER positive", {0: 2.5, 3: 0.8}, -0.5),
    ("HER2 amplified", {1: 2.5, 4: 0.8}, 1.5),
    ("Lymph node, any", {2: 2.0, 0: -1.0}, 0.3),
    ("Grade III", {3: 2.0, 5: 1.5}, 0.5),
    ("Relapse < 5 years", {4: 1.5, 5: 1.5, 2: 1.0}, 1.2),
]


def column_names(known, pattern, count):
    return (known + [pattern.format(i) for i in range(count - len(known))])[:count]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


class View:
    """Columns that each follow a few hidden causes; a view sees some of the causes well and others hardly."""

    def __init__(self, rng, names, sees, noise, measure):
        self.names, self.noise, self.measure = names, noise, measure
        self.loads = [[rng.gauss(0, 1) * (1 if f in sees else 0.1) for f in range(FACTORS)] for _ in names]
        self.level = [rng.gauss(0, 1) for _ in names]

    def row(self, rng, causes):
        return [
            self.measure(level + sum(a * b for a, b in zip(loads, causes)) + rng.gauss(0, self.noise))
            for loads, level in zip(self.loads, self.level)
        ]


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',;"\t') else cell


def write_lines(path, lines, end="\n", encoding="utf-8"):
    with open(path, "w", newline="", encoding=encoding) as file:
        file.writelines(line + end for line in lines)


def write_mrna(path, names, rows):
    write_lines(path, [",".join([""] + [quoted(n) for n in names])] +
                [",".join([id] + [f"{x:.4f}" for x in row]) for id, row in rows])


def write_methylation(path, names, rows, rng):
    cell = lambda x: "NA" if rng.random() < SHARE_NA else f"{x:.5f}"
    write_lines(path, ["\t".join(names)] + ["\t".join([id] + [cell(x) for x in row]) for id, row in rows])


def write_protein(path, names, rows):
    write_lines(path, [";".join(["Sample_ID"] + [quoted(n) for n in names])] +
                [";".join([id] + [f"{x:.3f}".replace(".", ",") for x in row]) for id, row in rows],
                end="\r\n", encoding="utf-8-sig")


def write_labels(path, rows, form):
    if form == "list":  # a list cannot say "nobody has looked": what is not in it is absent
        lines = ["Sample_ID,tags"] + [
            quoted(id) + "," + quoted(";".join(name for (name, _, _), has in zip(TAGS, tags) if has)) for id, tags in rows]
    else:
        lines = [",".join(["Sample_ID"] + [quoted(name) for name, _, _ in TAGS])] + [
            ",".join([id] + [{True: "yes", False: "no", None: ""}[has] for has in tags]) for id, tags in rows]
    write_lines(path, lines)


def shuffled(rng, names, rows):
    order = list(range(len(names)))
    rng.shuffle(order)
    return [names[j] for j in order], [(id, [row[j] for j in order]) for id, row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out")
    parser.add_argument("--patients", type=int, default=300)
    parser.add_argument("--new", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tags", choices=["columns", "list"], default="columns")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    views = {
        "mrna": View(rng, column_names(GENES, "ENSG{:08d}", 120), {0, 1, 3}, 1.0, lambda x: max(0.0, 5 + 2 * x)),
        "methylation": View(rng, column_names([], "cg{:08d}", 80), {2, 3, 4}, 1.0, sigmoid),
        "protein": View(rng, column_names(PROTEINS, "Protein.{}", 40), {0, 1, 5}, 0.7, lambda x: x),
    }
    for folder, count, first in (("cohort", args.patients, 0), ("new", args.new, args.patients)):
        os.makedirs(os.path.join(args.out, folder), exist_ok=True)
        measured, labels = {name: [] for name in views}, []
        for i in range(count):
            id = f"TCGA-{rng.choice('ABDEGH')}{rng.randrange(10)}-{1000 + first + i:04d}-01"
            causes = [rng.gauss(0, 1) for _ in range(FACTORS)]
            has = [name for name in views if rng.random() >= SHARE_WITHOUT[name]] or ["mrna"]
            for name in has:
                measured[name].append((id, views[name].row(rng, causes)))
            tags = [sum(w * causes[f] for f, w in weights.items()) > rarity + rng.gauss(0, 0.5)
                    for _, weights, rarity in TAGS]
            if folder == "cohort" and args.tags == "columns":
                tags = [None if rng.random() < SHARE_UNKNOWN else tag for tag in tags]
            labels.append((id, tags))
        for name, rows in measured.items():
            rng.shuffle(rows)  # no two tables of a cohort have the same order
            names = views[name].names
            if folder == "new":
                names, rows = shuffled(rng, names, rows)
            path = os.path.join(args.out, folder, name + (".tsv" if name == "methylation" else ".csv"))
            if name == "mrna":
                write_mrna(path, names, rows)
            elif name == "methylation":
                write_methylation(path, names, rows, rng)
            else:
                write_protein(path, names, rows)
        target = "cohort/labels.csv" if folder == "cohort" else "new_labels.csv"
        write_labels(os.path.join(args.out, target), labels, args.tags)
        print(f"{os.path.join(args.out, folder)}: {count} patients, " +
              ", ".join(f"{len(rows)} with {name}" for name, rows in measured.items()))


if __name__ == "__main__":
    main()
