#!/usr/bin/python3
"""Nine small sets for which no method of this project was tuned: unseen_sets.py FOLDER

Four come with scikit-learn (nothing is fetched), five are simulated. Labels that fewer than five rows have, or lack,
are dropped. The same versions of NumPy and scikit-learn give the same files."""
import pathlib
import sys

import numpy as np
from sklearn import datasets

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(77)


def write(name, views, labels):
    labels = np.asarray(labels).astype(np.int8)
    positives = labels.sum(0)
    labels = labels[:, (positives >= 5) & (positives <= len(labels) - 5)]
    np.savez(folder / f"{name}.npz", **{k: np.asarray(v, np.float32) for k, v in views.items()}, labels=labels)
    print(f"{name}: {len(labels)} rows, columns {[v.shape[1] for v in views.values()]}, {labels.shape[1]} labels, "
          f"{labels.sum(1).mean():.2f} per row")


def noisy(values, deviation):
    return values + deviation * random.normal(size=values.shape)


def top(values, shares):
    """1 for the largest values of each column, as many as its share."""
    return np.stack([values[:, j] > np.quantile(values[:, j], 1 - s) for j, s in enumerate(shares)], 1)


def digits():  # properties of a digit from halves of its picture, and from sums
    X, y = datasets.load_digits(return_X_y=True)
    rows = random.permutation(len(X))[:500]
    X, y = X[rows].reshape(-1, 8, 8), y[rows]
    groups = [[0, 2, 4, 6, 8], [2, 3, 5, 7], [5, 6, 7, 8, 9], [0, 6, 8, 9], [1, 4, 7], [3, 6, 9, 0], [2, 3, 5, 8], [0]]
    views = {"left": X[:, :, :4].reshape(500, -1), "right": X[:, :, 4:].reshape(500, -1),
             "sums": np.concatenate([X.sum(1), X.sum(2)], 1)}
    write("digits", views, np.stack([np.isin(y, g) for g in groups], 1))


def wine():  # the grower, and two measurements in thirds
    X, y = datasets.load_wine(return_X_y=True)
    names = datasets.load_wine().feature_names
    hidden = [names.index("proline"), names.index("alcohol")]
    rest = [k for k in range(X.shape[1]) if k not in hidden]
    thirds = [X[:, [k]] > np.quantile(X[:, k], [.33, .66]) for k in hidden]
    write("wine", {"acid": X[:, rest[:4]], "phenols": X[:, rest[4:8]], "colour": X[:, rest[8:]]},
          np.concatenate([np.eye(3)[y]] + thirds, 1))


def cancer():  # the diagnosis, and which of the worst values are high
    X, y = datasets.load_breast_cancer(return_X_y=True)
    high = X[:, 20:30] > np.quantile(X[:, 20:30], .7, axis=0)
    write("cancer", {"mean": X[:, :10], "error": X[:, 10:20]}, np.concatenate([(y == 0)[:, None], high], 1))


def diabetes():  # ordered classes
    X, y = datasets.load_diabetes(return_X_y=True)
    limits = np.quantile(y, [.2, .4, .6, .8])
    heavy = (X[:, 2] > .03) & (y > limits[2])
    write("diabetes", {"person": X[:, :4], "lipids": X[:, 4:7], "serum": X[:, 7:]},
          np.concatenate([y[:, None] > limits, heavy[:, None], (y <= limits[0])[:, None]], 1))


def radial():  # neighbourhoods of eight points, seen through waves
    Z = random.normal(size=(300, 4))
    views = {f"v{k}": noisy(np.sin(Z @ random.normal(size=(4, d)) * 1.2 + random.uniform(0, 6.28, d)), .3)
             for k, d in enumerate([12, 25, 40])}
    distance = ((Z[:, None] - random.normal(size=(8, 4))) ** 2).sum(2)
    write("radial", views, top(-distance, [.15, .2, .25, .3, .35, .2, .25, .3]))


def wide():  # 150 noisy columns per view; labels correlate beyond what the views show
    Z = random.normal(size=(400, 6))
    views = {f"v{k}": noisy(Z @ random.normal(size=(6, 150)) * .35, 1.) for k in range(4)}
    L = (Z @ random.normal(size=(6, 20)) + .7 * random.normal(size=(400, 3)) @ random.normal(size=(3, 20))
         + .5 * random.normal(size=(400, 20)))
    write("noisy", views, top(L, 1 - np.linspace(.65, .93, 20)))


def narrow():  # three columns per view; products and absolute values
    Z = random.normal(size=(250, 5))
    views = {f"v{k}": np.stack([noisy(Z[:, k], .3), noisy(Z[:, k] * Z[:, (k + 1) % 5], .3),
                                noisy(np.abs(Z[:, (k + 2) % 5]), .3)], 1) for k in range(5)}
    L = np.stack([Z[:, 0] * Z[:, 1], Z[:, 1] + Z[:, 2], np.abs(Z[:, 3]), Z[:, 4] - Z[:, 0],
                  Z[:, 2] * Z[:, 3] + Z[:, 4], -Z[:, 1]], 1)
    write("narrow", views, top(noisy(L, .3), [.35] * 6))


def topics():  # counts of words, 24 rare labels
    T = random.dirichlet(np.full(12, .15), size=600)
    views = {f"words{k}": random.poisson(random.gamma(2, 20, size=(600, 1)) *
                                         (T @ random.dirichlet(np.full(d, .05), size=12)))
             for k, d in enumerate([300, 120])}
    views["meta"] = noisy(T @ random.normal(size=(12, 6)), .5)
    L = T @ np.abs(random.normal(size=(12, 24))) ** 3
    write("topics", views, L > np.quantile(L, .9, axis=0) * random.uniform(.7, 1.2, 24))


def outliers():  # heavy tails, scales that vary by row, a coarse view of categories
    group = random.integers(0, 6, 160)
    A, B = random.normal(size=(6, 10)), random.random((6, 7)) < .4
    views = {"a": noisy(A[group], 1.5) * np.exp(random.normal(size=(160, 1))),
             "b": np.eye(6)[np.where(random.random(160) < .6, group, random.integers(0, 6, 160))],
             "c": random.standard_t(1.5, size=(160, 15)) + A[group][:, [0]] * 2}
    write("outliers", views, B[group] ^ (random.random((160, 7)) < .08))


for make in (digits, wine, cancer, diabetes, radial, wide, narrow, topics, outliers):
    make()
