"""Omics layers of different patients: each layer was measured for some of them, none for all."""
import numpy as np
import pandas as pd

import lacuna

rng = np.random.default_rng(3)
patients = [f"P{i:03d}" for i in range(240)]
state = rng.normal(size=(240, 3))  # activity of three pathways


def layer(genes, share, seed):
    values = state @ rng.normal(size=(3, genes)) + rng.normal(size=(240, genes))
    return pd.DataFrame(values, index=patients, columns=[f"g{j}" for j in range(genes)]).sample(frac=share, random_state=seed)


layers = {"rna": layer(60, .8, 1), "protein": layer(25, .5, 2), "methylation": layer(40, .6, 3)}
drugs = pd.DataFrame((state @ rng.normal(size=(3, 4)) > 0).astype(float), index=patients, columns=list("ABCD"))
drugs = drugs.mask(rng.random(drugs.shape) < .4)  # responses that were never tested are unknown

clf = lacuna.Classifier(epochs=40, members=1).fit(layers, drugs)
print("known responses:", int(drugs.notna().to_numpy().sum()), "of", drugs.size)
print({name: round(value, 3) for name, value in clf.validation_.items() if name in ("AP", "AUC")})
only_protein = {"protein": layers["protein"].head(3)}  # a single layer is enough for a prediction
print(clf.predict_frame(only_protein).round(2))
