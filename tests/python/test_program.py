"""The program and the package are the same thing: models and scores are equal bit for bit."""
import json
import unittest

import numpy as np

import lacuna
from support import Case, FAST, program, same, toy


class BitForBit(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "toy.npz"
        program("data", "simulate", self.path, "--rows", 150, "--sizes", "9,7", "--labels", 6, "--seed", 2)
        self.data = lacuna.read(self.path)

    def compared(self, *flags, **parameters):
        model, scores = self.folder / "m.safetensors", self.folder / "s.npy"
        program("train", self.path, "--out", model, "--quiet", *flags)
        program("predict", model, self.path, "--out", scores)
        clf = lacuna.Classifier(**parameters).fit(self.data)
        raw = clf.set_params(calibrated=False).predict_proba(self.data)
        same(self, raw, np.load(scores))
        clf.save(self.folder / "own.safetensors")
        self.assertEqual((self.folder / "own.safetensors").read_bytes(), model.read_bytes())
        same(self, lacuna.Classifier.load(model).set_params(calibrated=False).predict_proba(self.data.Xs), raw)
        return clf

    def test_the_default_method(self):
        self.compared("--epochs", 4, epochs=4)

    def test_seeds_settings_and_other_methods(self):
        self.compared("--epochs", 3, "--members", 1, "--seed", 9, "--hold-out", .3, epochs=3, members=1, seed=9, hold_out=.3)
        self.compared("--method", "naim3l", method="naim3l")
        self.compared("--method", "c2ae", "--epochs", 2, method="c2ae", epochs=2)

    def test_every_method_saves_the_same_bytes(self):
        for name in lacuna.methods():
            known = lacuna.settings(name)
            few = {key: value for key, value in {"epochs": 1, "rounds": 2, "iterations": 2}.items() if key in known}
            with self.subTest(name):
                self.compared("--method", name, *(part for key, value in few.items() for part in (f"--{key}", value)),
                              method=name, **few)

    def test_items_without_any_view(self):
        Xs = {key: np.array(X) for key, X in self.data.Xs.items()}
        for X in Xs.values():
            X[[0, 9]] = np.nan
        lacuna.dataset(Xs, self.data.Y, classes=self.data.label_names, name="toy").write(self.path)
        self.data = lacuna.read(self.path)
        self.assertTrue(np.isnan(self.compared("--epochs", 2, epochs=2).predict_proba(Xs)[[0, 9]]).all())

    def test_decisions_and_calibrated_probabilities(self):
        clf = self.compared("--epochs", 3, "--members", 1, epochs=3, members=1)
        model = self.folder / "m.safetensors"
        program("predict", model, self.path, "--out", self.folder / "l.npy", "--labels")
        np.testing.assert_array_equal(clf.predict(self.data), np.load(self.folder / "l.npy"))
        program("predict", model, self.path, "--out", self.folder / "c.npy", "--calibrated")
        same(self, clf.set_params(calibrated=True).predict_proba(self.data), np.load(self.folder / "c.npy"))

    def test_gaps_and_unknown_labels(self):
        Xs, Y = self.data.Xs, self.data.Y
        name = self.data.view_names[0]
        Xs = {key: np.array(X) for key, X in Xs.items()}
        Xs[name][::3] = np.nan
        Y[::5, 1] = np.nan
        lacuna.dataset(Xs, Y, classes=self.data.label_names, name="toy").write(self.path)
        self.data = lacuna.read(self.path)
        clf = self.compared("--epochs", 3, "--members", 1, epochs=3, members=1)
        own = lacuna.Classifier(epochs=3, members=1, calibrated=False).fit(Xs, Y, classes=self.data.label_names)
        same(self, own.predict_proba(Xs), clf.set_params(calibrated=False).predict_proba(self.data))

    def test_metrics(self):
        clf = lacuna.Classifier(**FAST).fit(self.data)
        scores = clf.predict_proba(self.data)
        np.save(self.folder / "s.npy", scores)
        theirs = json.loads(program("evaluate", self.folder / "s.npy", self.path, "--json", "--per-label"))
        self.assertEqual(lacuna.metrics.evaluate(self.data.Y, scores), theirs["metrics"])
        ours = lacuna.metrics.per_label(self.data.Y, scores)
        for j, label in enumerate(theirs["per_label"]):
            for key in ("AP", "AUC", "F1"):
                self.assertEqual(ours[key][j], label[key])

    def test_simulated_data(self):
        ours = lacuna.simulate(rows=150, sizes=[9, 7], labels=6, seed=2)
        for name, X in self.data.views.items():
            same(self, ours.views[name], X)
        np.testing.assert_array_equal(ours.Y, self.data.Y)

    def test_folds(self):
        theirs = self.folder / "folds.npz"
        program("data", "mask", self.path, theirs, "--repeats", 2, "--seed", 5)
        ours = lacuna.mask.mcar(self.data, repeats=2, seed=5)
        read = lacuna.mask.read(theirs, self.data)
        self.assertEqual(ours.hash, read.hash)
        program("train", self.path, "--out", self.folder / "m.safetensors", "--folds", theirs, "--fold", 1, "--epochs", 3,
                "--members", 1, "--quiet")
        program("predict", self.folder / "m.safetensors", self.path, "--folds", theirs, "--fold", 1, "--part", "test",
                "--out", self.folder / "s.npy")
        fold = ours[1]
        names = self.data.label_names
        clf = lacuna.Classifier(epochs=3, members=1, calibrated=False)
        Xs, Y = fold.part("train")
        clf.fit(Xs, Y, classes=names, validation=fold.part("val"))
        same(self, clf.predict_proba(fold.part("test")[0]), np.load(self.folder / "s.npy"))


class Masks(Case):
    def test_shares(self):
        data = toy(400)
        fold = lacuna.mask.mcar(data, missing_views=.3, missing_labels=.2, train=.5, val=.25)[0]
        np.testing.assert_allclose(fold.W.mean(axis=0), .7)
        self.assertTrue(fold.W.any(axis=1).all())
        self.assertEqual([len(fold.train), len(fold.val), len(fold.test)], [200, 100, 100])
        Xs, Y = fold.part("train")
        gaps = np.isnan(Xs[data.view_names[0]]).all(axis=1)
        np.testing.assert_array_equal(gaps, fold.W[fold.train, 0] == 0)
        self.assertAlmostEqual(np.isnan(Y).mean(), .2, delta=.02)
        self.assertFalse(np.isnan(fold.part("test")[1]).any())

    def test_not_at_random(self):
        """What is hidden differs from what is left; without strength it does not."""
        data = toy(2000)
        X = data.Xs[data.view_names[0]]

        def distance(**options):
            W = lacuna.mask.mnar(data, missing_views=.5, **options)[0].W[:, 0].astype(bool)
            np.testing.assert_allclose(W.mean(), .5)
            gap = (X[W].mean(axis=0) - X[~W].mean(axis=0)) / X.std(axis=0)
            return np.linalg.norm(gap)
        self.assertGreater(distance(strength=3), 5 * distance(strength=0))

    def test_by_pattern(self):
        data = toy(400)
        a, b, c = data.view_names
        W = lacuna.mask.pattern(data, patterns={(a, b): .5, (b, c): .25, a: .25})[0].W
        found = {tuple(row): int((W == row).all(axis=1).sum()) for row in np.unique(W, axis=0)}
        self.assertEqual(found, {(1, 1, 0): 200, (0, 1, 1): 100, (1, 0, 0): 100})
        with self.refused(lacuna.UsageError, "'nose'"):
            lacuna.mask.pattern(data, patterns={"nose": 1.})
        with self.refused(lacuna.UsageError, "0.5"):
            lacuna.mask.pattern(data, patterns={a: .5})


class Files(Case):
    def test_forms(self):
        data = toy()
        for name in ("x.npz", "x.mat", "folder"):
            data.write(self.folder / name)
            again = lacuna.read(self.folder / name)
            for view in data.view_names:
                same(self, again.views[view], data.views[view])
            np.testing.assert_array_equal(again.Y, data.Y)
        with self.refused(FileNotFoundError, "nowhere.npz"):
            lacuna.read(self.folder / "nowhere.npz")
        (self.folder / "bad.npz").write_bytes(b"PK\3\4 nonsense")
        with self.refused(lacuna.DataError, "bad.npz"):
            lacuna.read(self.folder / "bad.npz")
        with self.refused(lacuna.UsageError, "label_cod"):
            lacuna.read(self.folder / "x.npz", label_cod="01")
        (self.folder / "gap.csv").write_text("id,g,h,yes\na,1,2,1\nb,,3,0\n")
        with self.refused(lacuna.DataError, "'g' has no value", "empty='zero' or empty='mean'"):
            lacuna.read(self.folder / "gap.csv", label_columns=1)
        lacuna.read(self.folder / "gap.csv", label_columns=1, empty="mean")


if __name__ == "__main__":
    unittest.main()
