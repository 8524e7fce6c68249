"""Several methods on the same incomplete data, with a plot."""
import matplotlib.pyplot as plt
import numpy as np

import lacuna

data = lacuna.simulate(rows=300, sizes=[20, 15, 10], labels=6, seed=1)
folds = lacuna.mask.mcar(data, missing_views=.5, missing_labels=.5, repeats=2)
candidates = {"lacuna": lacuna.Classifier(epochs=30, members=1), "NAIM3L": lacuna.Classifier("naim3l"),
              "C2AE": lacuna.Classifier("c2ae", epochs=20)}
found = {name: [] for name in candidates}
for fold in folds:
    Xs, Y = fold.part("train")
    for name, clf in candidates.items():
        clf.fit(Xs, Y, validation=fold.part("val"))
        found[name].append(clf.score(*fold.part("test")))
for name, values in found.items():
    print(f"{name:8} AP {np.mean(values):.3f} ± {np.std(values):.3f}")
plt.bar(list(found), [np.mean(values) for values in found.values()], yerr=[np.std(values) for values in found.values()])
plt.ylabel("average precision, half of the views and labels missing")
plt.savefig("comparison.png")
