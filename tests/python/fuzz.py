"""Throws random argument sets at the interface: every one gives a result or an exception of a known class.

usage: fuzz.py [COUNT] [SEED]     run with the library of the sanitizer build; a crash or a report of it ends this.
"""
import random
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

import lacuna
from lacuna import _native

KNOWN = (ValueError, TypeError, MemoryError, OverflowError, IndexError, lacuna.Error, OSError)
ODD = [None, float("nan"), float("inf"), -1, 0, 1, 2.5, 2**63, 2**70, -2**40, "", "x", "é\u0301", "a\0b", "\ud800", b"x", [],
       {}, (), object(), np.nan, True, "true", "1e999", [1, "a"], np.int8(3), np.float16(.5), 1j]


class Fuzz:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.folder = tempfile.mkdtemp()
        good = lacuna.simulate(rows=40, sizes=[3, 2], labels=3)
        self.models = [lacuna.Classifier(**fast).fit(good) for fast in
                       ({"epochs": 1, "members": 1, "keep_decoders": True}, {"method": "naim3l"}, {"method": "c2ae", "epochs": 1})]
        self.path = self.folder + "/m.safetensors"
        self.models[0].save(self.path)
        with open(self.path, "rb") as file:
            self.bytes = file.read()

    def pick(self, *choices):
        return self.draw.choice(choices)

    def matrix(self, rows, columns):
        d = self.draw
        if d.random() < .6:
            return self.numbers.normal(size=(rows, columns)).astype(np.float32)
        kind = self.pick("f4", "f8", "f2", "i1", "i8", "u2", "?", "O", "U3", "c8", "M8[s]", "V4", ">f4", ">f8", "f4", "f4")
        X = self.numbers.normal(size=(rows, columns)) * self.pick(1, 1e-30, 1e30, 1e300)
        if d.random() < .4 and X.size:
            X[self.numbers.random(X.shape) < self.pick(.02, .5, 1)] = self.pick(np.nan, np.inf, -np.inf, 0)
        if d.random() < .4 and rows:
            X[self.numbers.random(rows) < .4] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                X = np.zeros((rows, columns), kind) if kind in ("V4", "M8[s]") else X.astype(kind)
            except (OverflowError, ValueError, TypeError):
                pass
        change = self.pick(0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
        if change == 1:
            X = X[::-1, ::-1]
        elif change == 2:
            X = np.asfortranarray(X)
        elif change == 3:
            X = X[:, :, None]
        elif change == 4:
            X = X.ravel()
        elif change == 5:
            X = np.broadcast_to(X[:1], X.shape) if rows else X
        elif change == 6 and X.dtype.kind in "fiu" and X.dtype.isnative and X.dtype != np.float16:
            X = sp.csr_matrix(X)
            if d.random() < .5 and X.nnz:
                part = self.pick(X.indices, X.indptr, X.data)
                part[d.randrange(len(part))] = self.pick(-1, 0, 1, 10**6, 2**31 - 1)
        elif change == 7 and X.dtype.kind in "fiub" and X.ndim == 2:
            X = pd.DataFrame(X, index=[self.draw.randrange(2 * rows + 1) for _ in range(rows)])
        elif change == 8 and X.dtype.kind in "fiub":
            X = pd.DataFrame(X, columns=[str(self.draw.randrange(3 * columns + 1)) for _ in range(columns)])
        elif change == 9:
            X = X.tolist()
        elif change == 10:
            X = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (self.pick(rows, 2**20), columns), (0, 0))
        elif change == 11:
            X = np.ma.MaskedArray(X, self.numbers.random(X.shape) < .3) if X.dtype.kind == "f" else X
        elif change == 12:
            X = [None if d.random() < .3 else row for row in X.tolist()]
        return X

    def labels(self, rows):
        if self.draw.random() < .6:
            return (self.numbers.random((rows, 3)) < .4).astype(np.float32)
        columns = self.pick(0, 1, 2, 3, 3, 3)
        Y = (self.numbers.random((rows, columns)) < .4).astype(self.pick("f4", "f8", "i1", "?", "O", "i8"))
        change = self.pick(0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7)
        if change == 1 and Y.size:
            Y = Y.astype(object)
            Y[self.numbers.random(Y.shape) < .1] = self.pick(*ODD)
        elif change == 2:
            Y = [[self.pick("a", "b", "c")] * self.draw.randrange(3) if self.draw.random() < .8 else None for _ in range(rows)]
        elif change == 3:
            Y = sp.csr_matrix(Y.astype("f4"))
        elif change == 4:
            Y = pd.DataFrame(Y, index=[self.draw.randrange(2 * rows + 1) for _ in range(rows)])
        elif change == 5:
            Y = self.pick(*ODD)
        elif change == 6:
            Y = Y[:, 0] if columns else Y
        elif change == 7 and Y.dtype.kind == "f" and Y.size:
            Y[self.numbers.random(Y.shape) < .3] = np.nan
        return Y

    def views(self, rows, names):
        Xs = {}
        for name, columns in names:
            roll = self.draw.random()
            if roll < .05:
                continue
            shape = (rows + self.pick(*[0] * 40, 1, -1), columns + self.pick(*[0] * 40, 1, -1))
            Xs[self.pick(*[name] * 40, "other", "", 3, "\0")] = self.pick(*ODD) if roll < .1 else \
                self.matrix(max(shape[0], 0), max(shape[1], 0))
        roll = self.draw.random()
        return list(Xs.values()) if roll < .4 else self.pick(*ODD) if roll < .43 else Xs

    def fit(self):
        rows = self.pick(0, 1, 2, 5, *[24] * 8)
        settings = self.pick(*[{}] * 12, {"hold_out": self.pick(*ODD)}, {"seed": self.pick(*ODD)}, {"rate": self.pick(*ODD)},
                             {"batch": self.pick(*ODD)}, {"method": self.pick(*ODD, "naim3l")}, {"preset": self.pick(*ODD)},
                             {"threads": self.pick(None, 1, 3, -1, "x")}, {"aim": self.pick("top=2", "precision=.9", *ODD)},
                             {"components": self.pick(*ODD)}, {"device": self.pick("cpu", "cuda:7", *ODD)})
        clf = lacuna.Classifier(**{"epochs": 1, "members": 1, **settings})
        if settings.get("method") not in (None, "lacuna", "mtd"):
            del clf.epochs
        Xs = self.views(rows, [("a", 3), ("b", 2)])
        clf.fit(Xs, self.labels(rows), classes=self.pick(*[None] * 40, ["x", "y", "z"], *ODD))
        clf.predict_proba(Xs)

    def predict(self):
        clf = self.pick(*self.models)
        rows = self.pick(0, 1, 5, 24)
        Xs = self.views(rows, list(zip(clf.view_names_, clf.view_sizes_)))
        if self.draw.random() < .3:
            known = self.pick(self.labels(rows), [self.pick({"label0": self.pick(*ODD)}, ["label1"], None)] * rows, *ODD)
            return getattr(clf, self.pick("predict", "predict_proba", "predict_tags", "predict_frame"))(Xs, known_labels=known)
        getattr(clf, self.pick("predict", "predict_proba", "decision_function", "predict_tags", "explain", "recover"))(Xs)

    def score(self):
        clf = self.pick(*self.models)
        rows = self.pick(1, 5, 24)
        clf.score(self.views(rows, list(zip(clf.view_names_, clf.view_sizes_))), self.labels(rows))

    def metrics(self):
        rows = self.pick(0, 1, 5)
        lacuna.metrics.evaluate(self.labels(rows), self.matrix(rows, 3), self.pick(None, self.labels(rows)),
                                self.pick(.5, float("nan"), float("inf")))

    def mask(self):
        rows = self.pick(1, 5, 24)
        share = lambda: self.pick(0, .3, .5, 1, *ODD)
        getattr(lacuna.mask, self.pick("mcar", "mnar"))(self.views(rows, [("a", 3), ("b", 2)]), self.labels(rows),
                                                        missing_views=share(), missing_labels=share(), train=share())

    def concat(self):
        rows = self.pick(1, 5, 24)
        y = self.pick(self.labels(rows), self.numbers.integers(0, 3, rows), list("abc" * 8)[:rows])
        clf = lacuna.ConcatClassifier(views=self.pick(None, [(0, 2), (2, 4)], [[0], [9]], {"a": (0, 1)}, *ODD), epochs=1,
                                      members=1)
        X = self.matrix(rows, 4)
        clf.fit(X, y).predict(X)

    def file(self):
        content = bytearray(self.bytes[:self.pick(len(self.bytes), len(self.bytes), self.draw.randrange(len(self.bytes)))])
        for _ in range(self.pick(0, 1, 5)):
            content[self.draw.randrange(min(len(content), self.pick(100, 5000, 10**9)))] = self.draw.randrange(256)
        if self.draw.random() < .5:
            with open(self.path, "wb") as file:
                file.write(content)
            lacuna.Classifier.load(self.path)
        else:
            _native.restored(bytes(content))

    def simulate(self):
        lacuna.simulate(rows=self.pick(0, 1, 30, *ODD), labels=self.pick(0, 1, 5, *ODD), views=self.pick(1, 3, 0, *ODD),
                        noise=self.pick(0, 1, *ODD), like=self.pick(None, None, "nowhere"))

    def settings(self):
        lacuna.settings(self.pick("lacuna", "naim3l", *[odd for odd in ODD if isinstance(odd, (str, type(None)))]))
        lacuna.Classifier().set_params(**{self.pick("epochs", "rate", "views", "zz"): self.pick(*ODD)})

    def once(self):
        what = self.pick(*["fit"] * 5, *["predict"] * 4, "score", "score", "metrics", "mask", "concat", "file", "file",
                         "simulate", "settings")
        getattr(self, what)()
        return what


def main():
    count, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    fuzz, done, refused = Fuzz(seed), 0, {}
    for k in range(count):
        state = fuzz.draw.getstate()
        try:
            fuzz.once()
            done += 1
        except KNOWN as error:
            refused[type(error).__name__] = refused.get(type(error).__name__, 0) + 1
            if not str(error):
                raise AssertionError(f"set {k} of seed {seed}: a {type(error).__name__} without a word") from error
        except BaseException as error:
            raise AssertionError(f"set {k} of seed {seed}: {type(error).__name__}: {error}") from error
    print(f"{count} argument sets: {done} were carried out; refused: {refused}")
    if done < count // 10 or sum(refused.values()) < count // 10:
        raise AssertionError("the argument sets are too good or too bad to test anything")


if __name__ == "__main__":
    main()
