"""From what users have (arrays, DataFrames, sparse matrices, lists of tags) to the library's data sets.

float32 arrays whose rows are contiguous are not copied. pandas and SciPy are never imported here: their
objects are told by what they can do.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, Optional, Sequence

import numpy as np

from . import _native
from ._native import DataError, ModelMismatch


def is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def is_series(value: Any) -> bool:
    return hasattr(value, "index") and hasattr(value, "to_frame") and hasattr(value, "to_numpy")


def is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def check_ids(index: Any, what: str) -> None:
    """Each item has one row and an id."""
    if index is None:
        return
    missing = index.isna() if getattr(index, "nlevels", 1) == 1 else index.to_frame().isna().any(axis=1).to_numpy()
    if missing.any():
        raise DataError(f"{what}: row {int(missing.argmax())} has no id (its index is NaN); give it one, or leave the row "
                        "out")
    if not index.is_unique:
        raise DataError(f"{what}: the id {index[index.duplicated()][0]!r} occurs twice; each item has one row")


class View:
    """One view: its rows, or none; the ids of the rows and the names of the columns where there are any."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self.index: Any = None
        self.column_names: Optional["list[str]"] = None
        if value is None:
            return
        if is_series(value) and not is_frame(value):
            self.value = value = value.to_frame()
        if is_frame(value):
            self.index = getattr(value, "index", None)
            self.column_names = [str(column) for column in value.columns]
            check_ids(self.index, f"view '{name}'")
        elif not is_sparse(value):
            self.value = dense(value, f"view '{name}'")

    @property
    def rows(self) -> int:
        return 0 if self.value is None else self.value.shape[0]

    def at(self, index: Any) -> None:
        """Puts the rows into the order of `index`; ids that are not there become missing rows."""
        if self.index is not None and not self.index.equals(index):
            self.value = self.value.reindex(index)
            self.index = index

    def match_columns(self, known: Optional["list[str]"]) -> None:
        """Columns in the order of those that were learned from; it is an error if they are others."""
        if known is None or self.column_names is None or self.column_names == known:
            return
        lost = [name for name in known if name not in set(self.column_names)]
        extra = [name for name in self.column_names if name not in set(known)]
        if lost or extra or len(set(known)) != len(known):
            told = [f"{what} {', '.join(found[:3])}{', ...' if found[3:] else ''}"
                    for what, found in (("it does not have", lost), ("the model does not know", extra)) if found]
            raise ModelMismatch(f"view '{self.name}': its {len(self.column_names)} columns are not the {len(known)} that "
                                f"were learned from: {'; '.join(told) or 'names occur twice'}")
        self.value = self.value.iloc[:, [self.column_names.index(name) for name in known]]
        self.column_names = known

    def add_to(self, data: _native.Data, position: int) -> None:
        name = _native.text(self.name, "the name of a view")
        if is_sparse(self.value):
            matrix = checked_csr(self.value, f"view '{self.name}'")
            if not np.issubdtype(matrix.dtype, np.number) and matrix.dtype != bool or matrix.dtype.kind == "c":
                raise TypeError(f"view '{self.name}' contains {matrix.dtype}, expected real numbers")
            if not matrix.has_canonical_format:  # sorted, and each column once
                matrix = matrix.copy()
                matrix.sum_duplicates()
            start = np.ascontiguousarray(matrix.indptr, dtype=np.uint64)
            index = np.ascontiguousarray(matrix.indices).astype(np.uint32, copy=False)
            value = np.ascontiguousarray(matrix.data, dtype=np.float32)
            present = with_values(matrix, value)
            _native.call("lacuna_data_add_csr", data, name, start.ctypes.data, index.ctypes.data,
                         value.ctypes.data, matrix.shape[1], None if present is None else present.ctypes.data)
            data.alive += [start, index, value]
        else:
            values = frame_values(self.value, self.name) if is_frame(self.value) else self.value
            if values.shape[1] == 0:
                raise DataError(f"view '{self.name}' has no columns")
            values = rows_contiguous(values)
            _native.call("lacuna_data_add_dense", data, name,
                         _native.F32 if values.dtype == np.float32 else _native.F64, values.ctypes.data,
                         values.shape[1], max(values.strides[0] // values.itemsize, values.shape[1]), None)
            data.alive.append(values)
        if self.column_names is not None:
            _native.call("lacuna_data_set_columns", data, position,
                         _native.texts(self.column_names, f"a column name of view '{self.name}'"))


def checked_csr(value: Any, what: str) -> Any:
    """As CSR, with a sound structure: SciPy's own functions trust it."""
    try:
        if hasattr(value, "check_format"):
            value.check_format(full_check=True)
        return value.tocsr()
    except (ValueError, IndexError) as error:
        raise DataError(f"{what} is a broken sparse matrix: {error}") from None


def with_values(matrix: Any, value: np.ndarray) -> Optional[np.ndarray]:
    """Of a sparse view: 0 for rows whose stored values are all NaN; None where there is no such row."""
    gaps = np.isnan(value)
    if not gaps.any():
        return None
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    found = np.bincount(rows, weights=gaps, minlength=matrix.shape[0])
    return np.where((found > 0) & (found == np.diff(matrix.indptr)), 0, 1).astype(np.uint8)


def numbers(value: Any, what: str) -> np.ndarray:
    """As float32 or float64; what cannot be a number is a TypeError."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype == np.float32 or array.dtype == np.float64:
        return np.asarray(array)
    if array.dtype.kind in "biuf":
        small = array.dtype.kind == "b" or array.dtype.itemsize <= 2
        return array.astype(np.float32 if small else np.float64)
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{what} contains objects that are not numbers: {error}") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} holds {array.dtype}")
    raise TypeError(f"{what} contains {array.dtype}, expected numbers")


def dense(value: Any, what: str) -> np.ndarray:
    """Two dimensions of numbers. A row may be None: then it is missing."""
    if isinstance(value, np.ma.MaskedArray):
        value = value.astype(np.float64).filled(np.nan)
    if isinstance(value, (list, tuple)) and any(row is None for row in value):
        value = rows_with_gaps(value, what)
    try:
        array = numbers(value, what)
    except ValueError as error:
        if "Complex" in str(error):
            raise
        raise DataError(f"{what} is not a table: {error}") from None
    if array.ndim != 2:
        raise DataError(f"{what} has {array.ndim} dimension{'' if array.ndim == 1 else 's'}, expected 2 (items, "
                        "columns). Reshape your data: one column is x.reshape(-1, 1), one view is [X]")
    return array


def rows_with_gaps(rows: Sequence[Any], what: str) -> np.ndarray:
    widths = {len(row) for row in rows if row is not None}
    if len(widths) != 1:
        raise DataError(f"{what}: rows have {sorted(widths) or 'no'} values, expected one size")
    gap = [np.nan] * widths.pop()
    return np.array([gap if row is None else row for row in rows], dtype=np.float64)


def frame_values(frame: Any, name: str) -> np.ndarray:
    wrong = [str(column) for column, kind in zip(frame.columns, getattr(frame, "dtypes", []))
             if getattr(kind, "kind", "O") not in "biuf"]
    if wrong:
        try:  # columns of objects may still hold numbers
            frame = frame.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"view '{name}': column{'' if len(wrong) == 1 else 's'} {', '.join(wrong[:5])}"
                            f"{', ...' if len(wrong) > 5 else ''} {'is' if len(wrong) == 1 else 'are'} not numeric; encode or drop "
                            f"{'it' if len(wrong) == 1 else 'them'} first") from None
    try:
        values = frame.to_numpy()
        if values.dtype.kind == "O":
            values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except TypeError:
        values = np.asarray(frame, dtype=np.float64)
    return numbers(values, f"view '{name}'")


def rows_contiguous(values: np.ndarray) -> np.ndarray:
    """As it is where the values of a row lie side by side and rows go forward; otherwise a copy."""
    size = values.itemsize
    forward = values.shape[0] <= 1 or (values.strides[0] >= size * values.shape[1] and values.strides[0] % size == 0)
    side_by_side = values.shape[1] <= 1 or values.strides[1] == size
    if forward and side_by_side and values.dtype.isnative and values.flags.aligned:
        return values if values.shape[0] > 1 else np.ascontiguousarray(values)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))


def named_views(Xs: Any, names: Optional[Sequence[str]] = None) -> "list[View]":
    """The views of a list or dict. `names`: those of a model, for a list, which has none of its own."""
    if isinstance(Xs, Mapping):
        if not Xs:
            raise DataError("Xs has no views")
        return [View(_native.text(name, "the name of a view").decode(), value) for name, value in Xs.items()]
    if not isinstance(Xs, (list, tuple)):
        raise TypeError(f"Xs is a list or dict of views, not {type(Xs).__name__}; a single view is [X], and "
                        "ConcatClassifier takes one matrix of concatenated views")
    if not Xs:
        raise DataError("Xs has no views")
    if names is not None and len(Xs) != len(names):
        raise ModelMismatch(f"Xs has {len(Xs)} views, the model has {len(names)} ({', '.join(names)}); put None for "
                            "a missing view, or give a dict by name")
    return [View(names[v] if names is not None else f"view{v}", value) for v, value in enumerate(Xs)]


def default_range(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def joined_index(views: Sequence[View], labels_index: Any, labelled: bool) -> Any:
    """The ids of all rows, or None where rows are matched by their position."""
    frames = [view for view in views if view.index is not None]
    arrays = [view for view in views if view.index is None and view.value is not None]
    indices = [view.index for view in frames] + ([labels_index] if labels_index is not None else [])
    if not indices:
        return None
    same = all(index.equals(indices[0]) for index in indices)
    if same:
        return indices[0] if frames else None
    ranges = {len(index) for index in indices if default_range(index)}
    if len(ranges) > 1:
        raise DataError(f"the tables have {' and '.join(str(n) for n in sorted(ranges))} rows and no ids (their indices "
                        "count from 0); set_index to what identifies an item, then rows are joined by it")
    if arrays:
        raise DataError(f"view '{arrays[0].name}' is an array, which has no ids, while the DataFrames have different "
                        "indices; make it a DataFrame with an index")
    if labels_index is not None:
        return labels_index
    if labelled:
        raise DataError("Y has no ids while the views have different indices; give Y as a DataFrame or Series with "
                        "an index")
    index = indices[0]
    for other in indices[1:]:
        index = index.union(other, sort=False)
    return index


def warn_of_strangers(views: Sequence[View]) -> None:
    """Says it where no id of a view occurs in another: perhaps they are written otherwise (7 and '7')."""
    for view in views:
        others = [other for other in views if other is not view]
        if others and len(view.index) and all(len(other.index) for other in others) and \
                not any(view.index.isin(other.index).any() for other in others):
            warnings.warn(f"no id of view '{view.name}' (the first is {view.index[0]!r}) occurs in another view (the first "
                          f"of '{others[0].name}' is {others[0].index[0]!r}), so their rows are different items; are "
                          "the ids written in the same way?", stacklevel=_outside())
            return


def _outside() -> int:
    """The stack level of who called the package, for a warning of the function that calls this one."""
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level


class Table:
    """Views, labels and ids, joined; `data` is what the library sees."""

    def __init__(self, data: _native.Data, rows: int, names: "list[str]", index: Any) -> None:
        self.data, self.rows, self.view_names, self.index = data, rows, names, index
        self.columns: "dict[str, list[str]]" = {}


def joined(Xs: Any, labels: Optional["Labels"] = None, names: Optional[Sequence[str]] = None,
           fitting: bool = False, columns: Optional["Mapping[str, list[str]]"] = None) -> "tuple[list[View], int, Any]":
    """The views that are there, row by row the same items; the number of rows; their ids."""
    views = named_views(Xs, names)
    for view in views:
        view.match_columns((columns or {}).get(view.name))
    if fitting:
        for view in views:
            if view.value is None:
                raise DataError(f"view '{view.name}' is None: a view without any item has nothing to learn from; "
                                "leave it out")
    index = joined_index(views, None if labels is None else labels.index, labels is not None)
    if index is not None:
        if len(index) and not any(view.index is not None and index.isin(view.index).any() for view in views):
            raise DataError(f"no view has any of the {len(index)} ids of Y (the first is {index[0]!r}); are the indices of "
                            "the tables the ids of the items?")
        if labels is None:
            warn_of_strangers([view for view in views if view.index is not None])
        for view in views:
            view.at(index)
        if labels is not None:
            labels.at(index)
        rows = len(index)
    else:
        rows = max((view.rows for view in views), default=0)
    present = [view for view in views if view.value is not None]
    if not present:
        raise DataError("every view is None: there is nothing to predict from")
    for view in present:
        if view.rows != rows or (labels is not None and labels.rows != rows):
            sizes = ", ".join(f"'{v.name}' {v.rows}" for v in present)
            about_labels = "" if labels is None else f"; Y has {labels.rows}"
            raise DataError(f"Found input variables with inconsistent numbers of samples: rows of the views are {sizes}"
                            f"{about_labels}; every item needs a row everywhere (NaN in all columns = missing), or "
                            "DataFrames with ids as their index")
    if rows == 0:
        raise DataError(f"Found array with 0 sample(s) (shape={present[0].value.shape}) while a minimum of 1 is required")
    return present, rows, index


def handed_over(views: Sequence[View], rows: int) -> _native.Data:
    data = _native.Data.new(rows)
    for position, view in enumerate(views):
        view.add_to(data, position)
    return data


def table(Xs: Any, labels: Optional["Labels"] = None, *, names: Optional[Sequence[str]] = None,
          fitting: bool = False, columns: Optional["Mapping[str, list[str]]"] = None) -> Table:
    """Joins views (and labels) and hands them to the library."""
    views, rows, index = joined(Xs, labels, names, fitting, columns)
    data = handed_over(views, rows)
    if labels is not None:
        labels.add_to(data)
    table = Table(data, rows, [view.name for view in views], index)
    table.columns = {view.name: view.column_names for view in views if view.column_names is not None}
    return table


class Labels:
    """Y as int8 (n, c): 1, 0, and -1 where a label is unknown; with names and, where there are any, ids."""

    def __init__(self, Y: Any, classes: Optional[Sequence[str]] = None) -> None:
        self.index: Any = None
        names = None if classes is None else [_native.text(name, "a label").decode() for name in classes]
        if is_sparse(Y):
            self.values = coded(checked_csr(Y, "Y").toarray())
        elif is_frame(Y):
            self.index = getattr(Y, "index", None)
            own = [str(column) for column in Y.columns]
            self.values = coded(frame_values(Y, "Y") if len(own) else np.zeros((len(Y), 0)))
            if names is not None and names != own:
                self.values = self._reordered(own, names)
            names = names or own
        else:
            if is_series(Y):
                self.index, Y = Y.index, Y.to_numpy()
            rows = tag_rows(Y)
            if rows is not None:
                names = names or sorted({tag for row in rows if row is not None for tag in row})
                self.values = tagged(rows, names)
            else:
                if not isinstance(Y, (np.ndarray, list, tuple)):
                    raise TypeError(f"Y is an array, a sparse matrix, a DataFrame or lists of tags, not {type(Y).__name__}")
                self.values = coded(Y)
        check_ids(self.index, "Y")
        if names is not None and len(names) != self.values.shape[1]:
            raise DataError(f"Y has {self.values.shape[1]} columns, there are {len(names)} names of labels")
        if self.values.shape[1] == 0:
            raise DataError("Y has no labels")
        self.names = names

    def _reordered(self, own: "list[str]", wanted: "list[str]") -> np.ndarray:
        at = {name: j for j, name in enumerate(own)}
        lost = [name for name in wanted if name not in at]
        extra = [name for name in own if name not in set(wanted)]
        if lost or extra:
            raise ModelMismatch(f"the labels of Y are not those of the model: {', '.join((lost or extra)[:5])} "
                                f"{'missing from Y' if lost else 'unknown to the model'}")
        return np.ascontiguousarray(self.values[:, [at[name] for name in wanted]])

    @property
    def rows(self) -> int:
        return self.values.shape[0]

    def at(self, index: Any) -> None:
        """Rows in the order of `index`; items that Y does not know have unknown labels."""
        if self.index is None or self.index.equals(index):
            return
        position = self.index.get_indexer(index)
        values = self.values[position]
        values[position < 0] = -1
        self.values, self.index = values, index

    def add_to(self, data: _native.Data) -> None:
        self.values = np.ascontiguousarray(self.values, dtype=np.int8)
        names = None if self.names is None else _native.texts(self.names, "a label")
        _native.call("lacuna_data_set_labels", data, self.values.ctypes.data, self.values.shape[1], names)
        data.alive.append(self.values)


def is_tag_row(row: Any) -> bool:
    return isinstance(row, (set, frozenset)) or (isinstance(row, (list, tuple, np.ndarray)) and
                                                 (len(row) == 0 or isinstance(row[0], str)))


def is_unknown(row: Any) -> bool:
    return row is None or (isinstance(row, float) and row != row)


def tag_rows(Y: Any) -> Optional["list[Any]"]:
    """Lists of tags (a row may be None or NaN: unknown; a single text is one tag), or None if Y is none."""
    if isinstance(Y, np.ndarray) and (Y.ndim != 1 or Y.dtype.kind not in "OU"):
        return None
    if not isinstance(Y, (list, tuple, np.ndarray)) or len(Y) == 0:
        return None
    rows = [[row] if isinstance(row, str) else None if is_unknown(row) else row for row in Y]
    known = [row for row in rows if row is not None]
    if not known or not all(is_tag_row(row) for row in known) or not any(len(row) for row in known):
        return None
    for i, row in enumerate(rows):
        for tag in () if row is None else row:
            if not isinstance(tag, str):
                raise TypeError(f"Y: item {i} has the tag {tag!r}; tags are strings")
    return rows


def tagged(rows: "list[Any]", names: Sequence[str]) -> np.ndarray:
    at = {name: j for j, name in enumerate(names)}
    values = np.zeros((len(rows), len(names)), dtype=np.int8)
    for i, row in enumerate(rows):
        if row is None:
            values[i] = -1
            continue
        for tag in row:
            if tag not in at:
                raise ModelMismatch(f"Y: item {i} has the tag '{tag}', which is not among the {len(names)} known ones")
            values[i, at[tag]] = 1
    return values


def coded(Y: Any) -> np.ndarray:
    """1, 0 and NaN (or masked, or None) as 1, 0 and -1."""
    mask = np.ma.getmaskarray(Y) if isinstance(Y, np.ma.MaskedArray) else None
    try:
        array = np.asarray(np.ma.getdata(Y) if mask is not None else Y)
    except ValueError:  # rows of different sizes
        sizes = sorted({len(row) if hasattr(row, "__len__") else 1 for row in Y})
        raise DataError(f"Y: rows have {' and '.join(map(str, sizes[:3]))} values, expected one for each label; lists of tags "
                        "are lists of strings: ['3', '7'], not [3, 7]") from None
    if array.ndim == 1:
        raise DataError(f"Y has one dimension ({array.shape[0]} values), expected (items, labels); one label is "
                        "y.reshape(-1, 1), tags are lists of strings, and ConcatClassifier takes classes")
    if array.ndim != 2:
        raise DataError(f"Y has {array.ndim} dimensions, expected 2 (items, labels)")
    if array.dtype.kind in "bui" and mask is None:
        values, unknown = array, None
    else:
        values = numbers(array, "Y")
        unknown = np.isnan(values)
        if mask is not None:
            unknown = unknown | mask
    wrong = (values != 0) & (values != 1)
    if unknown is not None:
        wrong &= ~unknown
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        hint = "; unknown labels are NaN, and -1 could mean no as well" if values[i, j] == -1 else ""
        raise DataError(f"Y at row {i}, column {j} is {values[i, j]}: a label is 1, 0 or NaN (unknown){hint}")
    if unknown is None:
        return np.ascontiguousarray(values.astype(np.int8))
    return np.where(unknown, -1, values == 1).astype(np.int8)
