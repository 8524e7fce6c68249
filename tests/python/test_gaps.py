"""Views that are filled in, and labels that are known already: as the program has them, and what is refused."""
import unittest

import numpy as np
import pandas as pd
import scipy.sparse as sp

import lacuna
from support import Case, program

LABELS = ["sea", "beach", "snow", "ski", "street", "car"]  # in pairs that go together


def pairs(rows=300, seed=1):
    """One view tells a little about the first label of each pair, another is noise that follows the first."""
    draw = np.random.default_rng(seed)
    first = draw.random((rows, 3)) < .4
    Y = np.repeat(first, 2, axis=1)
    Y[:, 1::2] ^= draw.random((rows, 3)) < .1
    image = (first + draw.normal(size=(rows, 3)) * 2).astype(np.float32)
    text = (image @ draw.normal(size=(3, 5)) + draw.normal(size=(rows, 5)) * .1).astype(np.float32)
    return {"image": image, "text": text}, Y.astype(np.float32)


class Gaps(Case):
    @classmethod
    def setUpClass(cls):
        cls.Xs, cls.Y = pairs()
        cls.Xs["text"][::3] = np.nan
        cls.clf = lacuna.Classifier("linear", keep_decoders=True).fit(cls.Xs, cls.Y, classes=LABELS)

    def told(self):
        """Every second label of every item but the first ten."""
        known = np.full(self.Y.shape, np.nan, dtype=np.float32)
        known[10:, ::2] = self.Y[10:, ::2]
        return known

    # ---- labels

    def test_known_labels_as_the_program_has_them(self):
        known = self.told()
        self.assertGreater(self.clf.describe()["label_links"]["weight"], 0)
        found = self.clf.predict_proba(self.Xs, known_labels=known)
        self.clf.save(self.folder / "m.safetensors")
        lacuna.dataset(self.Xs, known, classes=LABELS).write(self.folder / "told.npz")
        program("predict", self.folder / "m.safetensors", self.folder / "told.npz", "--known-labels", "--out",
                self.folder / "scores.npy", "--quiet")
        np.testing.assert_array_equal(found, np.load(self.folder / "scores.npy"))
        bare = self.clf.predict_proba(self.Xs)
        np.testing.assert_array_equal(found[:10], bare[:10])  # of which nothing is known
        np.testing.assert_array_equal(found[10:, ::2], self.Y[10:, ::2])
        truth = np.where(np.isnan(known), self.Y, np.nan)  # known labels raise the precision of the others
        self.assertGreater(lacuna.metrics.evaluate(truth[10:], found[10:])["AP"],
                           lacuna.metrics.evaluate(truth[10:], bare[10:])["AP"] + .05)

    def test_every_form_of_known_labels(self):
        known = self.told()
        expected = self.clf.predict_proba(self.Xs, known_labels=known)
        names = np.array(LABELS)
        dicts = [{str(names[j]): int(row[j]) for j in np.flatnonzero(~np.isnan(row))} or None for row in known]
        frame = pd.DataFrame(known, columns=LABELS)[["street", "sea", "snow"]]  # some labels, in another order
        for form in (dicts, frame, np.ma.masked_invalid(known), pd.Series(dicts)):
            np.testing.assert_array_equal(self.clf.predict_proba(self.Xs, known_labels=form), expected)
        tags = [["sea"]] + [None] * 299
        one = np.full(known.shape, np.nan)
        one[0, 0] = 1
        np.testing.assert_array_equal(self.clf.predict_proba(self.Xs, known_labels=tags),
                                      self.clf.predict_proba(self.Xs, known_labels=one))
        zeros = sp.csr_matrix(self.Y)  # a sparse matrix knows everything
        np.testing.assert_array_equal(self.clf.predict(self.Xs, known_labels=zeros), self.Y)

    def test_ids_are_matched(self):
        ids = [f"p{i}" for i in range(300)]
        Xs = {name: pd.DataFrame(X, index=ids) for name, X in self.Xs.items()}
        known = pd.DataFrame(self.told(), index=ids, columns=LABELS)
        clf = lacuna.Classifier("linear").fit(Xs, pd.DataFrame(self.Y, index=ids, columns=LABELS))
        expected = clf.predict_frame(Xs, known_labels=known)
        shuffled = known.iloc[10:].sample(frac=1, random_state=3)
        pd.testing.assert_frame_equal(clf.predict_frame(Xs, known_labels=shuffled), expected)
        with self.refused(lacuna.DataError, "none of the 290 ids"):
            clf.predict(Xs, known_labels=shuffled.rename(index=lambda name: name + "x"))

    def test_decisions_and_suggestions(self):
        known = [{"sea": 1, "snow": 0}] + [None] * 299
        decided = self.clf.predict(self.Xs, known_labels=known)
        self.assertEqual((decided[0, 0], decided[0, 2]), (1, 0))
        self.assertIn(decided.dtype.kind, "i")
        for top in (None, 6):
            tags = self.clf.predict_tags(self.Xs, top=top, known_labels=known)
            self.assertFalse({"sea", "snow"} & set(tags[0]))
        self.assertEqual(len(tags[0]), 4)
        self.assertEqual(tags[1], self.clf.predict_tags(self.Xs, top=6)[1])

    def test_what_is_refused(self):
        known = self.told()
        rows = [None] * 299
        for wrong, kind, word in (([["see"], *rows], lacuna.ModelMismatch, "'see' is not one of the model's 6 labels"),
                                  ([{"sea": 2}, *rows], lacuna.DataError, "label 'sea' is 1, 0 or None (unknown), not 2"),
                                  ([{3: 1}, *rows], TypeError, "3 is not the name of a label"),
                                  (known[:5], lacuna.DataError, "known_labels has 5 rows, there are 300 items"),
                                  (known[:, :4], lacuna.DataError, "known_labels has 4 columns"),
                                  (pd.DataFrame({"see": [1] * 300}), lacuna.ModelMismatch, "'see'")):
            with self.refused(kind, word):
                self.clf.predict_proba(self.Xs, known_labels=wrong)
        unlearned = lacuna.Classifier("linear", hold_out=0).fit(self.Xs, self.Y)
        with self.refused(lacuna.ModelMismatch, "has not learned how known labels inform"):
            unlearned.predict_proba(self.Xs, known_labels=known)

    # ---- views

    def test_recovered_views_are_the_programs(self):
        filled, deviations = self.clf.recover(self.Xs)
        self.clf.save(self.folder / "m.safetensors")
        lacuna.dataset(self.Xs).write(self.folder / "gaps.npz")
        program("recover", self.folder / "m.safetensors", self.folder / "gaps.npz", "--out", self.folder / "filled.npz",
                "--deviations", self.folder / "sd.npz", "--quiet")
        for mine, file in ((filled, "filled.npz"), (deviations, "sd.npz")):
            theirs = lacuna.read(self.folder / file)
            for name in self.Xs:
                np.testing.assert_array_equal(mine.Xs[name], theirs.Xs[name])
        np.testing.assert_array_equal(filled.Xs["image"], self.Xs["image"])
        gaps = np.isnan(self.Xs["text"]).all(axis=1)
        np.testing.assert_array_equal(filled.Xs["text"][~gaps], self.Xs["text"][~gaps])
        self.assertFalse(np.isnan(filled.Xs["text"]).any())
        self.assertTrue((deviations.Xs["text"][gaps] > 0).all())
        self.assertTrue((deviations.Xs["text"][~gaps] == 0).all())

    def test_recovered_values_are_near(self):
        there = ~np.isnan(self.Xs["text"]).all(axis=1)
        truth = self.Xs["text"][there]
        filled, deviations = self.clf.recover({"image": self.Xs["image"][there], "text": None})
        error = np.abs(filled.Xs["text"] - truth)
        self.assertLess((error ** 2).sum(), .1 * ((truth - truth.mean(axis=0)) ** 2).sum())
        covered = (error <= 1.645 * deviations.Xs["text"]).mean()  # of 90 % intervals
        self.assertGreater(covered, .85)
        self.assertLess(covered, .97)

    def test_an_item_without_views_and_ids(self):
        ids = ["a", "b", "c"]
        Xs = {"image": pd.DataFrame([[1, 2, 3], [np.nan] * 3, [0, 1, 0]], index=ids, dtype=float), "text": None}
        filled, _ = self.clf.recover(Xs)
        self.assertEqual(filled.ids, ids)
        self.assertTrue(np.isnan(filled.Xs["text"][1]).all())
        self.assertFalse(np.isnan(filled.Xs["text"][[0, 2]]).any())

    def test_a_model_without_decoders(self):
        with self.refused(lacuna.ModelMismatch, "has no decoders", "keep_decoders"):
            lacuna.Classifier("linear").fit(self.Xs, self.Y).recover(self.Xs)


if __name__ == "__main__":
    unittest.main()
