"""Which view drove a tag: Shapley values of the views."""
from __future__ import annotations

from typing import Any

import numpy as np


class Explanation:
    """score = base + the sum of the values, for every item and label.

    views : names of the views. classes : names of the labels. ids : of the items, or None.
    score, base : (items, labels), with all views of the item, and without any: the label's frequency in training.
    score is NaN if the item has no view.
    values : (views, items, labels); 0 if the item does not have the view.
    Scores are log-odds if the method gives probabilities, otherwise its own scores.
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
