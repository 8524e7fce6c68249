"""A pipeline of scikit-learn with a grid search: two views in one matrix."""
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lacuna

X, y = load_iris(return_X_y=True)  # columns 0 and 1 measure sepals, 2 and 3 petals
clf = lacuna.ConcatClassifier(views={"sepals": (0, 2), "petals": (2, 4)}, members=1)
pipeline = make_pipeline(StandardScaler(), clf)
search = GridSearchCV(pipeline, {"concatclassifier__epochs": [5, 40], "concatclassifier__prepare": ["zscore", "minmax"]},
                      cv=3)
search.fit(X, y)
print(search.best_params_)
print("accuracy", cross_val_score(search.best_estimator_, X, y, cv=3).mean().round(3))
