#!/usr/bin/env python3
"""Recovered views, recovered views as input, and completed labels, beside rivals on the same rows.

  bench/recovery.py views  --lacuna PROGRAM --out RESULTS.json SET.npz...   error of hidden views, relative to the mean
  bench/recovery.py tags   --lacuna PROGRAM --out RESULTS.json SET.npz...   does filling in help tags?
  bench/recovery.py labels --lacuna PROGRAM --out RESULTS.json SET.npz...   hidden labels: AP and AUC
  bench/recovery.py show RESULTS.json...                                    the tables

Sets are .npz files of `lacuna data convert`. Rivals see prepared views (|x|^(1/4) where one sign prevails, 96 principal
directions) and predict the views' own columns; scikit-learn's IterativeImputer sees 16 directions a view, because it
fits one regression a column, and its result is decoded by least squares. Needs numpy; scikit-learn for the imputer.
"""
import argparse, json, os, subprocess, sys, tempfile, time
import numpy as np

RIDGE = [1., 10., 100., 1000., 1e4]
NEIGHBOURS = 10


def lacuna(args, *words):
    subprocess.run([args.lacuna, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read(path):
    """Names of the views, views as float32 (n, d), W (n, m) of the data's own gaps, labels (n, c): 1, 0, -1 unknown."""
    z = np.load(path, allow_pickle=False)
    names, views = [], []
    for key in z.files:
        if key in ("label", "W", "G", "ids", "label_names", "view_names", "name", "source", "licence"):
            continue
        if key.endswith(".data"):
            name = key[:-5]
            values, index, start = (z[name + "." + k] for k in ("data", "indices", "indptr"))
            x = np.zeros(tuple(z[name + ".shape"].astype(int)), np.float32)
            for i in range(len(start) - 1):
                x[i, index[start[i]:start[i + 1]]] = values[start[i]:start[i + 1]]
        elif z[key].ndim == 2 and z[key].dtype.kind in "fiu":
            name, x = key, z[key].astype(np.float32)
        else:
            continue
        names.append(name)
        views.append(x)
    present = z["W"].astype(bool) if "W" in z.files else np.ones((len(views[0]), len(views)), bool)
    labels = np.nan_to_num(z["label"].astype(np.float64), nan=-1).astype(int) if "label" in z.files else None
    if "G" in z.files:
        labels = np.where(z["G"] > 0, labels, -1)
    return names, views, present, labels


class Prepared:
    def __init__(self, x, rows, directions=96):
        a = x[rows]
        low, high = (a < 0).sum(), (a > 0).sum()
        self.power = 1. if low + high and min(low, high) >= .25 * (low + high) else .25
        a = self.squash(a)
        self.mean = a.mean(0)
        a = a - self.mean
        gram = (a @ a.T if len(a) < a.shape[1] else a.T @ a).astype(np.float64)
        w, u = np.linalg.eigh(gram)
        w, u = w[::-1][:directions], u[:, ::-1][:, :directions]
        keep = w > 1e-7 * w[0]
        w, u = w[keep], u[:, keep]
        self.directions = ((a.T @ u / np.sqrt(w)) if len(a) < a.shape[1] else u).astype(np.float32)
        self.gain = 1 / np.sqrt((w / len(a)).mean())

    def squash(self, x):
        return x if self.power == 1 else np.sign(x) * np.abs(x) ** np.float32(self.power)

    def __call__(self, x):
        return ((self.squash(x) - self.mean) @ self.directions * self.gain).astype(np.float32)


def distances(a, b):
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T, 0)


def shared_distances(Z, W, rows, others, without=None):
    """Mean squared distance over the views that both have; infinite where there is none."""
    total, count = np.zeros((len(rows), len(others)), np.float32), np.zeros((len(rows), len(others)), np.float32)
    for w in range(len(Z)):
        if w == without:
            continue
        both = W[rows, w][:, None] & W[others, w][None]
        total += both * distances(Z[w][rows], Z[w][others]) / Z[w].shape[1]
        count += both
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def nearest(X, Z, W, v, test, learn):
    others = learn[W[learn, v]]
    far = shared_distances(Z, W, test, others, v)
    out = np.tile(X[v][others].mean(0), (len(test), 1))
    for i in range(len(test)):
        near = np.argsort(far[i])[:NEIGHBOURS]
        near = near[np.isfinite(far[i][near])]
        if len(near):
            out[i] = X[v][others[near]].mean(0)
    return out


def ridge(X, Z, W, v, test, learn):
    """A regression per pattern, on the rows that have all of its views and v; the penalty by leave-one-out."""
    out = np.tile(X[v][learn[W[learn, v]]].mean(0), (len(test), 1))
    others = W.copy()
    others[:, v] = False
    for pattern in np.unique(others[test], axis=0):
        rows = np.flatnonzero((others[test] == pattern).all(1))
        views = np.flatnonzero(pattern)
        fit = learn[W[learn, v] & W[learn][:, views].all(1)]
        if len(fit) < 5 or not len(views):
            continue
        A = np.concatenate([Z[w][fit] for w in views], 1).astype(np.float64)
        Q = np.concatenate([Z[w][test[rows]] for w in views], 1)
        centre, mean = A.mean(0), X[v][fit].mean(0)
        A, Y = A - centre, (X[v][fit] - mean).astype(np.float64)
        w, U = np.linalg.eigh(A @ A.T)
        w = np.maximum(w, 0)
        UY, best = U.T @ Y, None
        for penalty in RIDGE:
            shrink = w / (w + penalty)
            hat = (U * U) @ shrink + 1 / len(fit)
            error = (((Y - (U * shrink) @ UY) / (1 - np.minimum(hat, .999))[:, None]) ** 2).sum()
            if best is None or error < best[0]:
                best = (error, penalty)
        out[rows] = (Q - centre) @ (A.T @ ((U / (w + best[1])) @ UY)) + mean
    return out


def iterative(X, P, Z, W, test, learn, k=16):
    """All views at once: the imputer sees the leading directions, its result is decoded by least squares."""
    try:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer
    except ImportError:
        return None
    widths = [min(k, z.shape[1]) for z in Z]
    side = np.concatenate([np.where(W[:, [v]], z[:, :widths[v]], np.nan) for v, z in enumerate(Z)], 1).astype(np.float64)
    bounds = {"min_value": np.nanmin(side[learn], 0), "max_value": np.nanmax(side[learn], 0)}  # without, it diverges
    imputer = IterativeImputer(max_iter=5, random_state=0, **bounds).fit(side[learn])
    filled, first, out = imputer.transform(side[test]), 0, []
    for v, width in enumerate(widths):
        rows = learn[W[learn, v]]
        A, mean = Z[v][rows][:, :width], X[v][rows].mean(0)
        decode = np.linalg.lstsq(A, X[v][rows] - mean, rcond=None)[0]
        out.append(mean + filled[:, first:first + width] @ decode)
        first += width
    return out


def masks(args, path, folder, kind, repeats, m, names, share="0.6", val="0.1"):
    folds = os.path.join(folder, f"folds-{kind}.npz")
    words = ["data", "mask", path, folds, "--missing-views", ".5", "--missing-labels", ".5", "--repeats", repeats,
             "--train", share, "--val", val, "--seed", 7]
    if kind == "pattern":  # four groups of items with half of the views each
        half = (m + 1) // 2
        sets = [list(range(0, m, 2)), list(range(1, m, 2)), list(range(half)), list(range(half, m))]
        for s in sets:
            words += ["--patterns", "+".join(names[v] for v in s) + "=.25"]
        words += ["--mechanism", "pattern"]
        words = [w for i, w in enumerate(words) if not (w == "--missing-views" or words[i - 1] == "--missing-views")]
    lacuna(args, *words)
    return folds


def parts(folds, k, n):
    z = np.load(folds)
    W, G, order = z[f"W{k}"].astype(bool), z[f"G{k}"].astype(bool), z[f"order{k}"].astype(int).ravel()
    train, val = z["shares"].ravel()[:2]
    a = int(np.ceil(train * n - 1e-9))
    b = min(n, a + int(np.ceil(val * n - 1e-9)))
    return W, G, order[:a], order[a:b], order[b:]


def relative(X, pred, mean, rows, place):
    x = X[rows].astype(np.float64)
    return ((x - pred[place]) ** 2).sum() / ((x - mean) ** 2).sum()


def views_of(args, path, results):
    names, X, own, _ = read(path)
    n, m = own.shape
    for kind in args.gaps.split(","):
        with tempfile.TemporaryDirectory() as folder:
            folds = masks(args, path, folder, kind, args.repeats, m, names)
            for k in range(args.first, args.repeats):
                W, _, train, val, test = parts(folds, k, n)
                W = W & own
                learn, test = np.sort(np.concatenate([train, val])), np.sort(test)  # recovered rows come in the data's order
                model, filled, sd = (os.path.join(folder, s) for s in ("m.safetensors", "filled.npz", "sd.npz"))
                start = time.time()
                try:
                    lacuna(args, "train", path, "--folds", folds, "--fold", k, "--method", "prior", "--keep-decoders",
                           "--threads", args.threads, "--out", model)
                except subprocess.CalledProcessError:
                    print(os.path.basename(path), kind, k, "refused: too few rows have two views", flush=True)
                    continue
                fitted = time.time()
                lacuna(args, "recover", model, path, "--folds", folds, "--fold", k, "--part", "test", "--out", filled,
                       "--deviations", sd)
                ours = {"fit seconds": fitted - start, "recover seconds": time.time() - fitted}
                Y, S = (dict(zip(*read(path_)[:2])) for path_ in (filled, sd))
                for v in range(m):  # what is there is passed on, row by row
                    assert (Y[names[v]][W[test, v]] == X[v][test[W[test, v]]]).all(), names[v]
                P = [Prepared(X[v], learn[W[learn, v]]) for v in range(m)] if not args.ours else []
                Z = [prepared(x) for prepared, x in zip(P, X)]
                imputed = iterative(X, P, Z, W, test, learn) if P and not args.without_imputer else None
                for v in range(m):
                    place = np.flatnonzero(own[test, v] & ~W[test, v] & W[test].any(1))
                    rows = test[place]
                    if not len(rows):
                        continue
                    mean = X[v][learn[W[learn, v]]].mean(0).astype(np.float64)
                    x = X[v][rows]
                    line = {"set": os.path.basename(path)[:-4], "gaps": kind, "repeat": k, "view": names[v],
                            "rows": len(rows),
                            "lacuna": relative(X[v], Y[names[v]], mean, rows, place),
                            "coverage": float((np.abs(x - Y[names[v]][place]) <= 1.6449 * S[names[v]][place] * (1 + 1e-6)).mean()), **ours}
                    if not args.ours:
                        line["knn"] = relative(X[v], nearest(X, Z, W, v, rows, learn), mean, rows, slice(None))
                        line["ridge"] = relative(X[v], ridge(X, Z, W, v, rows, learn), mean, rows, slice(None))
                    if imputed is not None:
                        line["iterative"] = relative(X[v], imputed[v], mean, rows, place)
                    results.append(line)
                print(line["set"], kind, k, {key: round(float(np.mean([r[key] for r in results[-m:] if key in r])), 4)
                                             for key in ("lacuna", "ridge", "knn", "iterative", "coverage") if key in line},
                      flush=True)
                save(args, results)


def tags_of(args, path, results):
    names, X, own, labels = read(path)
    n, m = own.shape
    with tempfile.TemporaryDirectory() as folder:
        folds = masks(args, path, folder, "random", args.repeats, m, names, "0.7", "0.15")
        for k in range(args.first, args.repeats):
            at = lambda s: os.path.join(folder, s)
            common = ["--fold", k, "--seed", 1, "--threads", args.threads]
            lacuna(args, "train", path, "--folds", folds, *common, "--keep-decoders", "--out", at("m"))
            lacuna(args, "recover", at("m"), path, "--folds", folds, "--fold", k, "--out", at("rows.npz"))
            f = {key: value for key, value in np.load(folds).items() if key != "hash"}  # W changes
            filled_names, rows, _, _ = read(at("rows.npz"))
            whole = {key: value for key, value in np.load(path).items() if key in ("label_names", "ids")}
            for name, x in zip(filled_names, rows):  # in the data's order
                assert len(x) == n
                whole[name] = x
            np.savez(at("filled.npz"), label=np.where(labels < 0, np.nan, labels).astype(np.float32), **whole)
            f[f"W{k}"] = np.ones_like(f[f"W{k}"])
            np.savez(at("whole.npz"), **f)
            line = {"set": os.path.basename(path)[:-4], "repeat": k}
            runs = {"gaps": ("m", path, folds), "filled for prediction": ("m", at("filled.npz"), at("whole.npz"))}
            lacuna(args, "train", at("filled.npz"), "--folds", at("whole.npz"), *common, "--out", at("m2"))
            runs["filled for both"] = ("m2", at("filled.npz"), at("whole.npz"))
            for name, (model, data, fold_file) in runs.items():
                lacuna(args, "predict", at(model), data, "--folds", fold_file, "--fold", k, "--part", "test", "--out", at("s.npz"))
                done = subprocess.run([args.lacuna, "evaluate", at("s.npz"), path, "--folds", folds, "--fold", str(k), "--part",
                                       "test", "--json"], check=True, capture_output=True, text=True)
                document = json.loads(done.stdout)
                line[name] = document.get("metrics", document)["AP"]
            results.append(line)
            print(line, flush=True)
            save(args, results)


def micro(scores, truth):
    order = np.argsort(-scores, kind="stable")
    y = truth[order].astype(np.float64)
    hits = np.cumsum(y)
    ap = (hits / np.arange(1, len(y) + 1) * y).sum() / y.sum()
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2
    positive = truth.sum()
    auc = (rank[inverse][truth > 0].sum() - positive * (positive + 1) / 2) / (positive * (len(y) - positive))
    return float(ap), float(auc)


def completed_by_rank(Y, G, prior):
    """Low-rank completion of the label matrix alone; rank and shrinkage by a tenth of the known entries."""
    rng = np.random.default_rng(0)
    held = G & (rng.random(G.shape) < .1)
    best = None

    def run(known, rank, shrink):
        M = np.where(known, Y - prior, 0.)
        for _ in range(30):
            U, s, V = np.linalg.svd(M, full_matrices=False)
            low = (U[:, :rank] * np.maximum(s[:rank] - shrink, 0)) @ V[:rank]
            M = np.where(known, Y - prior, low)
        return prior + low

    for rank in (2, 5, 10, 20):
        for shrink in (1., 3., 10.):
            if rank < min(Y.shape):
                score = micro(run(G & ~held, rank, shrink)[held], Y[held])[0]
                if best is None or score > best[0]:
                    best = (score, rank, shrink)
    return run(G, *best[1:])


def labels_of(args, path, results):
    names, X, own, labels = read(path)
    n, m = own.shape
    with tempfile.TemporaryDirectory() as folder:
        folds = masks(args, path, folder, "random", args.repeats, m, names)
        for k in range(args.first, args.repeats):
            W, G, *_ = parts(folds, k, n)
            W, G = W & own, G & (labels >= 0)
            Y, hidden = (labels == 1).astype(np.float64), ~G & (labels >= 0)
            out = os.path.join(folder, "p.npy")
            lacuna(args, "complete", path, "--folds", folds, "--fold", k, "--threads", args.threads, "--out", out)
            p = np.load(out)
            prior = ((Y * G).sum(0) + Y[G].mean()) / (G.sum(0) + 1)
            Z = [Prepared(X[v], np.flatnonzero(W[:, v]))(X[v]) for v in range(m)]
            near = np.zeros_like(Y)
            for first in range(0, n, 500):
                rows = np.arange(first, min(n, first + 500))
                far = shared_distances(Z, W, rows, np.arange(n))
                far[np.arange(len(rows)), rows] = np.inf
                for i, r in enumerate(rows):
                    s = np.argsort(far[i])[:20]
                    s = s[np.isfinite(far[i][s])]
                    near[r] = ((Y * G)[s].sum(0) + 3 * prior) / (G[s].sum(0) + 3)
            line = {"set": os.path.basename(path)[:-4], "repeat": k, "hidden": int(hidden.sum())}
            for name, scores in (("lacuna", p), ("prior", np.tile(prior, (n, 1))), ("knn", near),
                                 ("matrix", completed_by_rank(Y, G, prior))):
                line[name + " AP"], line[name + " AUC"] = micro(scores[hidden], Y[hidden])
            bins = np.clip((p[hidden] * 10).astype(int), 0, 9)
            line["calibration"] = float(sum(abs(p[hidden][bins == b].mean() - Y[hidden][bins == b].mean()) * (bins == b).mean()
                                            for b in range(10) if (bins == b).any()))
            results.append(line)
            print({a: round(b, 4) if isinstance(b, float) else b for a, b in line.items()}, flush=True)
            save(args, results)


def save(args, results):
    with open(args.out, "w") as file:
        json.dump(results, file)


def show(paths):
    lines = [line for path in paths for line in json.load(open(path))]
    if "gaps" in lines[0] and "view" in lines[0]:
        columns = ["lacuna", "ridge", "knn", "iterative", "coverage"]
        print("| set | gaps | mean | " + " | ".join(columns) + " | lacuna less ridge |\n" + "|---" * 9 + "|")
        for key in dict.fromkeys((line["set"], line["gaps"]) for line in lines):
            own = [line for line in lines if (line["set"], line["gaps"]) == key]
            by = {c: [np.mean([line[c] for line in own if line["repeat"] == r and c in line] or [np.nan])
                      for r in sorted({line["repeat"] for line in own})] for c in columns}
            gain = np.array(by["lacuna"]) - np.array(by["ridge"])
            print(f"| {key[0]} | {key[1]} | 1 | " + " | ".join(f"{np.mean(by[c]):.3f}" for c in columns) +
                  f" | {gain.mean():+.3f} ± {gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan:.3f} |")
        return
    columns = [c for c in lines[0] if c not in ("set", "repeat", "hidden")]
    print("| set | repeats | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 2) + "|")
    for name in dict.fromkeys(line["set"] for line in lines):
        own = [line for line in lines if line["set"] == name]
        cells = [f"{np.mean([line[c] for line in own]):.4f} ± {np.std([line[c] for line in own], ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan:.4f}"
                 for c in columns]
        print(f"| {name} | {len(own)} | " + " | ".join(cells) + " |")
        if "gaps" in own[0]:
            for c in columns[1:]:
                d = np.array([line[c] - line["gaps"] for line in own])
                print(f"| | | {c} less gaps: {d.mean():+.4f} ± {d.std(ddof=1) / np.sqrt(len(d)):.4f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["views", "tags", "labels", "show"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--lacuna", default="lacuna")
    parser.add_argument("--out", default="recovery.json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first repetition that is run, of --repeats")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--gaps", default="random,pattern", help="views: which gaps")
    parser.add_argument("--without-imputer", action="store_true")
    parser.add_argument("--ours", action="store_true", help="views: without rivals")
    args = parser.parse_args()
    if args.what == "show":
        return show(args.paths)
    results = []
    for path in args.paths:
        {"views": views_of, "tags": tags_of, "labels": labels_of}[args.what](args, path, results)


if __name__ == "__main__":
    sys.exit(main())
