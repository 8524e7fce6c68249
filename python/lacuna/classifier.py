"""A classifier of items with several views, in the manner of scikit-learn."""
from __future__ import annotations

import difflib
import functools
import inspect
import keyword
import os
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import _fit, _native, _views, metrics
from .data import Dataset
from .explain import Explanation, explain


@functools.lru_cache(maxsize=None)
def methods() -> "dict[str, dict[str, Any]]":
    """All methods by name, with their presets and what they can do.

    >>> import lacuna
    >>> "naim3l" in lacuna.methods()
    True
    """
    return {entry["name"]: entry for entry in _native.call_json("lacuna_methods")}


@functools.lru_cache(maxsize=None)
def settings(method: Optional[str] = None, preset: Optional[str] = None) -> "dict[str, dict[str, Any]]":
    """All settings of a method: name, type, default (of the preset), range or choices, and help.

    >>> import lacuna
    >>> lacuna.settings()["epochs"]["type"]
    'integer'
    """
    model = _fit.new_model(method, preset, {})
    return {python_name(entry["name"]): {**entry, "help": _native.spoken(entry["help"])}
            for entry in _native.call_json("lacuna_model_settings", model)}


def python_name(name: str) -> str:
    """missing-views is missing_views, lambda is lambda_."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


@functools.lru_cache(maxsize=None)
def _setting_names() -> "frozenset[str]":
    return frozenset(name for method in methods() for name in settings(method))


def not_fitted(estimator: Any) -> Exception:
    """scikit-learn's own exception where it is there."""
    text = f"This {type(estimator).__name__} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _native.UsageError(text)
    return NotFittedError(text)


class Parameters:
    """get_params and set_params over the attributes that the constructor set. Settings of methods come and go with
    what the user gives, so that they cannot be read off a signature."""

    def _known(self) -> "list[str]":
        return [name for name in vars(self) if not name.startswith("_") and
                (not name.endswith("_") or name in _setting_names())]

    def get_params(self, deep: bool = True) -> "dict[str, Any]":
        """The parameters that were given or have defaults, by name."""
        return {name: getattr(self, name) for name in sorted(self._known())}

    def set_params(self, **parameters: Any) -> Any:
        """Sets parameters and settings of the method by name."""
        known = self._known()
        for name, value in parameters.items():
            if name not in known and name not in _setting_names():
                raise ValueError(f"Invalid parameter '{name}' for estimator {self!r}{self._nearest(name)}")
            setattr(self, name, value)
        return self

    def _take_settings(self, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            if name not in _setting_names():
                raise TypeError(f"{type(self).__name__} has no parameter '{name}'{self._nearest(name)}")
            if value is not None:
                setattr(self, name, value)

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self._known(), *_setting_names()], 1)
        return f"; did you mean '{near[0]}'?" if near else " (lacuna.settings() lists those of a method)"

    def _settings(self) -> "dict[str, Any]":
        own = self._own
        return {name: getattr(self, name) for name in self._known() if name not in own}

    _own: "frozenset[str]" = frozenset()

    def __repr__(self) -> str:
        fresh = type(self)()
        changed = [f"{name}={value!r}" for name, value in sorted(self.get_params().items())
                   if not (hasattr(fresh, name) and repr(getattr(fresh, name)) == repr(value))]
        return f"{type(self).__name__}({', '.join(changed)})"


def with_settings(cls: Any) -> Any:
    """Shows every setting of every method as a keyword of the constructor, for completion and for introspection."""
    shown = inspect.signature(cls.__init__)
    fixed = [parameter for parameter in shown.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in sorted(_setting_names()) if name not in shown.parameters]
    cls.__init__.__signature__ = shown.replace(parameters=[*fixed, *more])
    return cls


@with_settings
class Classifier(Parameters):
    """Tags items that are described by several views, of which some may be missing, from labels known in part.

    Parameters
    ----------
    method : which method learns; None is 'lacuna', or the method that has the preset. lacuna.methods() lists them.
    preset : a named set of the method's settings; None is the method's default ('best' for 'lacuna').
    seed : all random numbers follow from it.
    hold_out : share of the rows held out for selection, thresholds and calibration.
    threads : threads of the whole process; None leaves them as they are (all). Results do not depend on it.
    calibrated : what predict_proba gives. None: the method's own probabilities, calibrated ones where it has none.
        True: calibrated ones. False: the method's scores, whatever they are.
    verbose : show progress, in a terminal or in a notebook.
    **settings : every setting of the method by its name, such as epochs=50; lacuna.settings() explains them.

    Attributes of a fitted classifier: classes_, view_names_, view_sizes_, n_features_in_, history_, validation_,
    thresholds_, stopped_.

    >>> import lacuna
    >>> toy = lacuna.simulate(rows=200, views=3, labels=5, seed=1)
    >>> clf = lacuna.Classifier(epochs=2, members=1).fit(toy.Xs, toy.Y)
    >>> clf.predict_proba(toy.Xs).shape
    (200, 5)
    """

    _own = frozenset({"method", "preset", "seed", "hold_out", "threads", "calibrated", "verbose"})
    _estimator_type = "classifier"

    def __init__(self, method: Optional[str] = None, preset: Optional[str] = None, *, seed: int = 1,
                 hold_out: float = .15, threads: Optional[int] = None, calibrated: Optional[bool] = None,
                 verbose: bool = False, **settings: Any) -> None:
        self.method = method
        self.preset = preset
        self.seed = seed
        self.hold_out = hold_out
        self.threads = threads
        self.calibrated = calibrated
        self.verbose = verbose
        self._take_settings(settings)

    # ---- learning

    def fit(self, Xs: Any, Y: Any = None, *, validation: Optional["tuple[Any, Any]"] = None,
            classes: Optional[Sequence[str]] = None, callback: Optional[Callable[["dict[str, Any]"], Any]] = None
            ) -> "Classifier":
        """Learns from views and labels.

        Xs : a list or dict of views (arrays, DataFrames, SciPy sparse matrices), or a Dataset. A missing instance is
            a row of NaN, or an id that a DataFrame does not have: DataFrames are joined by their index.
        Y : labels (items, labels) of 1, 0 and NaN (unknown), dense, sparse or as a DataFrame; or a list of tags for
            each item, None where nothing is known. Not needed for a Dataset with labels.
        validation : (Xs, Y) to select on, instead of held-out rows.
        classes : names of the labels, for arrays.
        callback : called after each epoch with a dict; a true result ends the fit there.

        Ctrl-C ends the fit with what it has learned so far, and a warning (lacuna.StoppedEarly); a second Ctrl-C
        is a KeyboardInterrupt as well.
        """
        data, names, columns = self._learning_data(Xs, Y, classes)
        val = None if validation is None else self._learning_data(*validation, classes=names, columns=columns)[0]
        interrupts = self._run(data, val, callback, columns)
        if interrupts > 1:
            raise KeyboardInterrupt
        return self

    def _run(self, data: _native.Data, val: Optional[_native.Data] = None, callback: Any = None,
             columns: Optional["dict[str, list[str]]"] = None) -> int:
        """Fits; returns how often Ctrl-C was pressed."""
        fitted = _fit.run(self.method, self.preset, self._settings(), data, val, seed=self.seed, hold_out=self.hold_out,
                          threads=self.threads, verbose=self.verbose, callback=callback)
        self._adopt(fitted.model, fitted.history, fitted.stopped)
        self._columns = columns or {}
        if fitted.error is not None:
            raise fitted.error
        if fitted.interrupts and not fitted.stopped:  # it came too late to stop anything
            raise KeyboardInterrupt
        if fitted.interrupts:
            fitted.warn()
        return fitted.interrupts

    def _learning_data(self, Xs: Any, Y: Any = None, classes: Optional[Sequence[str]] = None,
                       columns: Any = None) -> "tuple[_native.Data, list[str] | None, dict[str, list[str]]]":
        if isinstance(Xs, Dataset):
            if Y is not None:
                raise TypeError("a Dataset brings its labels: Y is given twice")
            return Xs._data, None, {name: names for name, names in Xs.column_names.items() if names}
        if Y is None:
            raise TypeError("fit needs labels: Y is None (only a Dataset brings its own)")
        labels = _views.Labels(Y, classes)
        table = _views.table(Xs, labels, fitting=True, columns=columns)
        return table.data, labels.names, table.columns

    def _adopt(self, model: _native.Model, history: "list[dict[str, Any]]", stopped: bool) -> None:
        about = model.describe()
        self._model = model
        self._probabilities = about["probabilities"]
        self.classes_ = np.array([label["name"] for label in about["labels"]])
        self.view_names_ = [view["name"] for view in about["views"]]
        self.view_sizes_ = [view["columns"] for view in about["views"]]
        self.n_features_in_ = sum(self.view_sizes_)
        thresholds = [label["threshold"] for label in about["labels"]]
        self.thresholds_ = None if None in thresholds else np.array(thresholds, dtype=np.float32)
        self.validation_ = about["validation"]
        self.history_ = history
        self.stopped_ = stopped

    # ---- using

    def _fitted(self) -> _native.Model:
        model = getattr(self, "_model", None)
        if model is None:
            raise not_fitted(self)
        return model

    def _table(self, Xs: Any) -> "tuple[_native.Data, int, Any]":
        if isinstance(Xs, Dataset):
            return Xs._data, Xs.rows, None
        table = _views.table(Xs, names=self.view_names_, columns=self._columns)
        return table.data, table.rows, table.index

    def _raw(self, Xs: Any) -> "tuple[np.ndarray, Any]":
        model = self._fitted()
        data, rows, index = self._table(Xs)
        _fit.set_threads(self.threads)
        scores = np.empty((rows, len(self.classes_)), dtype=np.float32)
        _native.call("lacuna_model_predict", model, data, scores.ctypes.data)
        return scores, index

    def _probability(self, scores: np.ndarray) -> np.ndarray:
        if self.calibrated or (self.calibrated is None and not self._probabilities):
            _native.call("lacuna_model_calibrate", self._fitted(), scores.ctypes.data, len(scores))
        return scores

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        decided = np.empty(scores.shape, dtype=np.int8)
        _native.call("lacuna_model_decide", self._fitted(), scores.ctypes.data, len(scores),
                     decided.ctypes.data)
        return decided

    def predict_proba(self, Xs: Any) -> np.ndarray:
        """Probabilities (items, labels), float32. DataFrames with different indices give the rows of all their ids,
        in the order in which they first appear; predict_frame shows them."""
        return self._probability(self._raw(Xs)[0])

    def decision_function(self, Xs: Any) -> np.ndarray:
        """Scores (items, labels) less the thresholds: what is above 0 is predicted. Without thresholds (no rows were
        held out, or aim='top=K') the scores less .5."""
        scores, _ = self._raw(Xs)
        return scores - (np.float32(.5) if self.thresholds_ is None else self.thresholds_)

    def predict(self, Xs: Any) -> np.ndarray:
        """1 or 0 (items, labels), by the thresholds chosen on the held-out rows."""
        return self._decide(self._raw(Xs)[0])

    def predict_tags(self, Xs: Any, top: Optional[int] = None) -> "list[list[str]]":
        """The tags of each item, best first: those that predict decides, or the `top` best."""
        scores, _ = self._raw(Xs)
        order = np.argsort(-scores, axis=1, kind="stable")
        if top is not None:
            return [[str(self.classes_[j]) for j in row[:top]] for row in order]
        decided = self._decide(scores)
        return [[str(self.classes_[j]) for j in row if decided[i, j]] for i, row in enumerate(order)]

    def predict_frame(self, Xs: Any) -> Any:
        """predict_proba as a DataFrame with the ids of the items and the names of the labels."""
        import pandas
        scores, index = self._raw(Xs)
        return pandas.DataFrame(self._probability(scores), index=index, columns=list(self.classes_))

    def score(self, Xs: Any, Y: Any = None) -> float:
        """Average precision (the paper's AP) over the known labels."""
        self._fitted()
        if isinstance(Xs, Dataset) and Y is None:
            return metrics.evaluate(Xs.Y, self._raw(Xs)[0])["AP"]
        labels = _views.Labels(Y, list(self.classes_))
        table = _views.table(Xs, labels, names=self.view_names_, columns=self._columns)
        scores = np.empty((table.rows, len(self.classes_)), dtype=np.float32)
        _native.call("lacuna_model_predict", self._fitted(), table.data, scores.ctypes.data)
        return metrics._evaluate(scores, labels.values)["AP"]

    def explain(self, Xs: Any) -> Explanation:
        """What each view adds to the scores of each item: exact Shapley values, score = base + their sum."""
        model = self._fitted()
        return explain(model, Xs.Xs if isinstance(Xs, Dataset) else Xs, self.view_names_, self.view_sizes_, self.classes_,
                       self._probabilities, self._columns)

    def report(self, Xs: Any, Y: Any = None, title: Optional[str] = None) -> "Report":
        """A page about the model on labelled items; a notebook shows it."""
        model = self._fitted()
        if isinstance(Xs, Dataset) and Y is None:
            data = Xs._data
        else:
            data = _views.table(Xs, _views.Labels(Y, list(self.classes_)), names=self.view_names_,
                                columns=self._columns).data
        return Report(_native.call_text("lacuna_model_report", model, data,
                                        None if title is None else _native.text(title, "the title")))

    def describe(self) -> "dict[str, Any]":
        """All that is known about the fitted model: method, settings, views, labels, validation, ..."""
        return self._fitted().describe()

    # ---- files

    def save(self, path: "os.PathLike[str] | str") -> None:
        """Writes a model file, the same that `lacuna train` writes."""
        _native.call("lacuna_model_save", self._fitted(), _native.path_text(path))

    @classmethod
    def load(cls, path: "os.PathLike[str] | str") -> "Classifier":
        """Reads a model file, of `lacuna train` or of save."""
        if not os.path.exists(path):
            raise FileNotFoundError(2, "there is no such model file", os.fspath(path))
        model = _native.made(_native.Model, "lacuna_model_load", _native.path_text(path))
        about = model.describe()
        changed = {python_name(entry["name"]): typed(entry)
                   for entry in _native.call_json("lacuna_model_settings", model)
                   if entry["value"] != entry["default"]}
        loaded = cls(about["method"], about["preset"] or None, seed=about["notes"].get("seed", 1), **changed)
        loaded._adopt(model, [], False)
        loaded._columns = {view["name"]: view["column_names"] for view in about["views"] if view.get("column_names")}
        return loaded

    def _more_tags(self) -> "dict[str, Any]":
        return {"multilabel": True, "requires_y": True, "allow_nan": True}


def typed(entry: Mapping[str, Any]) -> Any:
    """The value of a setting as Python has it."""
    value = entry["value"]
    kinds: "dict[str, Callable[[str], Any]]" = {
        "bool": lambda text: text == "true", "integer": int, "number": float,
        "texts": lambda text: text.split(",") if text else [],
        "numbers": lambda text: [float(part) for part in text.split(",")] if text else []}
    return kinds.get(entry["type"], str)(value)


class Report:
    """A page of HTML. A notebook shows it; save writes it."""

    def __init__(self, html: str) -> None:
        self.html = html

    def _repr_html_(self) -> str:
        escaped = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{escaped}" style="width:100%;height:640px;border:0"></iframe>'

    def save(self, path: "os.PathLike[str] | str") -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return f"<lacuna.Report of {len(self.html)} characters; .save(path) writes it>"
