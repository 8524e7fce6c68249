"""Data sets: read from files, simulated, written to files."""
from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_size_t, c_void_p
from typing import Any, Optional, Sequence

import numpy as np

from . import _native, _views


def _array(address: Optional[int], shape: "tuple[int, ...]", kind: Any, owner: Any, stride: int = 0) -> np.ndarray:
    """The library's memory as a read-only array that keeps `owner` alive."""
    if not address or 0 in shape:
        return np.zeros(shape, dtype=kind)
    size = np.dtype(kind).itemsize
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    width = stride or columns
    memory = (ctypes.c_char * (((rows - 1) * width + columns) * size)).from_address(address)
    memory._owner = owner  # numpy keeps `memory` alive, and with it the owner
    flat = np.frombuffer(memory, dtype=kind)
    array = flat if len(shape) == 1 else np.lib.stride_tricks.as_strided(flat, shape, (width * size, size))
    array.flags.writeable = False
    return array


class Dataset:
    """Views, labels and names in the library's memory. fit and predict take it without a copy.

    >>> import lacuna
    >>> toy = lacuna.simulate(rows=100, views=2, labels=4)
    >>> toy
    <lacuna.Dataset 'simulated': 100 rows, 2 views, 4 labels>
    >>> sorted(toy.views) == toy.view_names
    True
    """

    def __init__(self, data: _native.Data) -> None:
        self._data = data
        about = _native.call_json("lacuna_data_describe", data)
        self.name: str = about["name"]
        self.rows: int = about["rows"]
        self.view_names: "list[str]" = [view["name"] for view in about["views"]]
        self.view_sizes: "list[int]" = [view["columns"] for view in about["views"]]
        self.column_names: "dict[str, list[str]]" = {v["name"]: v["column_names"] for v in about["views"]}
        self.label_names: "list[str]" = about["labels"]
        self.ids: "list[str]" = about["ids"]
        self.notes: "list[str]" = about["notes"]
        self._sparse = [view["sparse"] for view in about["views"]]
        self._stored = [view["stored"] for view in about["views"]]

    def _view(self, v: int) -> Any:
        if self._sparse[v]:
            from scipy.sparse import csr_matrix
            start, index, value = c_void_p(), c_void_p(), c_void_p()
            _native.call("lacuna_data_csr", self._data, v, byref(start), byref(index), byref(value))
            n = self._stored[v]
            return csr_matrix((_array(value.value, (n,), np.float32, self._data),
                               _array(index.value, (n,), np.uint32, self._data).view(np.int32),
                               _array(start.value, (self.rows + 1,), np.uint64, self._data).view(np.int64)),
                              shape=(self.rows, self.view_sizes[v]))
        values, stride = c_void_p(), c_size_t()
        _native.call("lacuna_data_dense", self._data, v, byref(values), byref(stride))
        return _array(values.value, (self.rows, self.view_sizes[v]), np.float32, self._data, stride.value)

    @property
    def views(self) -> "dict[str, Any]":
        """The views in memory, read-only and not copied. Rows of missing instances (W) have arbitrary contents."""
        return {name: self._view(v) for v, name in enumerate(self.view_names)}

    @property
    def W(self) -> np.ndarray:
        """(rows, views), 1 where the item has the view."""
        present = _native.library.lacuna_data_present(self._data)
        shape = (self.rows, len(self.view_names))
        return _array(present, shape, np.uint8, self._data) if present else np.ones(shape, dtype=np.uint8)

    @property
    def Xs(self) -> "dict[str, Any]":
        """The views by name; rows of missing instances are NaN (views with missing instances are copied)."""
        W, views = self.W, self.views
        for v, (name, view) in enumerate(views.items()):
            if not W[:, v].all():
                views[name] = with_gaps(view, W[:, v])
        return views

    @property
    def Y(self) -> Optional[np.ndarray]:
        """(rows, labels) of 1, 0 and NaN (unknown), float32; None without labels."""
        labels = _native.library.lacuna_data_labels(self._data)
        if not labels:
            return None
        values = _array(labels, (self.rows, len(self.label_names)), np.int8, self._data)
        return np.where(values < 0, np.float32(np.nan), values.astype(np.float32))

    def write(self, path: "os.PathLike[str] | str") -> None:
        """Writes the format of the path's extension: .npz, .mat, .csv (a folder of tables), or a native folder."""
        _native.call("lacuna_data_write", self._data, _native.path_text(path))

    def __reduce__(self) -> Any:
        return rebuilt, (self.name, self.Xs, self.Y, self.label_names, self.column_names, self.ids)

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return (f"<lacuna.Dataset '{self.name}': {self.rows} rows, {len(self.view_names)} views, "
                f"{len(self.label_names)} labels>")


def rebuilt(name: str, Xs: "dict[str, Any]", Y: Any, label_names: "list[str]", column_names: "dict[str, list[str]]",
            ids: "list[str]") -> Dataset:
    """A data set from its parts, for unpickling."""
    labels = None if Y is None else _views.Labels(Y, label_names)
    data = _views.table(Xs, labels, fitting=True).data
    for v, view in enumerate(Xs):
        if column_names[view]:
            _native.call("lacuna_data_set_columns", data, v, _native.texts(column_names[view]))
    if ids:
        _native.call("lacuna_data_set_ids", data, _native.texts(ids))
    _native.call("lacuna_data_set_name", data, _native.text(name))
    return Dataset(data)


def with_gaps(view: Any, present: np.ndarray) -> Any:
    """A copy of a view whose rows are NaN where `present` is 0."""
    missing = np.asarray(present) == 0
    if not _views.is_sparse(view):
        view = np.array(view, dtype=view.dtype if view.dtype.kind == "f" else np.float64)
        view[missing] = np.nan
        return view
    matrix = view.tocsr().astype(np.float32)
    counts = np.where(missing, 1, np.diff(matrix.indptr))
    keep = np.repeat(~missing, np.diff(matrix.indptr))
    start = np.concatenate([[0], np.cumsum(counts)])
    value, index = np.full(start[-1], np.nan, np.float32), np.zeros(start[-1], matrix.indices.dtype)
    held = np.repeat(~missing, counts)
    value[held], index[held] = matrix.data[keep], matrix.indices[keep]
    return type(matrix)((value, index, start), shape=matrix.shape)


def read(path: "os.PathLike[str] | str", **options: Any) -> Dataset:
    """Reads a data set in any format of the program; options as for `lacuna data inspect` (label_code=...).

    HDF5 files (.h5ad, .h5mu, MATLAB level 7.3) must be converted first, with `lacuna data convert`.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(2, "there is no such data set", os.fspath(path))
    return Dataset(_native.made(_native.Data, "lacuna_data_read", _native.path_text(path), *_native.settings(options)))


def simulate(**options: Any) -> Dataset:
    """Data drawn from a known model; options as for `lacuna data simulate` (rows, views, labels, seed, ...).

    >>> import lacuna
    >>> lacuna.simulate(rows=50, sizes=[8, 4], labels=3).view_sizes
    [8, 4]
    """
    return Dataset(_native.made(_native.Data, "lacuna_data_simulate", *_native.settings(options)))


def dataset(Xs: Any, Y: Any = None, *, classes: Optional[Sequence[str]] = None, name: str = "data") -> Dataset:
    """A data set of your own arrays or DataFrames, to be written to a file. float32 arrays are not copied."""
    labels = None if Y is None else _views.Labels(Y, classes)
    table = _views.table(Xs, labels, fitting=True)
    _native.call("lacuna_data_set_name", table.data, _native.text(name))
    if table.index is not None:
        _native.call("lacuna_data_set_ids", table.data, _native.texts(str(i) for i in table.index))
    return Dataset(table.data)
