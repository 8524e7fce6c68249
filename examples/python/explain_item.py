"""Which view drove a tag of one item: Shapley values of the views, in log-odds."""
import numpy as np

import lacuna

rng = np.random.default_rng(5)
Y = rng.random((400, 3)) < .4
text = Y[:, :2] @ rng.normal(size=(2, 12)) + rng.normal(size=(400, 12))  # depends on sport and politics
image = Y[:, 1:] @ rng.normal(size=(2, 8)) + rng.normal(size=(400, 8))  # depends on politics and nature
clf = lacuna.Classifier(epochs=40, members=1).fit({"text": text, "image": image}, Y, classes=["sport", "politics", "nature"])

item = {"text": text[:1], "image": image[:1]}
for tag in clf.explain(item).item(0):
    parts = "  ".join(f"{view} {value:+.2f}" for view, value in tag["views"].items())
    print(f"{tag['label']:9} {tag['score']:+.2f} = {tag['base']:+.2f} without views  {parts}")
