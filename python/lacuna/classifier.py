"""A multi-view classifier in the style of scikit-learn."""
from __future__ import annotations

import os
from ctypes import byref, c_void_p
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import _fit, _known, _native, _views, metrics
from ._parameters import Estimator, not_fitted, python_name, with_settings
from .data import Dataset
from .explain import Explanation


@with_settings
class Classifier(Estimator):
    """A multi-label classifier of items with several views. Views may be missing, and labels may be unknown.

    Parameters
    ----------
    method : the method; None is 'lacuna', or the method that has the preset. lacuna.methods() lists them.
    preset : a named set of the method's settings; None is the method's default ('best' for 'lacuna').
    seed : seed of all random numbers.
    hold_out : share of the rows held out for selection, thresholds and calibration.
    threads : threads of the whole process; None leaves them unchanged (all). Does not change results.
    device : device of networks, for the whole process: 'cpu', 'cuda', 'cuda:1', or 'auto' for a GPU if available.
        None leaves it unchanged (the CPU). A GPU rounds differently.
    calibrated : what predict_proba returns. None: the method's own probabilities, or calibrated ones if it has none.
        True: calibrated probabilities. False: the method's scores.
    verbose : show progress in a terminal or a notebook.
    **settings : every setting of the method by its name, such as epochs=50; lacuna.settings() explains them.

    Attributes of a fitted classifier: classes_, view_names_, view_sizes_, n_features_in_, column_names_ (of each view
    whose columns have names), history_, validation_, thresholds_, stopped_.

    >>> import lacuna
    >>> toy = lacuna.simulate(rows=200, views=3, labels=5, seed=1)
    >>> clf = lacuna.Classifier(epochs=2, members=1).fit(toy.Xs, toy.Y)
    >>> clf.predict_proba(toy.Xs).shape
    (200, 5)
    """

    _own = Estimator._own | {"calibrated"}

    def __init__(self, method: Optional[str] = None, preset: Optional[str] = None, *,
                 calibrated: Optional[bool] = None, **parameters: Any) -> None:
        super().__init__(method, preset, **parameters)
        self.calibrated = calibrated

    # ---- learning

    def fit(self, Xs: Any, Y: Any = None, *, validation: Optional["tuple[Any, Any]"] = None,
            classes: Optional[Sequence[str]] = None, callback: Optional[Callable[["dict[str, Any]"], Any]] = None
            ) -> "Classifier":
        """Learns from views and labels.

        Xs : a list or dict of views (arrays, DataFrames, SciPy sparse matrices), or a Dataset. A missing instance is
            a row of NaN, or an id that is not in a DataFrame: DataFrames are joined by their index.
        Y : labels (items, labels) of 1, 0 and NaN (unknown), dense, sparse or as a DataFrame; or a list of tags for
            each item, None for unknown. Not needed for a Dataset with labels.
        validation : (Xs, Y) to select on, instead of held-out rows.
        classes : names of the labels, for arrays.
        callback : called after each epoch with a dict; a true result ends the fit.

        Ctrl-C ends the fit, keeps what was learned so far and warns (lacuna.StoppedEarly); a second Ctrl-C also raises
        KeyboardInterrupt.
        """
        if validation is not None and not (isinstance(validation, (tuple, list)) and len(validation) in (1, 2)):
            raise TypeError(f"validation is a pair (Xs, Y), or (Dataset,), not {type(validation).__name__}"
                            f"{f' of {len(validation)}' if isinstance(validation, (tuple, list)) else ''}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is a function of one dict, not {callback!r}")
        data, names, columns = self._learning_data(Xs, Y, classes)
        val = None if validation is None else self._learning_data(*validation, classes=names, columns=columns)[0]
        interrupts = self._run(data, val, callback)
        if interrupts > 1:
            raise KeyboardInterrupt
        return self

    def _run(self, data: _native.Data, val: Optional[_native.Data] = None, callback: Any = None) -> int:
        """Fits; returns how often Ctrl-C was pressed."""
        fitted = _fit.run(self.method, self.preset, self._settings(), data, val, seed=self.seed, hold_out=self.hold_out,
                          threads=self.threads, device=self.device, verbose=self.verbose, callback=callback)
        self._adopt(fitted.model, fitted.history, fitted.stopped)
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
        self.column_names_ = {view["name"]: view["column_names"] for view in about["views"] if view["column_names"]}
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
        table = _views.table(Xs, names=self.view_names_, columns=self.column_names_)
        return table.data, table.rows, table.index

    def _labelled(self, Xs: Any, Y: Any) -> "tuple[_native.Data, np.ndarray]":
        """Items with their true labels: the data, and the labels as -1, 0, 1."""
        self._fitted()
        if isinstance(Xs, Dataset) and Y is None:
            return Xs._data, _views.coded(Xs.Y)
        labels = _views.Labels(Y, list(self.classes_))
        return _views.table(Xs, labels, names=self.view_names_, columns=self.column_names_).data, labels.values

    def _scores(self, data: _native.Data, rows: int) -> np.ndarray:
        _fit.set_threads(self.threads)
        scores = np.empty((rows, len(self.classes_)), dtype=np.float32)
        _native.call("lacuna_model_predict", self._fitted(), data, scores.ctypes.data)
        return scores

    def _raw(self, Xs: Any, known_labels: Any = None) -> "tuple[np.ndarray, Any, Optional[np.ndarray]]":
        """Scores, the ids of the items, and their known labels."""
        model = self._fitted()
        data, rows, index = self._table(Xs)
        known = None if known_labels is None else _known.known(known_labels, self.classes_, rows, index)
        scores = self._scores(data, rows)
        if known is not None:
            _native.call("lacuna_model_refine", model, known.ctypes.data, scores.ctypes.data, rows)
        return scores, index, known

    def _probability(self, scores: np.ndarray, known: Optional[np.ndarray]) -> np.ndarray:
        if self.calibrated or (self.calibrated is None and not self._probabilities):
            _native.call("lacuna_model_calibrate", self._fitted(), scores.ctypes.data, len(scores))
        return scores if known is None else np.where(known < 0, scores, known.astype(np.float32))

    def _decide(self, scores: np.ndarray, known: Optional[np.ndarray]) -> np.ndarray:
        decided = np.empty(scores.shape, dtype=np.int8)
        _native.call("lacuna_model_decide", self._fitted(), scores.ctypes.data, len(scores),
                     decided.ctypes.data)
        return decided if known is None else np.where(known < 0, decided, known)

    def predict_proba(self, Xs: Any, known_labels: Any = None) -> np.ndarray:
        """Probabilities (items, labels), float32; NaN for an item without any view. DataFrames with different indices
        give the rows of all their ids, in the order in which they first appear; predict_frame shows them.

        known_labels : labels that the items already have; they become 1 or 0 and inform the others. For each item a
            list of tags, or a dict such as {"beach": 1, "city": 0} (None for unknown); a DataFrame with some of the
            labels as columns; or an array (items, labels) of 1, 0 and NaN.
        """
        scores, _, known = self._raw(Xs, known_labels)
        return self._probability(scores, known)

    def decision_function(self, Xs: Any) -> np.ndarray:
        """Scores (items, labels) minus thresholds: positive values are predicted. Without thresholds (no rows were held
        out, or aim='top=K') the scores minus .5. NaN for an item without any view."""
        scores = self._raw(Xs)[0]
        return scores - (np.float32(.5) if self.thresholds_ is None else self.thresholds_)

    def predict(self, Xs: Any, known_labels: Any = None) -> np.ndarray:
        """1 or 0 (items, labels), by the thresholds chosen on the held-out rows; 0 for an item without any view.
        known_labels : as in predict_proba."""
        scores, _, known = self._raw(Xs, known_labels)
        return self._decide(scores, known)

    def predict_tags(self, Xs: Any, top: Optional[int] = None, calibrated: bool = False,
                     known_labels: Any = None) -> "list[list[str]]":
        """The tags of each item, best first: those that predict decides, or the `top` best. An item without any view gets
        none. Tags are ordered by score, as in `lacuna predict --top`; with calibrated=True by calibrated probability, as
        in `lacuna serve`. known_labels : as in predict_proba; they are not suggested."""
        top = None if top is None else _fit.whole(top, "top")
        scores, _, known = self._raw(Xs, known_labels)
        ranked = scores.copy() if calibrated else scores
        if calibrated:
            _native.call("lacuna_model_calibrate", self._fitted(), ranked.ctypes.data, len(ranked))
        order = np.argsort(-ranked, axis=1, kind="stable")
        wanted = self._decide(scores, None) != 0 if top is None else ~np.isnan(scores)
        if known is not None:
            wanted &= known < 0
        return [[str(self.classes_[j]) for j in row if wanted[i, j]][:top] for i, row in enumerate(order)]

    def predict_frame(self, Xs: Any, known_labels: Any = None) -> Any:
        """predict_proba as a DataFrame with the ids of the items and the names of the labels."""
        import pandas
        scores, index, known = self._raw(Xs, known_labels)
        return pandas.DataFrame(self._probability(scores, known), index=index, columns=list(self.classes_))

    def score(self, Xs: Any, Y: Any = None) -> float:
        """Average precision (the paper's AP) over the known labels of the items that have a view."""
        data, truth = self._labelled(Xs, Y)
        return metrics._evaluate(self._scores(data, len(truth)), truth)["AP"]

    def explain(self, Xs: Any) -> Explanation:
        """What each view adds to the scores of each item: Shapley values, score = base + their sum. Exact for items with
        up to 12 views."""
        model = self._fitted()
        data, rows, index = self._table(Xs)
        _fit.set_threads(self.threads)
        score, base = (np.empty((rows, len(self.classes_))) for _ in range(2))
        values = np.empty((len(self.view_names_), *score.shape))
        _native.call("lacuna_explain", model, data, score.ctypes.data, base.ctypes.data, values.ctypes.data)
        return Explanation(self.view_names_, self.classes_, index, score, base, values)

    def recover(self, Xs: Any) -> "tuple[Dataset, Dataset]":
        """The items with their missing views reconstructed from the present ones, in the columns of the training data,
        and the standard deviations of the reconstructed values (0 elsewhere). Needs Classifier(keep_decoders=True). An
        item without any view cannot be recovered. `.Xs` of a Dataset are its views by name."""
        model = self._fitted()
        data, _, index = self._table(Xs)
        _fit.set_threads(self.threads)
        filled, deviations = c_void_p(), c_void_p()
        _native.call("lacuna_model_recover", model, data, byref(filled), byref(deviations))
        both = _native.Data(filled), _native.Data(deviations)
        if index is not None:
            ids = _native.texts(str(i) for i in index)
            for one in both:
                _native.call("lacuna_data_set_ids", one, ids)
        return Dataset(both[0]), Dataset(both[1])

    def report(self, Xs: Any, Y: Any = None, title: Optional[str] = None) -> "Report":
        """An HTML page about the model on labelled items; notebooks display it."""
        data, _ = self._labelled(Xs, Y)
        return Report(_native.call_text("lacuna_model_report", self._fitted(), data,
                                        None if title is None else _native.text(title, "the title")))

    def describe(self) -> "dict[str, Any]":
        """Everything about the fitted model: method, settings, views, labels, validation, ..."""
        return self._fitted().describe()

    # ---- files

    def save(self, path: "os.PathLike[str] | str") -> None:
        """Writes a model file, as `lacuna train` does."""
        _native.call("lacuna_model_save", self._fitted(), _native.path_text(path))

    @classmethod
    def load(cls, path: "os.PathLike[str] | str", device: Optional[str] = None) -> "Classifier":
        """Reads a model file of `lacuna train` or save. device : as in the constructor."""
        if not os.path.exists(path):
            raise FileNotFoundError(2, "there is no such model file", os.fspath(path))
        _fit.set_device(device)
        model = _native.made(_native.Model, "lacuna_model_load", _native.path_text(path))
        about = model.describe()
        changed = {python_name(entry["name"]): typed(entry)
                   for entry in _native.call_json("lacuna_model_settings", model)
                   if entry["value"] != entry["default"]}
        loaded = cls(about["method"], about["preset"] or None, seed=about["notes"].get("seed", 1), device=device,
                     **changed)
        loaded._adopt(model, [], False)
        return loaded

    def _more_tags(self) -> "dict[str, Any]":
        return {"multilabel": True, "requires_y": True, "allow_nan": True}


def typed(entry: Mapping[str, Any]) -> Any:
    """The value of a setting as a Python object."""
    value = entry["value"]
    kinds: "dict[str, Callable[[str], Any]]" = {
        "bool": lambda text: text == "true", "integer": int, "number": float,
        "texts": lambda text: text.split(",") if text else [],
        "numbers": lambda text: [float(part) for part in text.split(",")] if text else []}
    return kinds.get(entry["type"], str)(value)


class Report:
    """An HTML page. Notebooks display it; save writes it."""

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
