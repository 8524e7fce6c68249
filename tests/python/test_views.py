"""What fit and predict take: every form of views and labels gives the same bits, and nothing is copied needlessly."""
import unittest
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

import lacuna
from lacuna import _views
from support import Case, FAST, same, toy


def probabilities(Xs, Y, Xs_new=None, **fit):
    clf = lacuna.Classifier(**FAST).fit(Xs, Y, **fit)
    return clf.predict_proba(Xs if Xs_new is None else Xs_new)


class Forms(Case):
    @classmethod
    def setUpClass(cls):
        data = toy()
        cls.Xs = [np.array(X) for X in data.Xs.values()]
        cls.Y = data.Y
        cls.expected = probabilities(cls.Xs, cls.Y)

    def test_lists_dicts_and_tuples(self):
        same(self, probabilities(tuple(self.Xs), self.Y), self.expected)
        same(self, probabilities({f"view{v}": X for v, X in enumerate(self.Xs)}, self.Y), self.expected)

    def test_layouts_and_types(self):
        for change in (np.asfortranarray, lambda X: X.astype(np.float64), lambda X: X[::-1][::-1],
                       lambda X: np.hstack([X, X])[:, :X.shape[1]], lambda X: X.astype(">f4"), lambda X: X.tolist(),
                       lambda X: X.astype(object), lambda X: np.repeat(X, 2, axis=0)[::2], sp.csr_matrix, sp.coo_matrix,
                       lambda X: sp.csc_matrix(X.astype(np.float64))):
            Xs = [change(X) for X in self.Xs]
            # A sparse view is learned from as such, with other sums: only the forms of dense views give the same bits.
            if sp.issparse(Xs[0]):
                np.testing.assert_allclose(probabilities(Xs, self.Y), self.expected, atol=.02)
            else:
                same(self, probabilities(Xs, self.Y), self.expected)

    def test_float16_and_integers(self):
        Xs = [np.round(X * 4).astype(np.float32) for X in self.Xs]
        expected = probabilities(Xs, self.Y)
        for kind in (np.float16, np.int8, np.int32, np.int64):
            same(self, probabilities([X.astype(kind) for X in Xs], self.Y), expected)

    def test_labels(self):
        for Y in (self.Y.astype(bool), self.Y.astype(int), self.Y.astype(float).tolist(), sp.csr_matrix(self.Y),
                  pd.DataFrame(self.Y), np.asfortranarray(self.Y), self.Y.astype(object)):
            same(self, probabilities(self.Xs, Y), self.expected)

    def test_lists_of_tags(self):
        names = [f"tag{j}" for j in range(self.Y.shape[1])]
        tags = [[names[j] for j in np.flatnonzero(row)] for row in self.Y]
        for Y in (tags, [set(row) for row in tags], pd.Series(tags), np.array([tuple(r) for r in tags] + [None],
                                                                              dtype=object)[:-1]):
            clf = lacuna.Classifier(**FAST).fit(self.Xs, Y)
            self.assertEqual(list(clf.classes_), names)
            same(self, clf.predict_proba(self.Xs), self.expected)

    def test_unknown_labels_in_every_form(self):
        Y = self.Y.copy()
        Y[::4] = np.nan
        expected = probabilities(self.Xs, Y)
        self.assertFalse(np.array_equal(expected, self.expected))
        masked = np.ma.MaskedArray(np.nan_to_num(Y).astype(int), np.isnan(Y))
        tags = [None if np.isnan(row).any() else [f"t{j}" for j in np.flatnonzero(row)] for row in Y]
        mixed = [float("nan") if row is None else row for row in tags]
        for other in (masked, pd.DataFrame(Y), pd.DataFrame(Y).astype("Int64"), tags, mixed):
            same(self, probabilities(self.Xs, other), expected)

    def test_missing_views_in_every_form(self):
        gaps = np.arange(len(self.Y)) % 3 == 0
        X = self.Xs[1].copy()
        X[gaps] = np.nan
        expected = probabilities([self.Xs[0], X], self.Y)
        rows = [None if gap else list(row) for gap, row in zip(gaps, self.Xs[1])]
        same(self, probabilities([self.Xs[0], rows], self.Y), expected)
        frame = pd.DataFrame(self.Xs[1])[~gaps]
        frames = [pd.DataFrame(self.Xs[0]), frame]
        same(self, probabilities(frames, pd.DataFrame(self.Y)), expected)
        masked = np.ma.MaskedArray(self.Xs[1], np.repeat(gaps[:, None], X.shape[1], axis=1))
        same(self, probabilities([self.Xs[0], masked], self.Y), expected)

    def test_a_sparse_view_with_missing_rows(self):
        gaps = np.arange(len(self.Y)) % 3 == 0
        sparse = lacuna.data.with_gaps(sp.csr_matrix(self.Xs[1]), ~gaps)
        dense = self.Xs[1].copy()
        dense[gaps] = np.nan
        table = _views.table([sparse])
        present = lacuna.Dataset(table.data).W[:, 0]
        np.testing.assert_array_equal(present, ~gaps)
        np.testing.assert_allclose(probabilities([self.Xs[0], sparse], self.Y),
                                   probabilities([self.Xs[0], dense], self.Y), atol=.02)

    def test_a_view_that_nobody_has_says_nothing(self):
        gone = np.full_like(self.Xs[1], np.nan)
        clf = lacuna.Classifier(**FAST).fit([self.Xs[0], gone], self.Y)
        self.assertTrue(np.isfinite(clf.predict_proba([self.Xs[0], self.Xs[1]])).all())
        same(self, clf.predict_proba([self.Xs[0], gone]), clf.predict_proba([self.Xs[0], None]))

    def test_a_view_that_is_none_at_prediction(self):
        clf = lacuna.Classifier(**FAST).fit(self.Xs, self.Y)
        gone = np.full_like(self.Xs[1], np.nan)
        expected = clf.predict_proba([self.Xs[0], gone, self.Xs[2]])
        same(self, clf.predict_proba([self.Xs[0], None, self.Xs[2]]), expected)
        same(self, clf.predict_proba({"view2": self.Xs[2], "view0": self.Xs[0]}), expected)


class Joins(Case):
    def frames(self):
        data = toy()
        ids = [f"p{i:03d}" for i in range(data.rows)]
        return {name: pd.DataFrame(X, index=ids, columns=[f"{name}_{j}" for j in range(X.shape[1])])
                for name, X in data.Xs.items()}, pd.DataFrame(data.Y, index=ids, columns=list("abcde"))

    def test_rows_are_joined_by_id(self):
        Xs, Y = self.frames()
        expected = lacuna.Classifier(**FAST).fit(Xs, Y).predict_frame(Xs)
        shuffled = {name: X.sample(frac=1, random_state=v) for v, (name, X) in enumerate(Xs.items())}
        clf = lacuna.Classifier(**FAST).fit(shuffled, Y)
        result = clf.predict_frame(shuffled)
        self.assertEqual(list(result.columns), list("abcde"))
        self.assertEqual(set(result.index), set(Y.index))
        same(self, result.loc[Y.index].to_numpy(), expected.to_numpy())

    def test_items_without_labels_do_not_teach_and_unknown_items_are_missing(self):
        Xs, Y = self.frames()
        first = list(Xs)[0]
        few = {**Xs, first: Xs[first].iloc[20:]}
        clf = lacuna.Classifier(**FAST).fit(few, Y.iloc[:100])
        self.assertEqual(clf.predict_proba(few).shape, (120, 5))
        self.assertEqual(len(clf.predict_frame({first: Xs[first].iloc[:7]})), 7)

    def test_a_loaded_model_knows_its_columns(self):
        Xs, Y = self.frames()
        lacuna.Classifier(**FAST).fit(Xs, Y).save(self.folder / "m.safetensors")
        loaded = lacuna.Classifier.load(self.folder / "m.safetensors")
        self.assertEqual(loaded.column_names_, {name: list(X.columns) for name, X in Xs.items()})
        same(self, loaded.predict_proba({name: X.iloc[:, ::-1] for name, X in Xs.items()}), loaded.predict_proba(Xs))
        first = list(Xs)[0]
        with self.refused(lacuna.ModelMismatch, "does not have", f"{first}_5"):
            loaded.predict({first: Xs[first].iloc[:, :5]})

    def test_columns_are_matched_by_name(self):
        Xs, Y = self.frames()
        clf = lacuna.Classifier(**FAST).fit(Xs, Y)
        expected = clf.predict_proba(Xs)
        same(self, clf.predict_proba({name: X.iloc[:, ::-1] for name, X in Xs.items()}), expected)
        first = list(Xs)[0]
        renamed = Xs[first].rename(columns={f"{first}_0": "other"})
        with self.refused(lacuna.ModelMismatch, first, "other"):
            clf.predict({first: renamed})
        with self.refused(lacuna.ModelMismatch, "does not have", f"{first}_5"):
            clf.predict({first: Xs[first].iloc[:, :5]})

    def test_ambiguous_joins_are_refused(self):
        Xs, Y = self.frames()
        first, second, third = Xs
        clf = lacuna.Classifier(**FAST)
        with self.refused(lacuna.DataError, "twice", "p000"):
            clf.fit({**Xs, first: pd.concat([Xs[first], Xs[first].iloc[:1]])}, Y)
        with self.refused(lacuna.DataError, "no ids", "set_index", "110 and 120"):
            clf.fit([Xs[first].reset_index(drop=True), Xs[second].reset_index(drop=True).iloc[:110]], Y.to_numpy())
        with self.refused(lacuna.DataError, "array, which has no ids"):
            clf.fit([Xs[first], Xs[second].iloc[::-1], Xs[third].to_numpy()], Y)
        with self.refused(lacuna.DataError, "Y has no ids"):
            clf.fit([Xs[first], Xs[second].iloc[::-1]], Y.to_numpy())
        with self.refused(lacuna.DataError, "no view has any of the 120 ids of Y"):
            clf.fit(Xs, Y.reset_index(drop=True))


    def test_ids_that_do_not_meet_are_warned_of(self):
        Xs, Y = self.frames()
        first, second, third = Xs
        clf = lacuna.Classifier(**FAST).fit(Xs, Y)
        whole = Xs[first].set_axis(range(120))
        texts = Xs[second].set_axis([str(i) for i in range(120)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(len(clf.predict({first: whole, second: texts})), 240)
        self.assertEqual(len(caught), 1)
        for word in (f"view '{first}'", "0", f"'{second}'", "'0'", "different items"):
            self.assertIn(word, str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(clf.predict({first: Xs[first].iloc[:80], second: Xs[second].iloc[79:]})), 120)

    def test_an_id_that_is_nan_is_refused(self):
        Xs, Y = self.frames()
        first = list(Xs)[0]
        broken = Xs[first].set_axis([np.nan if i == 7 else f"p{i:03d}" for i in range(120)])
        clf = lacuna.Classifier(**FAST)
        with self.refused(lacuna.DataError, first, "row 7", "no id"):
            clf.fit({**Xs, first: broken}, Y)
        with self.refused(lacuna.DataError, "Y: row 7", "no id"):
            clf.fit(Xs, Y.set_axis(broken.index))
        clf.fit(Xs, Y)
        with self.refused(lacuna.DataError, first, "row 7", "no id"):
            clf.predict({first: broken})
        pairs = pd.MultiIndex.from_tuples([("a", i) for i in range(120)])
        self.assertEqual(len(clf.predict({first: Xs[first].set_axis(pairs)})), 120)
        pairs = pd.MultiIndex.from_tuples([("a", None if i == 3 else i) for i in range(120)])
        with self.refused(lacuna.DataError, first, "row 3"):
            clf.predict({first: Xs[first].set_axis(pairs)})

    def test_columns_of_the_same_name_are_refused(self):
        Xs, Y = self.frames()
        first = list(Xs)[0]
        Xs[first].columns = ["a", "b", "c", "b", "e", "f"]
        with self.refused(lacuna.DataError, first, "columns 1 and 3", "both called 'b'"):
            lacuna.Classifier(**FAST).fit(Xs, Y)


class Metrics(Case):
    def setUp(self):
        super().setUp()
        self.ids, self.names = [f"p{i}" for i in range(40)], list("abcd")
        rng = np.random.default_rng(1)
        self.Y = pd.DataFrame((rng.random((40, 4)) < .4).astype(float), self.ids, self.names)
        self.scores = pd.DataFrame(rng.random((40, 4)), self.ids, self.names)
        self.decided = (self.scores > .6).astype(int)
        self.expected = lacuna.metrics.evaluate(*(table.to_numpy() for table in (self.Y, self.scores, self.decided)))

    def test_tables_are_matched_by_index_and_columns(self):
        shuffled = self.scores.sample(frac=1, random_state=1)[list("cadb")]
        for scores in (self.scores, self.scores.iloc[::-1], self.scores[list("dcba")], shuffled):
            for decided in (self.decided, self.decided.iloc[::-1, ::-1], self.decided.to_numpy()):
                self.assertEqual(lacuna.metrics.evaluate(self.Y, scores, decided), self.expected)
            for name, values in lacuna.metrics.per_label(self.Y, self.scores).items():
                np.testing.assert_array_equal(lacuna.metrics.per_label(self.Y, scores)[name], values)
        self.assertNotEqual(lacuna.metrics.evaluate(self.Y, shuffled.to_numpy(), self.decided), self.expected)

    def test_lists_of_tags_are_put_into_the_columns_of_the_scores(self):
        tags = pd.Series([[name for name in self.names if self.Y.loc[i, name]] for i in self.ids], self.ids)
        wider = self.scores.assign(nobody=.5)[["nobody", *"cadb"]]
        self.assertEqual(lacuna.metrics.evaluate(tags, self.scores.iloc[::-1, ::-1], self.decided), self.expected)
        self.assertEqual(lacuna.metrics.evaluate(list(tags), self.scores[list("dacb")], self.decided), self.expected)
        self.assertEqual(lacuna.metrics.per_label(tags, wider)["positives"][0], 0)

    def test_others_are_refused(self):
        with self.refused(lacuna.DataError, "scores lack 1 of the 40 ids", "'p39'", "to_numpy"):
            lacuna.metrics.evaluate(self.Y, self.scores.rename(index={"p39": "q"}))
        with self.refused(lacuna.DataError, "scores lack 40 of the 40 ids"):
            lacuna.metrics.evaluate(self.Y, self.scores.reset_index(drop=True))
        with self.refused(lacuna.DataError, "decisions lack 1 of the 4 labels", "'b'"):
            lacuna.metrics.evaluate(self.Y, self.scores, self.decided.rename(columns={"b": "x"}))
        with self.refused(lacuna.DataError, "same name"):
            lacuna.metrics.per_label(self.Y, self.scores.set_axis(list("abca"), axis=1))
        with self.refused(lacuna.DataError, "occurs twice", "'p0'"):
            lacuna.metrics.evaluate(self.Y, self.scores.rename(index={"p39": "p0"}))
        with self.refused(lacuna.DataError, "39 x 4", "40 x 4"):
            lacuna.metrics.evaluate(self.Y, self.scores.iloc[1:])


class Copies(Case):
    def test_float32_rows_are_not_copied(self):
        base = np.random.default_rng(1).normal(size=(50, 20)).astype(np.float32)
        for X in (base, base[:, 3:11], base[10:40], base[::2]):
            table = _views.table([X])
            view = lacuna.Dataset(table.data).views["view0"]
            self.assertTrue(np.shares_memory(view, X))
            self.assertEqual(view.ctypes.data, X.ctypes.data)
            np.testing.assert_array_equal(view, X)
        frame = pd.DataFrame(base)
        view = lacuna.Dataset(_views.table([frame]).data).views["view0"]
        np.testing.assert_array_equal(view, base)
        sparse = sp.random(50, 30, .2, "csr", np.float32, 1)
        view = lacuna.Dataset(_views.table([sparse]).data).views["view0"]
        self.assertTrue(np.shares_memory(view.data, sparse.data))
        np.testing.assert_array_equal(view.toarray(), sparse.toarray())

    def test_a_data_set_keeps_what_it_points_into(self):
        def make():
            return lacuna.dataset([np.full((1000, 100), 7, np.float32)]).views["view0"]
        view = make()
        self.assertEqual(np.zeros((1000, 100), np.float32).sum() + view.sum(), 700000)
        with self.refused(ValueError, "read-only"):
            view[0, 0] = 1


class Refusals(Case):
    def fit(self, Xs, Y=None):
        if Y is None:
            Y = np.eye(6, 2)
        return lacuna.Classifier(**FAST).fit(Xs, Y)

    def test_shapes(self):
        X = np.ones((6, 3), np.float32)
        with self.refused(TypeError, "list or dict", "[X]", "ConcatClassifier"):
            self.fit(X)
        with self.refused(lacuna.DataError, "1 dimension", "[X]"):
            self.fit(X.tolist())
        with self.refused(lacuna.DataError, "1 dimension", "reshape"):
            self.fit([X, X[:, 0]])
        with self.refused(lacuna.DataError, "3 dimensions"):
            self.fit([X[:, :, None], X])
        with self.refused(lacuna.DataError, "'view0' 6", "'view1' 5"):
            self.fit([X, X[:5]])
        with self.refused(lacuna.DataError, "Y has 5"):
            self.fit([X], np.eye(5, 2))
        for bad in (X[:0], X[:, :0]):
            with self.refused(lacuna.DataError):
                self.fit([bad], np.eye(len(bad), 2))
        with self.refused(lacuna.DataError, "no views"):
            self.fit([])
        with self.refused(lacuna.DataError, "view0", "None"):
            self.fit([None, X])

    def test_values(self):
        X = np.ones((6, 3), np.float32)
        for bad in (np.nan, np.inf, -np.inf):
            broken = X.copy()
            broken[2, 1] = bad
            advice = "fill single gaps first)" if np.isnan(bad) else "missing)"  # not that for tables of text
            with self.refused(lacuna.DataError, "view 'a'", "row 2, column 1", "finite", advice):
                self.fit({"a": broken})
        with self.refused(lacuna.DataError, "row 0, column 0", "float32"):
            self.fit([np.full((6, 2), 1e300)])
        for bad in (X.astype(complex), X.astype(str), X.astype("M8[s]"), np.array([["a", 1]] * 6, dtype=object)):
            with self.refused((TypeError, ValueError)[bad.dtype.kind == "c"]):
                self.fit([bad])
        frame = pd.DataFrame({"age": [1.] * 6, "town": ["x"] * 6})
        with self.refused(TypeError, "town"):
            self.fit([frame])
        with self.refused(lacuna.DataError, "view"):
            self.fit([[[1, 2], [3]] * 3])

    def test_labels(self):
        X = [np.ones((6, 3), np.float32)]
        with self.refused(lacuna.DataError, "row 1, column 0", "2", "NaN"):
            self.fit(X, [[0, 1], [2, 0]] * 3)
        with self.refused(lacuna.DataError, "-1"):
            self.fit(X, [[0, 1], [-1, 0]] * 3)
        with self.refused(lacuna.DataError, "one dimension"):
            self.fit(X, [0, 1] * 3)
        with self.refused(TypeError, "Y is None"):
            lacuna.Classifier().fit(X)
        with self.refused(TypeError, "item 1", "3"):
            self.fit(X, [["a"], ["a", 3]] * 3)
        with self.refused(lacuna.DataError, "labels"):
            self.fit(X, np.zeros((6, 0)))
        with self.refused(lacuna.DataError, "2 columns", "3 names"):
            lacuna.Classifier().fit(X, np.eye(6, 2), classes=["a", "b", "c"])
        with self.refused(lacuna.DataError, "both called 'a'"):
            lacuna.Classifier().fit(X, np.eye(6, 2), classes=["a", "a"])

    def test_names(self):
        X = np.ones((6, 3), np.float32)
        with self.refused(TypeError, "text", "3"):
            self.fit({3: X})
        with self.refused(ValueError, "NUL"):
            self.fit({"a\0b": X})
        with self.refused(ValueError, "Unicode"):
            self.fit({"\ud800": X})

    def test_a_model_and_data_that_do_not_fit(self):
        data = toy()
        clf = lacuna.Classifier(**FAST).fit(data.Xs, data.Y)
        name = data.view_names[0]
        X = data.Xs[name]
        with self.refused(lacuna.ModelMismatch, f"'{name}'", "5", "6"):
            clf.predict({name: X[:, :5]})
        with self.refused(lacuna.ModelMismatch, "no view 'other'"):
            clf.predict({"other": X})
        with self.refused(lacuna.ModelMismatch, "1 views", "None"):
            clf.predict([X])
        with self.refused(lacuna.DataError, "every view is None"):
            clf.predict([None, None, None])


if __name__ == "__main__":
    unittest.main()
