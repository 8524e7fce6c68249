"""Labels of items that are known already when others are predicted."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, Sequence

import numpy as np

from . import _views
from ._native import DataError, ModelMismatch


def known(labels: Any, classes: Sequence[str], rows: int, index: Any) -> np.ndarray:
    """As int8 (rows, classes): 1, 0, and -1 where nothing is known.

    labels : lists of tags that apply, or dicts such as {"beach": 1, "city": 0}, one for each item (None: nothing is known
        of it); a DataFrame, whose columns may be some of the labels; or an array of 1, 0 and NaN with all of them.
    index : the ids of the items, where they have any; a DataFrame or Series is put into their order.
    """
    at = {str(name): j for j, name in enumerate(classes)}
    own: Any = None
    if _views.is_frame(labels):
        own = labels.index
        values = np.full((len(labels), len(at)), -1, dtype=np.int8)
        columns = [_place(at, str(name), "") for name in labels.columns]
        if len(set(columns)) != len(columns):
            raise DataError("two columns of known_labels have the same name")
        if columns:
            values[:, columns] = _views.coded(_views.frame_values(labels, "known_labels"))
    else:
        if _views.is_series(labels):
            own, labels = labels.index, labels.to_numpy()
        items = _items(labels)
        values = _told(items, at) if items is not None else \
            _views.coded(_views.checked_csr(labels, "known_labels").toarray() if _views.is_sparse(labels) else labels)
    if values.shape[1] != len(at):
        raise DataError(f"known_labels has {values.shape[1]} columns, the model has {len(at)} labels; a DataFrame may name "
                        "some of them")
    if own is not None and index is not None and not own.equals(index):
        _views.check_ids(own, "known_labels")
        position = own.get_indexer(index)
        if len(own) and (position < 0).all():
            raise DataError(f"none of the {len(own)} ids of known_labels (the first is {own[0]!r}) is that of an item (the "
                            f"first is {index[0]!r})")
        values = np.where((position < 0)[:, None], np.int8(-1), values[position])
    if len(values) != rows:
        raise DataError(f"known_labels has {len(values)} rows, there are {rows} items")
    return np.ascontiguousarray(values, dtype=np.int8)


def _place(at: "dict[str, int]", name: Any, where: str) -> int:
    if not isinstance(name, str):
        raise TypeError(f"known_labels{where}: {name!r} is not the name of a label; labels are strings")
    if name not in at:
        raise ModelMismatch(f"known_labels{where}: '{name}' is not one of the model's {len(at)} labels")
    return at[name]


def _items(labels: Any) -> Optional["list[Any]"]:
    """One list of tags, dict or None for each item; None where labels are a table of numbers."""
    if isinstance(labels, np.ndarray) and (labels.ndim != 1 or labels.dtype.kind != "O"):
        return None
    if not isinstance(labels, (list, tuple, np.ndarray)):
        return None
    rows = [None if _views.is_unknown(row) else row for row in labels]
    fits = all(row is None or isinstance(row, Mapping) or _views.is_tag_row(row) for row in rows)
    return rows if fits else None


def _told(items: "list[Any]", at: "dict[str, int]") -> np.ndarray:
    values = np.full((len(items), len(at)), -1, dtype=np.int8)
    for i, item in enumerate(items):
        where = f", item {i}"
        for name, value in () if item is None else \
                item.items() if isinstance(item, Mapping) else ((tag, 1) for tag in item):
            j = _place(at, name, where)
            if _views.is_unknown(value):
                continue
            if value not in (0, 1):
                raise DataError(f"known_labels{where}: label '{name}' is 1, 0 or None (unknown), not {value!r}")
            values[i, j] = int(value)
    return values
