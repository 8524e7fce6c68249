"""Gaps and splits for experiments: which views and labels of complete data are hidden, and which rows are tested.

>>> import lacuna
>>> toy = lacuna.simulate(rows=100, views=3, labels=4)
>>> folds = lacuna.mask.mcar(toy, missing_views=.5, repeats=2)
>>> len(folds), folds[0].W.mean()
(2, 0.5)
>>> Xs, Y = folds[0].part("train")      # with the gaps laid over them
>>> len(Y)
70
"""
from __future__ import annotations

import os
from ctypes import byref, c_void_p
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _native, _views
from .data import Dataset, _array, with_gaps

PARTS = ("train", "val", "test", "all")


class Fold:
    """One repetition: W (rows, views) 1 = present; G (rows, labels) 1 = known; train, val, test: row numbers."""

    def __init__(self, folds: "Folds", W: np.ndarray, G: np.ndarray, order: np.ndarray) -> None:
        self._folds, self.W, self.G, self.order = folds, W, G, order
        train, val = folds._sizes
        self.train, self.val, self.test = order[:train], order[train:train + val], order[train + val:]

    def part(self, part: str = "train", Xs: Any = None, Y: Any = None) -> "tuple[dict[str, Any], np.ndarray]":
        """The rows of a part as (Xs, Y), views and training labels with their gaps; other labels are complete.

        Xs, Y : the data; default: those that the folds were made for.
        """
        if part not in PARTS:
            raise ValueError(f"there is no part '{part}' (there are {', '.join(PARTS)})")
        source = self._folds._source if Xs is None else (Xs, Y)
        if source is None:
            raise ValueError("folds from a file have no data: give Xs and Y")
        views, values = _parts_of(*source)
        if values.shape[0] != len(self.order):
            raise _native.ModelMismatch(f"the folds are of {len(self.order)} rows, the data have {values.shape[0]}")
        rows = self.order if part == "all" else getattr(self, part)
        labels = values[rows]
        if part == "train":
            labels[self.G[rows] == 0] = np.nan
        return ({name: with_gaps(_rows(view, rows), self.W[rows, v]) for v, (name, view) in enumerate(views.items())},
                labels)


class Folds(Sequence[Fold]):
    """Repetitions of an experiment; a sequence of Fold."""

    def __init__(self, folds: _native.Folds, source: Any = None) -> None:
        self._folds_, self._source = folds, source
        about = _native.call_json("lacuna_folds_describe", folds)
        self._count, self._shape = about["count"], (about["rows"], about["views"], about["labels"])
        self._sizes = (about["train"], about["val"])
        self.hash: str = about["hash"]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(self._count))]
        k = k + self._count if k < 0 else k
        if not 0 <= k < self._count:
            raise IndexError(f"there is no fold {k}: there are {self._count}")
        W, G, order = c_void_p(), c_void_p(), c_void_p()
        _native.call("lacuna_folds_at", self._folds_, k, byref(W), byref(G), byref(order))
        rows, views, labels = self._shape
        return Fold(self, _array(W.value, (rows, views), np.uint8, self._folds_),
                    _array(G.value, (rows, labels), np.uint8, self._folds_),
                    _array(order.value, (rows,), np.uint32, self._folds_))

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> "Iterator[tuple[np.ndarray, np.ndarray]]":
        """(training rows, test rows) of each repetition, for scikit-learn's cv=."""
        for fold in self:
            yield np.concatenate([fold.train, fold.val]).astype(np.intp), fold.test.astype(np.intp)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self._count

    def write(self, path: "os.PathLike[str] | str") -> None:
        """.npz, or .mat in the layout of the paper's authors; `lacuna train --folds` reads it."""
        _native.call("lacuna_folds_write", self._folds_, _native.path_text(path))

    def __repr__(self) -> str:
        return f"<lacuna.mask.Folds: {self._count} of {self._shape[0]} rows, {self.hash[:12]}>"


def _rows(view: Any, rows: np.ndarray) -> Any:
    return view.iloc[rows].to_numpy() if _views.is_frame(view) else view[rows]


def _parts_of(Xs: Any, Y: Any) -> "tuple[dict[str, Any], np.ndarray]":
    if isinstance(Xs, Dataset):
        return Xs.Xs, Xs.Y
    views = Xs if isinstance(Xs, Mapping) else {f"view{v}": X for v, X in enumerate(Xs)}
    values = _views.Labels(Y).values
    return ({name: view if _views.is_frame(view) or _views.is_sparse(view) else np.asarray(view)
             for name, view in views.items()}, np.where(values < 0, np.float32(np.nan), values.astype(np.float32)))


def _new(Xs: Any, Y: Any, options: Mapping[str, Any]) -> Folds:
    if isinstance(Xs, Dataset):
        data = Xs._data
    else:
        if Y is None:
            raise TypeError("masks need labels: Y is None (only a Dataset brings its own)")
        data = _views.table(Xs, _views.Labels(Y), fitting=True).data
    return Folds(_native.made(_native.Folds, "lacuna_folds_new", data, *_native.settings(options)), (Xs, Y))


def mcar(Xs: Any, Y: Any = None, *, missing_views: float = .5, missing_labels: float = .5, train: float = .7,
         val: float = .15, repeats: int = 1, seed: int = 1, **options: Any) -> Folds:
    """Missing completely at random, as in the paper: every view loses exactly its share of instances, no item
    loses all of them, and every label loses its share of positives and of negatives."""
    return _new(Xs, Y, {"missing_views": missing_views, "missing_labels": missing_labels, "train": train, "val": val,
                        "repeats": repeats, "seed": seed, **options})


def mnar(Xs: Any, Y: Any = None, *, strength: float = 2, missing_views: float = .5, missing_labels: float = .5,
         train: float = .7, val: float = .15, repeats: int = 1, seed: int = 1, **options: Any) -> Folds:
    """Missing not at random: whether an instance is hidden depends on its own values. The odds of being hidden grow
    by the factor exp(strength) for each standard deviation along a random direction of the view."""
    return mcar(Xs, Y, missing_views=missing_views, missing_labels=missing_labels, train=train, val=val,
                repeats=repeats, seed=seed, mechanism="mnar", strength=strength, **options)


def pattern(Xs: Any, Y: Any = None, *, patterns: "Mapping[Union[str, tuple[str, ...]], float]",
            missing_labels: float = .5, train: float = .7, val: float = .15, repeats: int = 1, seed: int = 1,
            **options: Any) -> Folds:
    """Missing by pattern: items come in groups, each with the same views, such as
    patterns={("rna", "image"): .5, "rna": .3, "image": .2}; the shares add up to 1."""
    if not isinstance(patterns, Mapping):
        raise TypeError(f"patterns is a dict of shares, such as {{('rna', 'image'): .7, 'rna': .3}}, not {patterns!r}")
    given = ["+".join((views,) if isinstance(views, str) else views) + f"={share}" for views, share in patterns.items()]
    return mcar(Xs, Y, missing_views=0, missing_labels=missing_labels, train=train, val=val, repeats=repeats,
                seed=seed, mechanism="pattern", patterns=given, **options)


def read(path: "os.PathLike[str] | str", Xs: Any = None, Y: Any = None) -> Folds:
    """Folds from a file of `lacuna data mask`, or of the paper's authors."""
    if not os.path.exists(path):
        raise FileNotFoundError(2, "there is no such folds file", os.fspath(path))
    return Folds(_native.made(_native.Folds, "lacuna_folds_read", _native.path_text(path)),
                 None if Xs is None else (Xs, Y))
