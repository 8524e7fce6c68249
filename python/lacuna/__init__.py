"""Lacuna: multi-label learning from several feature sets ("views"), when some views are missing and only some labels
are known.

>>> import lacuna
>>> toy = lacuna.simulate(rows=200, views=3, labels=5)
>>> clf = lacuna.Classifier(epochs=2, members=1)
>>> clf = clf.fit(toy.Xs, toy.Y)
>>> round(clf.score(toy.Xs, toy.Y), 1) > 0
True
"""
from . import mask, metrics
from ._fit import StoppedEarly
from ._native import DataError, Diverged, Error, ModelMismatch, UsageError, library as _library
from ._parameters import methods, settings
from .classifier import Classifier, Report
from .concat import ConcatClassifier
from .data import Dataset, dataset, read, simulate
from .explain import Explanation

__version__: str = _library.lacuna_version().decode()
__all__ = ["Classifier", "ConcatClassifier", "DataError", "Dataset", "Diverged", "Error", "Explanation", "ModelMismatch", "Report",
           "StoppedEarly", "UsageError", "dataset", "mask", "methods", "metrics", "read", "settings", "simulate"]

for _public in (DataError, Diverged, Error, ModelMismatch, StoppedEarly, UsageError):
    _public.__module__ = __name__  # tracebacks show the public names
