"""The C interface (include/lacuna.h) through ctypes: declared once, errors turned into exceptions in one place.

ctypes releases the interpreter lock during every call.
"""
from __future__ import annotations

import ctypes
import json
import os
import re
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Iterable, Mapping, Optional

API_VERSION = 3
F32, F64 = 1, 2


class Error(Exception):
    """What the library reports; the base of its own exceptions."""


class UsageError(Error, ValueError):
    """An argument or a setting is wrong."""


class DataError(Error, ValueError):
    """Data or a file do not hold what they should."""


class ModelMismatch(Error, ValueError):
    """Model and data do not fit together."""


class Diverged(Error, ArithmeticError):
    """Training produced NaN or infinity."""


_EXCEPTIONS = {2: UsageError, 3: DataError, 4: ModelMismatch, 5: Diverged, 12: MemoryError, 130: KeyboardInterrupt}


class Setting(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Epoch(Structure):
    _fields_ = [("size", c_size_t), ("epoch", c_int64), ("epochs", c_int64), ("member", c_int64), ("members", c_int64),
                ("seconds", c_double), ("rows_per_second", c_double), ("losses", c_size_t),
                ("loss_names", POINTER(c_char_p)), ("loss_values", POINTER(c_double)), ("validation", POINTER(c_double))]


Progress = CFUNCTYPE(c_int, c_void_p, POINTER(Epoch))
Stop = CFUNCTYPE(c_int, c_void_p)
Remark = CFUNCTYPE(None, c_void_p, c_char_p)


class FitOptions(Structure):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("hold_out", c_double), ("validation", c_void_p),
                ("progress", Progress), ("stop", Stop), ("remark", Remark), ("user", c_void_p)]


_TEXTS = POINTER(c_char_p)
_SETTINGS = [POINTER(Setting), c_size_t]
_OUT = POINTER(c_void_p)

# Arguments of every function that can fail, without the last one, the error.
_FALLIBLE = {
    "lacuna_set_threads": [c_int],
    "lacuna_set_device": [c_char_p],
    "lacuna_data_new": [c_size_t, _OUT],
    "lacuna_data_add_dense": [c_void_p, c_char_p, c_int, c_void_p, c_size_t, c_size_t, c_void_p],
    "lacuna_data_add_csr": [c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "lacuna_data_set_columns": [c_void_p, c_size_t, _TEXTS],
    "lacuna_data_set_labels": [c_void_p, c_void_p, c_size_t, _TEXTS],
    "lacuna_data_set_name": [c_void_p, c_char_p],
    "lacuna_data_set_ids": [c_void_p, _TEXTS],
    "lacuna_data_read": [c_char_p, *_SETTINGS, _OUT],
    "lacuna_data_write": [c_void_p, c_char_p],
    "lacuna_data_simulate": [*_SETTINGS, _OUT],
    "lacuna_data_describe": [c_void_p, _OUT],
    "lacuna_data_dense": [c_void_p, c_size_t, _OUT, POINTER(c_size_t)],
    "lacuna_data_csr": [c_void_p, c_size_t, _OUT, _OUT, _OUT],
    "lacuna_folds_new": [c_void_p, *_SETTINGS, _OUT],
    "lacuna_folds_read": [c_char_p, _OUT],
    "lacuna_folds_write": [c_void_p, c_char_p],
    "lacuna_folds_describe": [c_void_p, _OUT],
    "lacuna_folds_at": [c_void_p, c_size_t, _OUT, _OUT, _OUT],
    "lacuna_model_new": [c_char_p, c_char_p, _OUT],
    "lacuna_model_set": [c_void_p, c_char_p, c_char_p],
    "lacuna_model_settings": [c_void_p, _OUT],
    "lacuna_methods": [_OUT],
    "lacuna_model_fit": [c_void_p, c_void_p, POINTER(FitOptions), POINTER(c_int)],
    "lacuna_model_predict": [c_void_p, c_void_p, c_void_p],
    "lacuna_model_decide": [c_void_p, c_void_p, c_size_t, c_void_p],
    "lacuna_model_calibrate": [c_void_p, c_void_p, c_size_t],
    "lacuna_model_refine": [c_void_p, c_void_p, c_void_p, c_size_t],
    "lacuna_model_recover": [c_void_p, c_void_p, _OUT, _OUT],
    "lacuna_explain": [c_void_p] * 5,
    "lacuna_model_describe": [c_void_p, _OUT],
    "lacuna_model_save": [c_void_p, c_char_p],
    "lacuna_model_load": [c_char_p, _OUT],
    "lacuna_model_store": [c_void_p, _OUT, POINTER(c_size_t)],
    "lacuna_model_restore": [c_void_p, c_size_t, _OUT],
    "lacuna_evaluate": [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_double, c_void_p],
    "lacuna_evaluate_labels": [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_double, c_void_p],
    "lacuna_model_report": [c_void_p, c_void_p, c_char_p, _OUT],
}
_OTHERS = {
    "lacuna_api_version": (c_int, []),
    "lacuna_version": (c_char_p, []),
    "lacuna_error_status": (c_int, [c_void_p]),
    "lacuna_error_message": (c_char_p, [c_void_p]),
    "lacuna_error_free": (None, [c_void_p]),
    "lacuna_free": (None, [c_void_p]),
    "lacuna_data_free": (None, [c_void_p]),
    "lacuna_data_present": (c_void_p, [c_void_p]),
    "lacuna_data_labels": (c_void_p, [c_void_p]),
    "lacuna_folds_free": (None, [c_void_p]),
    "lacuna_model_free": (None, [c_void_p]),
    "lacuna_model_labels": (c_size_t, [c_void_p]),
    "lacuna_fit_options_init": (None, [POINTER(FitOptions)]),
    "lacuna_metric_name": (c_char_p, [c_size_t]),
}


def _load() -> ctypes.CDLL:
    path = os.environ.get("LACUNA_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "liblacuna.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"the library of lacuna cannot be loaded: {error}; install the wheel that `make wheel` "
                          "builds, or set LACUNA_LIBRARY to liblacuna.so") from None
    lacking = [name for name in (*_FALLIBLE, *_OTHERS) if not hasattr(library, name)]
    if lacking:
        raise ImportError(f"{path} is not the library of this version of lacuna: it has no {lacking[0]}; set LACUNA_LIBRARY "
                          "to its liblacuna.so, or unset it")
    for name, arguments in _FALLIBLE.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c_int, [*arguments, _OUT]
    for name, (result, arguments) in _OTHERS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.lacuna_api_version() != API_VERSION:
        raise ImportError(f"{path} has version {library.lacuna_api_version()} of the interface, this package needs "
                          f"{API_VERSION}")
    return library


library = _load()


def spoken(message: str) -> str:
    """The program's words in Python's: --missing-views is missing_views."""
    message = message.replace("use --blank-means no", "give 0 instead of NaN, or read the file with blank_means='no'")
    message = message.replace("; of a table of text, --empty mean fills them", "")  # there is no table here
    message = re.sub("--empty (zero|mean)", r"empty='\1'", message)
    pattern = r"--([a-z][a-z0-9-]*)|'([a-z][a-z0-9-]*)'(?=; did you)|(?<=did you mean )'([a-z][a-z0-9-]*)'" \
        if "no setting" in message else r"--([a-z][a-z0-9-]*)"
    return re.sub(pattern, lambda match: match.group(0).lstrip("-").replace("-", "_"), message)


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library; an error becomes an exception."""
    error = c_void_p()
    status = getattr(library, name)(*arguments, byref(error))
    if status == 0:
        return
    message = library.lacuna_error_message(error).decode("utf-8", "replace")
    library.lacuna_error_free(error)
    raise _EXCEPTIONS.get(status, Error)(spoken(message))


def call_json(name: str, *arguments: Any) -> Any:
    """The JSON document that a function gives as its last output."""
    return json.loads(call_text(name, *arguments))


def call_text(name: str, *arguments: Any) -> str:
    text = c_void_p()
    call(name, *arguments, byref(text))
    try:
        return ctypes.string_at(text).decode("utf-8")
    finally:
        library.lacuna_free(text)


def text(value: Any, what: str = "a name") -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{what} is text, not {type(value).__name__}: {value!r}")
    if "\0" in value:
        raise ValueError(f"{what} contains a NUL character: {value!r}")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} is not valid Unicode text: {value!r}") from None


def path_text(path: "os.PathLike[str] | str") -> bytes:
    return text(os.fspath(path), "a path")


def texts(values: Iterable[Any], what: str = "a name") -> Any:
    encoded = [text(value, what) for value in values]
    return (c_char_p * len(encoded))(*encoded)


def setting_text(value: Any) -> str:
    """A value as the command line writes it."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(setting_text(part) for part in value)
    return str(value)


def settings(values: Mapping[str, Any]) -> "tuple[Any, int]":
    """Keyword arguments as the library's settings; None leaves the default."""
    given = [(text(name.rstrip("_") if isinstance(name, str) else name).replace(b"_", b"-"), text(setting_text(value), name)) for name, value in values.items()
             if value is not None]
    return (Setting * len(given))(*given), len(given)


class Handle:
    """Owns a handle of the library."""

    _free: Any = None

    def __init__(self, pointer: c_void_p) -> None:
        self.pointer: Optional[c_void_p] = pointer

    @property
    def _as_parameter_(self) -> Optional[c_void_p]:
        return self.pointer  # ctypes asks for it: a call that is given the handle keeps it alive

    def __del__(self) -> None:
        pointer, self.pointer = getattr(self, "pointer", None), None
        if pointer and self._free is not None:
            self._free(pointer)


class Data(Handle):
    """A data set, and the arrays that it points into."""

    _free = library.lacuna_data_free

    def __init__(self, pointer: c_void_p) -> None:
        super().__init__(pointer)
        self.alive: "list[Any]" = []

    @classmethod
    def new(cls, rows: int) -> "Data":
        return made(cls, "lacuna_data_new", rows)


class Folds(Handle):
    _free = library.lacuna_folds_free


class Model(Handle):
    """A model; pickles and copies carry the bytes of its file."""

    _free = library.lacuna_model_free

    def __reduce__(self) -> Any:
        return restored, (self.store(),)

    def store(self) -> bytes:
        pointer, size = c_void_p(), c_size_t()
        call("lacuna_model_store", self, byref(pointer), byref(size))
        try:
            return ctypes.string_at(pointer, size.value)
        finally:
            library.lacuna_free(pointer)

    def describe(self) -> "dict[str, Any]":
        return call_json("lacuna_model_describe", self)


def made(kind: Any, name: str, *arguments: Any) -> Any:
    """The handle that a function gives as its last output."""
    pointer = c_void_p()
    call(name, *arguments, byref(pointer))
    return kind(pointer)


def restored(stored: bytes) -> Model:
    return made(Model, "lacuna_model_restore", stored, len(stored))


def metric_names() -> "list[str]":
    names: "list[str]" = []
    while (name := library.lacuna_metric_name(len(names))) is not None:
        names.append(name.decode())
    return names
