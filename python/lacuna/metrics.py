"""The metrics of the paper and a few more. Higher is better for all of them; unknown labels are left out.

>>> import numpy as np, lacuna
>>> Y = np.array([[1, 0, np.nan], [0, 1, 1]])
>>> scores = np.array([[.9, .2, .5], [.1, .8, .7]])
>>> lacuna.metrics.evaluate(Y, scores)["AP"]
1.0
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from . import _native, _views
from ._native import DataError

NAMES = _native.metric_names()


def _truth(Y: Any, scores: Any) -> _views.Labels:
    """Y; lists of tags are put into the columns of the scores where those have names."""
    tags = _views.tag_rows(Y.to_numpy() if _views.is_series(Y) and not _views.is_frame(Y) else Y) \
        if not _views.is_sparse(Y) and not _views.is_frame(Y) else None
    return _views.Labels(Y, [str(name) for name in scores.columns] if tags is not None and _views.is_frame(scores) else None)


def _scores(values: Any, truth: _views.Labels, what: str) -> np.ndarray:
    """As an array, its rows and columns in the order of Y where both have names."""
    shape = truth.values.shape
    scores = np.ascontiguousarray(_views.dense(values, what), dtype=np.float32)
    if scores.shape != shape:
        raise DataError(f"{what} are {scores.shape[0]} x {scores.shape[1]}, Y is {shape[0]} x {shape[1]}")
    if _views.is_frame(values):
        index = getattr(values, "index", None)
        if index is not None and truth.index is not None and not index.equals(truth.index):
            _views.check_ids(index, what)
            scores = scores[_found(index.get_indexer(truth.index), truth.index, what, "ids")]
        own = [str(name) for name in values.columns]
        if truth.names is not None and own != truth.names:
            at = {name: j for j, name in enumerate(own)}
            if len(at) != len(own) or len(set(truth.names)) != len(own):
                raise DataError(f"columns of {what} or Y have the same name, so that they cannot be matched by it")
            scores = scores[:, _found(np.array([at.get(name, -1) for name in truth.names]), truth.names, what, "labels")]
    return np.ascontiguousarray(scores)


def _found(position: np.ndarray, names: Any, what: str, kind: str) -> np.ndarray:
    lost = np.flatnonzero(position < 0)
    if len(lost):
        raise DataError(f"{what} lack {len(lost)} of the {len(position)} {kind} of Y (the first is {names[lost[0]]!r}); "
                        "tables are matched by their index and columns, arrays (.to_numpy()) by position")
    return position


def _evaluate(scores: np.ndarray, truth: np.ndarray, decided: Optional[np.ndarray] = None, threshold: float = .5,
              function: str = "lacuna_evaluate", width: int = 0) -> Any:
    truth = np.ascontiguousarray(truth, dtype=np.int8)
    values = np.empty((truth.shape[1], width) if width else len(NAMES))
    _native.call(function, scores.ctypes.data, truth.ctypes.data, None if decided is None else decided.ctypes.data,
                 truth.shape[0], truth.shape[1], threshold, values.ctypes.data)
    return values if width else dict(zip(NAMES, values.tolist()))


def _decisions(decided: Any, truth: _views.Labels) -> Optional[np.ndarray]:
    if decided is None:
        return None
    values = _scores(decided, truth, "decisions")
    if not np.isin(values, (0, 1)).all():
        raise DataError("decisions are 1 or 0")
    return values.astype(np.uint8)


def evaluate(Y: Any, scores: Any, decided: Any = None, threshold: float = .5) -> "dict[str, float]":
    """All metrics by name: AP, 1-HL, 1-RL, AUC, 1-OE, 1-Cov, macro-AUC, macro-F1, micro-F1.

    Y : true labels (items, labels), in any form that fit takes. scores : larger = more relevant.
    decided : 1 or 0 (what predict gives) for 1-HL and F1; otherwise a score above `threshold` is a yes.
    DataFrames are matched with Y by their index and columns; DataError where those are others. Arrays go by position.
    """
    truth = _truth(Y, scores)
    return _evaluate(_scores(scores, truth, "scores"), truth.values, _decisions(decided, truth), threshold)


def per_label(Y: Any, scores: Any, decided: Any = None, threshold: float = .5) -> "dict[str, np.ndarray]":
    """Of each label: positives, known, AP, AUC, F1; NaN where undefined. In the order of the columns of Y, or of the
    scores where Y is lists of tags. DataFrames are matched as in evaluate."""
    truth = _truth(Y, scores)
    values = _evaluate(_scores(scores, truth, "scores"), truth.values, _decisions(decided, truth), threshold,
                       "lacuna_evaluate_labels", 5)
    return {name: values[:, k] for k, name in enumerate(("positives", "known", "AP", "AUC", "F1"))}


def scorer(name: str = "AP") -> Callable[[Any, Any, Any], float]:
    """A metric as scikit-learn's cross-validation wants it: GridSearchCV(..., scoring=lacuna.metrics.scorer("1-RL")).

    Decisions are those of the estimator's predict.
    """
    if name not in NAMES:
        raise ValueError(f"there is no metric '{name}' (there are {', '.join(NAMES)})")

    def score(estimator: Any, X: Any, Y: Any) -> float:
        return evaluate(Y, estimator.predict_proba(X), estimator.predict(X))[name]

    return score
