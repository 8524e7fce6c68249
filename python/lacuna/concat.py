"""The classifier for one matrix of concatenated views, for use with scikit-learn's tools."""
from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any, Callable, Iterator, Optional

import numpy as np

from . import _views
from ._native import DataError
from ._parameters import Estimator, not_fitted, with_settings
from .classifier import Classifier

FEW = 8  # rows


@contextlib.contextmanager
def finite_words() -> Iterator[None]:
    """Uses scikit-learn's wording where a value is not finite."""
    try:
        yield
    except DataError as error:
        if "finite" not in str(error):
            raise
        raise DataError(f"Input X contains NaN or infinity: {error}") from None


def _sklearn(module: str, name: str, otherwise: Any) -> Any:
    """A class of scikit-learn, if scikit-learn has been imported."""
    return getattr(sys.modules.get(module), name, otherwise)


@with_settings
class ConcatClassifier(Estimator):
    """A classifier for one matrix X of concatenated views.

    It works with Pipeline, GridSearchCV, cross_validate and the other tools of scikit-learn. y has one class per item,
    or several labels (items, labels) of 1, 0 and NaN (unknown).

    Parameters
    ----------
    views : the columns of each view: (first, last + 1), a list of column numbers, or a list of column names of a
        DataFrame; in a list, or in a dict by name. Every column belongs to one view. None: all columns are one view. A
        row that is NaN in all columns of a view does not have it.
    method, preset, seed, hold_out, threads, device, verbose, **settings : as in Classifier.

    >>> import lacuna
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lacuna.ConcatClassifier(views=[(0, 2), (2, 4)], epochs=40, members=1).fit(X, y)
    >>> clf.predict(X).shape, clf.score(X, y) > .8
    ((150,), True)
    """

    _own = Estimator._own | {"views"}

    def __init__(self, views: Optional[Any] = None, method: Optional[str] = None, preset: Optional[str] = None,
                 **parameters: Any) -> None:
        super().__init__(method, preset, **parameters)
        self.views = views

    # ---- input

    def _matrix(self, X: Any, fitting: bool) -> Any:
        """X as a sparse matrix or as numbers of two dimensions; names and number of columns are checked."""
        names = None
        if _views.is_frame(X):
            texts = [isinstance(column, str) for column in X.columns]
            if any(texts) and not all(texts):
                raise TypeError("Feature names are only supported if all input features have string names; make them "
                                "strings with X.columns = X.columns.astype(str)")
            names = np.asarray(X.columns, dtype=object) if all(texts) else None
            X = _views.frame_values(X, "X")
        elif _views.is_sparse(X):
            X = _views.checked_csr(X, "X")
            if X.dtype.kind == "c":
                raise ValueError("Complex data not supported: X is sparse and complex")
        else:
            X = _views.dense(X, "X")
        if fitting:
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            self._check_names(names)
        for count, what in zip(X.shape, ("sample", "feature")):
            if count == 0:
                raise DataError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
        if fitting:
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise DataError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                            "features as input")
        return X

    def _check_names(self, names: Optional[np.ndarray]) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        if names is None and fitted is None:
            return
        if fitted is None:
            warnings.warn(f"X has feature names, but {type(self).__name__} was fitted without feature names", stacklevel=4)
        elif names is None:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                          stacklevel=4)
        elif len(names) != len(fitted) or (names != fitted).any():
            unseen, lost = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
            text = "The feature names should match those that were passed during fit.\n"
            for about, found in (("Feature names unseen at fit time", unseen),
                                 ("Feature names seen at fit time, yet now missing", lost)):
                if found:
                    text += about + ":\n" + "".join(f"- {name}\n" for name in found[:5]) + ("- ...\n" if found[5:] else "")
            if not unseen and not lost:
                text += "Feature names must be in the same order as they were in fit.\n"
            raise DataError(text)

    def _columns(self) -> "dict[str, Any]":
        """The columns of each view, as an index into X."""
        width = self.n_features_in_
        if self.views is None:
            return {"view0": slice(0, width)}
        given = self.views.items() if isinstance(self.views, dict) else \
            ((f"view{v}", columns) for v, columns in enumerate(self.views))
        found = {name: self._one_view(name, columns, width) for name, columns in given}
        if not found:
            raise DataError("views is empty: there is nothing to learn from")
        self._check_partition(found, width)
        return found

    def _check_partition(self, views: "dict[str, Any]", width: int) -> None:
        """Every column of X belongs to one view."""
        count = np.zeros(width, dtype=int)
        for columns in views.values():
            np.add.at(count, np.arange(width)[columns], 1)
        names = getattr(self, "feature_names_in_", None)
        told = [f"{what} {', '.join(str(j) if names is None else repr(names[j]) for j in found[:5])}"
                f"{', ...' if len(found) > 5 else ''} ({len(found)} of {width})"
                for what, found in (("no view has the columns", np.flatnonzero(count == 0)),
                                    ("several views have the columns", np.flatnonzero(count > 1))) if len(found)]
        if told:
            raise DataError(f"views: {'; '.join(told)}; every column of X belongs to one view, so leave out of X what is "
                            "not to be used")

    def _one_view(self, name: str, columns: Any, width: int) -> Any:
        if isinstance(columns, slice):
            return columns
        pair = isinstance(columns, tuple)
        columns = list(columns)
        if columns and all(isinstance(column, str) for column in columns):
            order = {column: k for k, column in enumerate(getattr(self, "feature_names_in_", []))}
            lost = [column for column in columns if column not in order]
            if lost:
                raise DataError(f"view '{name}': X has no column '{lost[0]}'")
            return [order[column] for column in columns]
        if pair and len(columns) == 2:
            first, last = columns
            if not 0 <= first < last <= width:
                raise DataError(f"view '{name}' is columns {first} to {last - 1}, X has {width} (0 to {width - 1})")
            return slice(first, last)
        for column in columns:
            if not 0 <= column < width:
                raise DataError(f"view '{name}': there is no column {column}, X has {width} (0 to {width - 1})")
        if not columns:
            raise DataError(f"view '{name}' has no columns")
        return columns

    def _split(self, X: Any) -> "dict[str, Any]":
        return {name: X[:, columns] for name, columns in self._columns().items()}

    def _codes(self, y: Any, rows: int) -> Any:
        """The classes as labels, one column each; several labels as they are. Sets classes_ and multilabel_."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        if _views.is_sparse(y) or _views.is_frame(y) and y.shape[1] != 1 or self._lists_of_tags(y):
            labels = _views.Labels(y)
        else:
            try:
                values = np.asarray(y)
            except ValueError as error:
                raise DataError(f"y is neither classes nor labels (items, labels): {error}") from None
            if values.ndim == 2 and values.shape[1] == 1:
                warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                              "(n_samples,), for example using ravel().",
                              _sklearn("sklearn.exceptions", "DataConversionWarning", UserWarning), stacklevel=3)
                values = values.ravel()
            if values.ndim == 1:
                return self._one_hot(values, rows)
            labels = _views.Labels(y if isinstance(y, np.ma.MaskedArray) else values)
        self.multilabel_ = True
        self.classes_ = np.arange(labels.values.shape[1]) if labels.names is None else np.array(labels.names)
        labels.index = None
        return labels

    @staticmethod
    def _lists_of_tags(y: Any) -> bool:
        rows = y.to_numpy() if _views.is_series(y) else y
        return isinstance(rows, (list, tuple, np.ndarray)) and getattr(rows, "dtype", object) == object and \
            not all(isinstance(row, str) for row in rows) and _views.tag_rows(rows) is not None

    def _one_hot(self, y: np.ndarray, rows: int) -> Any:
        if y.dtype.kind == "f":
            if not np.isfinite(y).all():
                raise DataError("Input y contains NaN or infinity: an item of an unknown class cannot be learned from; "
                                "several labels (items, labels) may contain NaN")
            if (y != np.floor(y)).any():
                raise DataError("Unknown label type: 'continuous': y contains fractions, expected classes")
        if len(y) != rows:
            raise DataError(f"Found input variables with inconsistent numbers of samples: [{rows}, {len(y)}]")
        self.multilabel_ = False
        try:
            self.classes_, code = np.unique(y, return_inverse=True)
        except TypeError:
            raise DataError("Unknown label type: y mixes strings and numbers, or contains neither") from None
        if len(self.classes_) == 1:
            raise DataError(f"y has one class, {self.classes_[0]!r}: at least two are needed")
        values = np.zeros((len(y), len(self.classes_)), dtype=np.int8)
        values[np.arange(len(y)), code] = 1
        labels = _views.Labels(values)
        return labels

    # ---- learning and using

    def fit(self, X: Any, y: Any = None) -> "ConcatClassifier":
        """Learns from X (items, columns) and y. Ctrl-C is a KeyboardInterrupt here, so that it ends a search over
        many fits; the estimator keeps what was learned so far."""
        X = self._matrix(X, fitting=True)
        labels = self._codes(y, X.shape[0])
        parameters = {name: getattr(self, name) for name in self._known() if name != "views"}
        inner = Classifier(**parameters)
        with finite_words():
            data = _views.table(self._split(X), labels, fitting=True).data
        interrupts = inner._run(data)
        self._classifier = inner
        self.history_ = inner.history_
        if interrupts:
            raise KeyboardInterrupt
        return self

    def _inner(self) -> Classifier:
        if not hasattr(self, "_classifier"):
            raise not_fitted(self)
        return self._classifier

    def _whole(self, X: Any, use: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Few rows are computed differently from many and round differently; padding makes each row independent of the others."""
        X = self._matrix(X, fitting=False)
        rows = X.shape[0]
        if rows < FEW:
            X = X[np.arange(FEW) % rows]
        with finite_words():
            return use(self._split(X))[:rows]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, which add up to 1; or of each of several labels. NaN if an item has no view."""
        scores = self._whole(X, self._inner().predict_proba)
        if self.multilabel_:
            return scores
        scores = np.clip(scores.astype(np.float64), 1e-12, None)
        return scores / scores.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second of two classes, log probabilities of more; for several labels, positive values are
        predicted."""
        inner = self._inner()
        if self.multilabel_:
            return self._whole(X, inner.decision_function)
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each item; or 1 and 0 for each of several labels (0 if an item has no view). An
        item without any view has no most probable class, which raises a ValueError."""
        inner = self._inner()
        if self.multilabel_:
            return self._whole(X, inner.predict).astype(np.int64)
        probabilities = self.predict_proba(X)
        bare = np.flatnonzero(np.isnan(probabilities[:, 0]))
        if len(bare):
            raise DataError(f"row {bare[0]} has no view, so no class can be predicted ({len(bare)} such rows); leave them "
                            "out, or use predict_proba, which gives NaN")
        return self.classes_[np.argmax(probabilities, axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classes; average precision over the known labels for several labels."""
        inner = self._inner()
        if self.multilabel_:
            if sample_weight is not None:
                raise ValueError("average precision takes no sample_weight")
            return inner.score(self._split(self._matrix(X, fitting=False)), y)
        return float(np.average(self.predict(X) == np.asarray(y).ravel(), weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classifier")

    # ---- scikit-learn's tags, before and after version 1.6

    def _more_tags(self) -> "dict[str, Any]":
        return {"multilabel": True, "requires_y": True, "X_types": ["2darray", "sparse"]}

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags
        return Tags(estimator_type="classifier", target_tags=TargetTags(required=True), transformer_tags=None,
                    classifier_tags=ClassifierTags(multi_label=True), regressor_tags=None,
                    input_tags=InputTags(sparse=True))
