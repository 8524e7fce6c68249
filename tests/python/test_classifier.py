"""The classifier as an estimator: parameters, files, pickles, threads, progress, Ctrl-C, messages."""
import concurrent.futures
import copy
import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import unittest
import warnings

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lacuna
from support import Case, FAST, PROGRAM, program, same, toy


class Parameters(Case):
    def test_parameters_and_clones(self):
        clf = lacuna.Classifier("naim3l", seed=4, rounds=3) if "rounds" in lacuna.settings("naim3l") else \
            lacuna.Classifier(seed=4, epochs=3)
        again = clone(clf)
        self.assertEqual(again.get_params(), clf.get_params())
        self.assertEqual(clone(clf.set_params(epochs=7)).epochs, 7)
        self.assertIn("epochs=7", repr(clf))
        self.assertEqual(repr(lacuna.Classifier()), "Classifier()")

    def test_unknown_names_name_the_nearest(self):
        with self.refused(TypeError, "'epoch'", "did you mean 'epochs'"):
            lacuna.Classifier(epoch=3)
        with self.refused(ValueError, "Invalid parameter 'epoch'", "epochs"):
            lacuna.Classifier().set_params(epoch=3)
        data = toy()
        with self.refused(lacuna.UsageError, "naim3", "naim3l"):
            lacuna.Classifier("naim3").fit(data.Xs, data.Y)
        with self.refused(lacuna.UsageError, "preset"):
            lacuna.Classifier(preset="bst").fit(data.Xs, data.Y)
        with self.refused(lacuna.UsageError, "epochs takes", "-1"):
            lacuna.Classifier(epochs=-1).fit(data.Xs, data.Y)
        with self.refused(lacuna.UsageError, "hold_out takes"):
            lacuna.Classifier(hold_out=2).fit(data.Xs, data.Y)
        with self.refused(TypeError, "seed", "whole number"):
            lacuna.Classifier(seed="x").fit(data.Xs, data.Y)

    def test_every_method_and_preset_fits(self):
        data = toy(60)
        for name, about in lacuna.methods().items():
            for preset in about["presets"] or [None]:
                known = lacuna.settings(name, preset)
                few = {"epochs": 1, "members": 1, "rounds": 2, "iterations": 2, "width": .01, "embedding": 6,
                       "components": 4}
                few = {key: value for key, value in few.items() if key in known}
                with self.subTest(method=name, preset=preset):
                    clf = lacuna.Classifier(name, preset, **few).fit(data.Xs, data.Y)
                    result = clf.predict_proba(data.Xs)
                    self.assertEqual(result.shape, (60, 5))
                    self.assertTrue(((result >= 0) & (result <= 1)).all())
                    self.assertEqual(set(np.unique(clf.predict(data.Xs))) - {0, 1}, set())

    def test_settings_have_help(self):
        for name in lacuna.methods():
            for setting, about in lacuna.settings(name).items():
                self.assertTrue(about["help"], f"{name}.{setting}")
                self.assertNotIn("--", about["help"])

    def test_attributes(self):
        data = toy()
        clf = lacuna.Classifier(**FAST)
        with self.refused(NotFittedError, "fit first"):
            clf.predict(data.Xs)
        self.assertIs(clf.fit(data), clf)
        self.assertEqual(list(clf.classes_), data.label_names)
        self.assertEqual(clf.view_names_, data.view_names)
        self.assertEqual(clf.view_sizes_, data.view_sizes)
        self.assertEqual(clf.n_features_in_, sum(data.view_sizes))
        self.assertEqual([line["epoch"] for line in clf.history_][-1], 3)
        self.assertIn("total", clf.history_[0]["losses"])
        self.assertEqual(set(clf.validation_), set(lacuna.metrics.NAMES))
        self.assertEqual(clf.thresholds_.shape, (5,))
        scores = clf.predict_proba(data)
        np.testing.assert_array_equal(clf.predict(data), scores > clf.thresholds_)
        np.testing.assert_array_equal(clf.predict(data), clf.decision_function(data) > 0)
        self.assertEqual(clf.score(data), clf.score(data.Xs, data.Y))
        self.assertAlmostEqual(clf.score(data), lacuna.metrics.evaluate(data.Y, scores)["AP"])
        self.assertEqual([len(tags) for tags in clf.predict_tags(data, top=2)], [2] * data.rows)
        self.assertEqual([len(tags) for tags in clf.predict_tags(data)], clf.predict(data).sum(axis=1).tolist())
        page = clf.report(data)
        self.assertIn("<iframe", page._repr_html_())
        page.save(self.folder / "page.html")
        self.assertIn("average precision", (self.folder / "page.html").read_text())
        self.assertIn("epochs", clf.describe()["settings"])

    def test_the_best_tags_and_their_order(self):
        data = toy(200)
        clf = lacuna.Classifier(**FAST).fit(data)
        raw = clf.predict_proba(data)
        calibrated = clf.set_params(calibrated=True).predict_proba(data)
        orders = [np.argsort(-values, axis=1, kind="stable") for values in (raw, calibrated)]
        self.assertFalse(np.array_equal(*orders))
        for flag, order in zip((False, True), orders):
            expected = [[str(clf.classes_[j]) for j in row] for row in order]
            self.assertEqual(clf.predict_tags(data, top=5, calibrated=flag), expected)
            self.assertEqual(clf.predict_tags(data, top=np.int64(2), calibrated=flag), [row[:2] for row in expected])
        self.assertEqual(clf.predict_tags(data, top=0), [[]] * 200)
        with self.refused(ValueError, "top", "from 0", "-1"):
            clf.predict_tags(data, top=-1)
        for top in (2.5, "2"):
            with self.refused(TypeError, "top is a whole number"):
                clf.predict_tags(data, top=top)

    def test_arguments_of_another_kind_are_named(self):
        data = toy()
        clf = lacuna.Classifier(**FAST)
        with self.refused(TypeError, "validation is a pair", "dict"):
            clf.fit(data.Xs, data.Y, validation=data.Xs)
        with self.refused(TypeError, "validation is a pair", "tuple of 3"):
            clf.fit(data.Xs, data.Y, validation=(1, 2, 3))
        with self.refused(TypeError, "callback is a function", "3"):
            clf.fit(data.Xs, data.Y, callback=3)
        with self.refused(TypeError, "patterns is a dict", "[1]"):
            lacuna.mask.pattern(data, patterns=[1])
        with self.refused(lacuna.DataError, "rows have 1 and 2 values", "lists of strings"):
            clf.fit(data.Xs, [[1, 2], [3]] * 60)
        with self.refused(lacuna.DataError, "give 0 instead of NaN", "blank_means='no'"):
            clf.fit(data.Xs, np.where(data.Y == 1, 1, np.nan))

    def test_another_library_is_not_taken(self):
        done = subprocess.run([sys.executable, "-c", "import lacuna"], capture_output=True, text=True,
                              env={**os.environ, "LACUNA_LIBRARY": "libc.so.6"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: libc.so.6 is not the library of this version of lacuna", done.stderr)

    def test_explanations_add_up_and_name_the_view(self):
        data = toy(300)
        rng = np.random.default_rng(1)
        Y = (rng.random((300, 2)) < .5).astype(float)
        Xs = {"telling": Y @ rng.normal(size=(2, 6)) + .1 * rng.normal(size=(300, 6)), "noise": rng.normal(size=(300, 4)),
              "absent": rng.normal(size=(300, 3))}
        clf = lacuna.Classifier(epochs=40, members=1).fit(Xs, Y)
        Xs["absent"] = np.full((300, 3), np.nan)
        found = clf.explain(Xs)
        np.testing.assert_allclose(found.base + found.values.sum(axis=0), found.score, atol=1e-9)
        p = clf.predict_proba(Xs).astype(np.float64)
        np.testing.assert_allclose(1 / (1 + np.exp(-found.score)), p, atol=1e-6)
        self.assertEqual(np.abs(found.values[2]).max(), 0)
        for j in range(2):
            told = [found.values[v][Y[:, j] == 1, j].mean() - found.values[v][Y[:, j] == 0, j].mean() for v in range(2)]
            self.assertGreater(told[0], 3 * abs(told[1]))
        best = found.item(0, top=1)[0]
        self.assertEqual(best["label"], clf.predict_tags(Xs, top=1)[0][0])
        self.assertAlmostEqual(best["base"] + sum(best["views"].values()), best["score"])
        alone = clf.explain({"telling": Xs["telling"][:2]})
        self.assertEqual(alone.values.shape, (3, 2, 2))
        self.assertEqual(np.abs(alone.values[1:]).max(), 0)
        data.write(self.folder / "toy.npz")
        clf = lacuna.Classifier(**FAST).fit(data)
        clf.save(self.folder / "m.safetensors")
        theirs = json.loads(program("explain", self.folder / "m.safetensors", self.folder / "toy.npz", "--json", "--top", 2))
        for i, item in enumerate(theirs["items"]):
            for one, other in zip(clf.explain(data).item(i, top=2), item["tags"]):
                self.assertEqual(one["label"], other["label"])
                for view, value in other["views"].items():
                    self.assertAlmostEqual(one["views"][view], value, places=8)

    def test_validation_rows_of_ones_own(self):
        data = toy()
        Xs, Y = data.Xs, data.Y
        part = lambda rows: ({name: X[rows] for name, X in Xs.items()}, Y[rows])
        clf = lacuna.Classifier(**FAST).fit(*part(slice(0, 80)), validation=part(slice(80, 120)))
        self.assertIsNotNone(clf.validation_)
        names = list(Xs)
        with self.refused(lacuna.ModelMismatch, "validation rows have 2 views"):
            lacuna.Classifier(**FAST).fit(Xs, Y, validation=({n: Xs[n] for n in names[:2]}, Y))
        without = lacuna.Classifier(hold_out=0, **FAST).fit(Xs, Y)
        self.assertIsNone(without.validation_)
        self.assertIsNone(without.thresholds_)


class Copies(Case):
    @classmethod
    def setUpClass(cls):
        cls.data = toy()
        cls.clf = lacuna.Classifier(**FAST).fit(cls.data)
        cls.expected = cls.clf.predict_proba(cls.data)

    def test_pickles_copies_joblib(self):
        joblib.dump(self.clf, self.folder / "clf.joblib")
        for other in (pickle.loads(pickle.dumps(self.clf)), copy.deepcopy(self.clf), joblib.load(self.folder / "clf.joblib")):
            same(self, other.predict_proba(self.data), self.expected)
            self.assertEqual(other.history_, self.clf.history_)
            self.assertEqual(other.get_params(), self.clf.get_params())

    def test_files(self):
        path = self.folder / "model.safetensors"
        self.clf.save(path)
        loaded = lacuna.Classifier.load(path)
        same(self, loaded.predict_proba(self.data), self.expected)
        self.assertEqual(loaded.epochs, 3)
        loaded.save(self.folder / "again.safetensors")
        self.assertEqual(path.read_bytes(), (self.folder / "again.safetensors").read_bytes())
        with self.refused(FileNotFoundError, "none.safetensors"):
            lacuna.Classifier.load(self.folder / "none.safetensors")
        content = path.read_bytes()
        for cut in (0, 7, 100, len(content) // 2):
            path.write_bytes(content[:cut])
            with self.refused(lacuna.DataError, str(path)):
                lacuna.Classifier.load(path)
        path.write_bytes(content.replace(b'schema\\":1', b'schema\\":9', 1))
        with self.refused(lacuna.DataError, "schema 9"):
            lacuna.Classifier.load(path)
        with self.refused(lacuna.Error, "no/such/folder"):
            self.clf.save(self.folder / "no/such/folder/m.safetensors")

    def test_a_broken_pickle(self):
        text = pickle.dumps(self.clf)
        at = text.index(b"data_offsets")
        with self.assertRaises((lacuna.DataError, ValueError)):
            pickle.loads(text[:at] + b"data_offsxts" + text[at + 12:])

    def test_joblib_workers(self):
        seeds = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted)(seed) for seed in (1, 2, 1))
        same(self, seeds[0], seeds[2])
        self.assertFalse(np.array_equal(seeds[0], seeds[1]))
        same(self, seeds[0], fitted(1))

    def test_forked_workers(self):
        fitted(1)  # the parent's threads are there, the child's have to come
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for result in pool.map_async(fitted, [1, 1]).get(timeout=600):
                same(self, result, fitted(1))

    def test_a_killed_worker_is_an_exception(self):
        with self.assertRaises(Exception) as caught:
            joblib.Parallel(n_jobs=2)(joblib.delayed(killed)() for _ in range(2))
        self.assertIn("erminat", type(caught.exception).__name__ + str(caught.exception))
        self.assertEqual(len(fitted(1)), 120)

    def test_threads_share_a_model(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for result in pool.map(lambda _: self.clf.predict_proba(self.data), range(16)):
                same(self, result, self.expected)
            for result in pool.map(fitted, [1] * 4):
                same(self, result, fitted(1))

    def test_the_interpreter_lock_is_free_during_a_fit(self):
        data, ticks = toy(2000), []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            work = pool.submit(lambda: lacuna.Classifier(epochs=8, members=1).fit(data))
            while not work.done():
                ticks.append(time.monotonic())
                time.sleep(.001)
        self.assertGreater(len(ticks), 5)  # with the lock held there is one before and one after

    def test_results_do_not_depend_on_threads(self):
        same(self, fitted(1, threads=1), fitted(1, threads=3))
        lacuna.Classifier(threads=0, **FAST).fit(self.data)


def fitted(seed, **parameters):
    data = toy()
    return lacuna.Classifier(seed=seed, **FAST, **parameters).fit(data).predict_proba(data)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


class WithoutAnyView(Case):
    """Nothing is said of an item of which nothing is known."""

    def setUp(self):
        super().setUp()
        self.data = toy()
        self.Xs = {name: np.array(X) for name, X in self.data.Xs.items()}
        for X in self.Xs.values():
            X[[3, 7]] = np.nan
        self.others = np.setdiff1d(np.arange(120), [3, 7])

    def test_no_scores_and_no_tags(self):
        for settings in (FAST, {"method": "naim3l"}, {**FAST, "aim": "top=2"}, {**FAST, "hold_out": 0}):
            clf = lacuna.Classifier(**settings).fit(self.Xs, self.data.Y)
            for calibrated in (None, False) if settings.get("hold_out") == 0 else (None, True, False):
                p = clf.set_params(calibrated=calibrated).predict_proba(self.Xs)
                self.assertTrue(np.isnan(p[[3, 7]]).all())
                self.assertTrue(np.isfinite(p[self.others]).all())
            self.assertTrue(np.isnan(clf.decision_function(self.Xs)[[3, 7]]).all())
            self.assertEqual(clf.predict(self.Xs)[[3, 7]].max(), 0)
            tags = clf.predict_tags(self.Xs)
            self.assertEqual((tags[3], tags[7]), ([], []))
            best = clf.predict_tags(self.Xs, top=2)
            self.assertEqual([len(best[i]) for i in (2, 3, 7, 8)], [2, 0, 0, 2])
            self.assertTrue(np.isnan(clf.explain(self.Xs).score[[3, 7]]).all())

    def test_figures_leave_them_out(self):
        clf = lacuna.Classifier(**FAST).fit(self.Xs, self.data.Y)
        Y = self.data.Y
        rest = {name: X[self.others] for name, X in self.Xs.items()}
        self.assertEqual(clf.score(self.Xs, Y), clf.score(rest, Y[self.others]))
        scores, decided = clf.predict_proba(self.Xs), clf.predict(self.Xs)
        self.assertEqual(lacuna.metrics.evaluate(Y, scores, decided),
                         lacuna.metrics.evaluate(Y[self.others], scores[self.others], decided[self.others]))
        np.testing.assert_array_equal(lacuna.metrics.per_label(Y, scores)["AP"],
                                      lacuna.metrics.per_label(Y[self.others], scores[self.others])["AP"])
        scores[0, 1] = np.nan
        with self.refused(lacuna.DataError, "row 0, label 1"):
            lacuna.metrics.evaluate(Y, scores)
        with self.refused(lacuna.DataError, "none of the 120 items"):
            lacuna.metrics.evaluate(Y, np.full(Y.shape, np.nan))
        self.assertIn("118", clf.report(self.Xs, Y).html)

    def test_one_class_cannot_be_told(self):
        X = np.hstack(list(self.Xs.values()))
        clf = lacuna.ConcatClassifier(**FAST).fit(X, self.data.Y[:, 0].astype(int))
        self.assertTrue(np.isnan(clf.predict_proba(X)[[3, 7]]).all())
        with self.refused(ValueError, "row 3", "2 such rows"):
            clf.predict(X)
        self.assertEqual(clf.predict(X[self.others]).shape, (118,))


class Learnable(Case):
    """As the program: what can teach nothing is refused, what will be weak is told."""

    def test_nothing_to_learn(self):
        data = toy()
        for Y, word in ((np.full((120, 3), np.nan), "none has both"), (np.ones((120, 3)), "known yes"),
                        (np.zeros((120, 3)), "known positive")):
            with self.refused(lacuna.DataError, "nothing can be learned", word):
                lacuna.Classifier(**FAST).fit(data.Xs, Y)
            with self.refused(lacuna.DataError, "nothing can be learned", word):
                part = {name: X[:60] for name, X in data.Xs.items()}
                lacuna.Classifier(**FAST).fit(part, Y[:60], validation=(part, Y[:60]))

    def test_what_will_be_weak(self):
        data = toy()
        Xs, Y = {name: np.array(X) for name, X in data.Xs.items()}, data.Y
        name = data.view_names[1]
        Xs[name][:] = np.nan
        Y[:, 2] = 0
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            lacuna.Classifier(**FAST).fit(Xs, Y, classes=data.label_names)
        said = "\n".join(str(warning.message) for warning in told)
        self.assertIn(f"1 of 3 views is in no training row, so nothing is learned about it: '{name}'", said)
        self.assertIn(f"1 of 5 labels have no known positive and cannot be learned: '{data.label_names[2]}'", said)


class Device(Case):
    def test_the_device_is_a_parameter(self):
        data = toy()
        self.assertEqual(clone(lacuna.Classifier(device="cpu")).get_params()["device"], "cpu")
        here = lacuna.Classifier(**FAST).fit(data)
        there = lacuna.Classifier(device="cpu", **FAST).fit(data)
        same(self, here.predict_proba(data), there.predict_proba(data))
        there.save(self.folder / "m.safetensors")
        same(self, lacuna.Classifier.load(self.folder / "m.safetensors", device="cpu").predict_proba(data),
             here.predict_proba(data))
        with self.refused(lacuna.UsageError, "'nowhere'"):
            lacuna.Classifier(device="nowhere", **FAST).fit(data)
        with self.refused(lacuna.UsageError, "cuda"):
            lacuna.ConcatClassifier(device="cuda:99", **FAST).fit(np.ones((30, 2)), [0, 1, 1] * 10)


class Stopping(Case):
    def test_a_callback_stops_with_the_model_so_far(self):
        data, seen = toy(), []
        clf = lacuna.Classifier(epochs=50, members=1)
        clf.fit(data, callback=lambda record: seen.append(record) or record["epoch"] == 4)
        self.assertEqual(len(clf.history_), 4)
        self.assertTrue(clf.stopped_)
        self.assertEqual(clf.predict(data).shape, (120, 5))
        with self.refused(ZeroDivisionError):
            lacuna.Classifier(**FAST).fit(data, callback=lambda record: 1 / 0)

    def test_members_that_are_there_are_the_model(self):
        data = toy()
        clf = lacuna.Classifier(epochs=4, members=3)
        clf.fit(data, callback=lambda record: record.get("member") == 1 and record["epoch"] == 2)
        self.assertEqual(clf.history_[-1]["member"], 1)
        clf.save(self.folder / "m.safetensors")
        same(self, lacuna.Classifier.load(self.folder / "m.safetensors").predict_proba(data), clf.predict_proba(data))

    def interrupted(self, code, presses=1):
        script = textwrap.dedent("""
            import warnings, numpy as np, lacuna
            warnings.simplefilter("always")
            data = lacuna.simulate(rows=3000, sizes=[40, 30], labels=8)
            def ready(record):
                if record["epoch"] == 2: print("ready", flush=True)
            """) + textwrap.dedent(code)
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.assertEqual(child.stdout.readline().strip(), "ready")
        for _ in range(presses):
            child.send_signal(signal.SIGINT)
            time.sleep(.002)
        out, err = child.communicate(timeout=600)
        return child.returncode, out, err

    def test_ctrl_c_keeps_the_model_so_far(self):
        code, out, err = self.interrupted("""
            clf = lacuna.Classifier(epochs=100000, members=1).fit(data, callback=ready)
            print(clf.stopped_, clf.predict(data).shape, len(clf.history_) < 99999)
            """)
        self.assertEqual((code, out.strip()), (0, "True (3000, 8) True"), err)
        self.assertIn("StoppedEarly: stopped by Ctrl-C at epoch", err)
        self.assertNotIn("Traceback", err)

    def test_ctrl_c_ends_a_search(self):
        code, out, err = self.interrupted("""
            from sklearn.base import clone
            X, y = np.hstack(list(data.Xs.values())), data.Y[:, 0].astype(int)
            clf = lacuna.ConcatClassifier(epochs=100000, members=1)
            from lacuna import _fit
            told = _fit.Monitor.progress
            def progress(self, user, epoch):
                ready({"epoch": epoch.contents.epoch})
                return told(self, user, epoch)
            _fit.Monitor.progress = progress
            try:
                clf.fit(X, y)
            except KeyboardInterrupt:
                print("interrupted", clf.predict(X).shape)
            """)
        self.assertEqual((code, out.strip()), (0, "interrupted (3000,)"), err)


class Progress(Case):
    def test_lines_where_there_is_no_terminal(self):
        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            lacuna.Classifier(verbose=True, **FAST).fit(toy())
            text = sys.stderr.getvalue()
        finally:
            sys.stderr = before
        self.assertRegex(text, r"epoch 1/3  loss [0-9.]+")
        self.assertIn("epoch 3/3", text)

    def test_a_bar_in_a_terminal(self):
        script = ("import lacuna; d = lacuna.simulate(rows=100, labels=4);"
                  "lacuna.Classifier(epochs=3, members=1, verbose=True).fit(d)")
        master, slave = os.openpty()
        subprocess.run([sys.executable, "-c", script], stderr=slave, check=True)
        os.close(slave)
        shown = os.read(master, 100000).decode()
        self.assertIn("\r[", shown)
        self.assertIn("epoch 3/3", shown)


if __name__ == "__main__":
    unittest.main()
