"""scikit-learn's own checks, and its tools at work."""
import pickle
import unittest
import warnings

import numpy as np
import pandas as pd
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import lacuna
from support import Case, same, toy

QUICK = {"epochs": 30, "members": 1}


class Checks(Case):
    maxDiff = None

    def test_all_checks_of_scikit_learn(self):
        """None is left out: the estimator has no list of expected failures, and skips are counted."""
        failed, skipped, passed = [], [], 0
        for estimator, check in check_estimator(lacuna.ConcatClassifier(**QUICK), generate_only=True):
            name = str(getattr(check, "func", check).__name__)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check(estimator)
                passed += 1
            except unittest.SkipTest as skip:
                skipped.append(f"{name}: {skip}")
            except Exception as error:  # all of them are wanted at once
                failed.append(f"{name}: {type(error).__name__}: {str(error)[:600]}")
        self.assertEqual(failed, [])
        self.assertEqual(skipped, [])
        self.assertGreater(passed, 40)

    def test_the_default_settings_pass_too(self):
        from sklearn.utils.estimator_checks import (check_classifiers_train, check_no_attributes_set_in_init,
                                                    check_parameters_default_constructible)
        check_no_attributes_set_in_init("ConcatClassifier", lacuna.ConcatClassifier())
        check_parameters_default_constructible("ConcatClassifier", lacuna.ConcatClassifier())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_classifiers_train("ConcatClassifier", lacuna.ConcatClassifier())

    def test_tags_of_both_kinds(self):
        estimator = lacuna.ConcatClassifier()
        self.assertTrue(estimator._more_tags()["multilabel"])
        if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 6):
            tags = estimator.__sklearn_tags__()
            self.assertEqual(tags.estimator_type, "classifier")
            self.assertTrue(tags.classifier_tags.multi_label)
        else:
            self.assertTrue(sklearn.base.is_classifier(estimator))


class Tools(Case):
    @classmethod
    def setUpClass(cls):
        cls.X, cls.y = load_iris(return_X_y=True)

    def test_pipeline_search_and_validation(self):
        pipe = make_pipeline(StandardScaler(), lacuna.ConcatClassifier(views=[(0, 2), (2, 4)], **QUICK))
        search = GridSearchCV(pipe, {"concatclassifier__epochs": [5, 40], "concatclassifier__seed": [1]}, cv=3)
        search.fit(self.X, self.y)
        self.assertEqual(search.best_params_["concatclassifier__epochs"], 40)
        self.assertGreater(search.best_score_, .85)
        scores = cross_validate(pipe, self.X, self.y, cv=3, scoring=["accuracy", "roc_auc_ovr"], n_jobs=2)
        self.assertGreater(scores["test_roc_auc_ovr"].mean(), .9)
        self.assertEqual(cross_val_predict(pipe, self.X, self.y, cv=3, method="predict_proba").shape, (150, 3))

    def test_calibration_and_inspection(self):
        clf = lacuna.ConcatClassifier(**QUICK)
        calibrated = CalibratedClassifierCV(clf, cv=2).fit(self.X, self.y)
        self.assertGreater(calibrated.score(self.X, self.y), .8)
        found = permutation_importance(clf.fit(self.X, self.y), self.X, self.y, n_repeats=2, random_state=0)
        self.assertEqual(found.importances_mean.shape, (4,))

    def test_several_labels_with_gaps(self):
        X, Y = make_multilabel_classification(200, 12, n_classes=4, random_state=1)
        Y = Y.astype(float)
        Y[::3, 1] = np.nan
        X[::4, :6] = np.nan
        clf = lacuna.ConcatClassifier(views={"left": (0, 6), "right": (6, 12)}, **QUICK)
        # A plain number would make scikit-learn look whether Y is fit for strata, which it refuses to do with NaN.
        search = GridSearchCV(clf, {"epochs": [2, 30]}, cv=KFold(2), scoring=lacuna.metrics.scorer("1-RL")).fit(X, Y)
        self.assertEqual(search.predict(X).shape, (200, 4))
        self.assertGreater(search.best_estimator_.score(X, Y), .7)
        same(self, pickle.loads(pickle.dumps(search.best_estimator_)).predict_proba(X), search.predict_proba(X))

    def test_views_by_columns_names_and_slices(self):
        names = [f"c{j}" for j in range(4)]
        frame = pd.DataFrame(self.X, columns=names)
        expected = lacuna.ConcatClassifier(views=[(0, 2), (2, 4)], **QUICK).fit(self.X, self.y).predict_proba(self.X)
        for views in ([[0, 1], [2, 3]], [slice(0, 2), slice(2, 4)]):
            clf = lacuna.ConcatClassifier(views=views, **QUICK).fit(self.X, self.y)
            same(self, clf.predict_proba(self.X), expected)
        clf = lacuna.ConcatClassifier(views=[names[:2], names[2:]], **QUICK).fit(frame, self.y)
        same(self, clf.predict_proba(frame), expected)
        for views, word in (([(0, 9)], "X has 4"), ([[7]], "no column 7"), ([["z"]], "no column 'z'"), ([], "empty"),
                            ([[]], "no columns")):
            with self.refused(lacuna.DataError, word):
                lacuna.ConcatClassifier(views=views).fit(frame, self.y)

    def test_every_column_belongs_to_one_view(self):
        clf = lacuna.ConcatClassifier(views=[(0, 2), [1, 3]], **QUICK)
        with self.refused(ValueError, "no view has the columns 2 (1 of 4)", "several views have the columns 1 (1 of 4)"):
            clf.fit(self.X, self.y)
        frame = pd.DataFrame(self.X, columns=list("abcd"))
        with self.refused(ValueError, "no view has the columns 'b', 'd' (2 of 4)"):
            lacuna.ConcatClassifier(views={"x": ["a"], "y": ["c"]}, **QUICK).fit(frame, self.y)
        with self.refused(ValueError, "several views have the columns 0, 1, 2, 3 (4 of 4)"):
            lacuna.ConcatClassifier(views=[slice(0, 4), slice(None)], **QUICK).fit(self.X, self.y)

    def test_the_same_as_the_classifier(self):
        data = toy()
        X = np.hstack(list(data.Xs.values()))
        Y = data.Y.astype(int)
        edges = np.cumsum([0, *data.view_sizes]).tolist()
        one = lacuna.ConcatClassifier(views=dict(zip(data.view_names, zip(edges, edges[1:]))), **QUICK).fit(X, Y)
        other = lacuna.Classifier(**QUICK).fit(data.Xs, Y)
        same(self, one.predict_proba(X), other.predict_proba(data.Xs))

    def test_linear_is_scikit_learns_logistic_regression(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 8)).astype(np.float32)
        Y = (X @ rng.normal(size=(8, 3)) + rng.normal(size=(200, 3)) > 0).astype(float)
        Y[rng.random(Y.shape) < .3] = np.nan
        ours = lacuna.Classifier("linear", lambda_=4, hold_out=0).fit([X], Y).predict_proba([X])
        Z = StandardScaler().fit_transform(X)
        for j in range(3):
            known = ~np.isnan(Y[:, j])
            theirs = LogisticRegression(C=1 / 4, tol=1e-8, max_iter=1000).fit(Z[known], Y[known, j]).predict_proba(Z)[:, 1]
            self.assertLess(np.abs(ours[:, j] - theirs).max(), 2e-3)


if __name__ == "__main__":
    unittest.main()
