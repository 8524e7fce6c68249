"""Which view drove a tag: Shapley values of the views."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from . import _native, _views
from ._native import UsageError

MOST_VIEWS = 12  # 2**12 predictions


class Explanation:
    """score = base + the sum of the values, for every item and label.

    views : names of the views. classes : names of the labels. ids : of the items, or None.
    score, base : (items, labels), with all views that the item has and with none.
    values : (views, items, labels); 0 where the item does not have the view.
    Scores are log-odds where the method gives probabilities, otherwise its own scores.
    """

    def __init__(self, views: "list[str]", classes: np.ndarray, ids: Any, score: np.ndarray, base: np.ndarray,
                 values: np.ndarray) -> None:
        self.views, self.classes, self.ids = views, classes, ids
        self.score, self.base, self.values = score, base, values

    def item(self, i: int, top: int = 3) -> "list[dict[str, Any]]":
        """The `top` best labels of item i with what each view adds, as `lacuna explain --json` writes them."""
        order = np.argsort(-self.score[i], kind="stable")[:top]
        return [{"label": str(self.classes[j]), "score": float(self.score[i, j]), "base": float(self.base[i, j]),
                 "views": {view: float(self.values[v, i, j]) for v, view in enumerate(self.views)}} for j in order]

    def __repr__(self) -> str:
        return f"<lacuna.Explanation of {len(self.score)} items: {len(self.views)} views, {len(self.classes)} labels>"


def log_odds(scores: np.ndarray) -> np.ndarray:
    p = np.clip(scores.astype(np.float64), 1e-7, 1 - 1e-7)
    return np.log(p) - np.log1p(-p)


def shapley(sets: np.ndarray, players: int) -> np.ndarray:
    """Values (players, ...) from those of all sets (2**players, ...); bit p of a set's number: player p is in it."""
    values = np.zeros((players, *sets.shape[1:]))
    weight = [math.factorial(k) * math.factorial(players - k - 1) / math.factorial(players) for k in range(players)]
    for number in range(2 ** players):
        size = bin(number).count("1")
        for p in range(players):
            if not number >> p & 1:
                values[p] += weight[size] * (sets[number | 1 << p] - sets[number])
    return values


def explain(model: _native.Model, Xs: Any, names: "list[str]", sizes: Sequence[int], classes: np.ndarray,
            probabilities: bool, columns: Any = None) -> Explanation:
    views, rows, index = _views.joined(Xs, names=names, columns=columns)
    if len(views) > MOST_VIEWS:
        raise UsageError(f"{len(views)} views have {2 ** len(views)} sets to look at; at most {MOST_VIEWS} views are "
                         "explained here")
    # A view that nobody has stands for the empty set.
    none = _views.View(names[0], np.full((rows, sizes[0]), np.nan, dtype=np.float32))
    sets = np.empty((2 ** len(views), rows, len(classes)))
    for number in range(len(sets)):
        chosen = [view for p, view in enumerate(views) if number >> p & 1] or [none]
        scores = np.empty((rows, len(classes)), dtype=np.float32)
        _native.call("lacuna_model_predict", model, _views.handed_over(chosen, rows), scores.ctypes.data)
        sets[number] = log_odds(scores) if probabilities else scores
    return Explanation([view.name for view in views], classes, index, sets[-1], sets[0], shapley(sets, len(views)))
