"""DataFrames with gaps: tables that cover different customers, and tags that are known for some of them."""
import numpy as np
import pandas as pd

import lacuna

rng = np.random.default_rng(0)
ids = [f"customer{i:03d}" for i in range(300)]
kind = rng.normal(size=(300, 2))  # hidden factors: taste for sport, taste for music

visits = pd.DataFrame(kind @ rng.normal(size=(2, 8)) + .5 * rng.normal(size=(300, 8)), index=ids).add_prefix("page")
orders = pd.DataFrame(kind @ rng.normal(size=(2, 5)) + .5 * rng.normal(size=(300, 5)), index=ids).add_prefix("shelf")
orders = orders.sample(200, random_state=1)  # the others never bought anything

tags = pd.Series([[tag for tag, taste in zip(["sport", "music"], row) if taste > 0] for row in kind], index=ids)
tags = tags.sample(150, random_state=2)  # the others were never asked

clf = lacuna.Classifier(epochs=30, members=1).fit({"visits": visits, "orders": orders}, tags)
new = {"visits": visits.drop(tags.index), "orders": orders.drop(tags.index, errors="ignore")}
print(clf.predict_frame(new).round(2).head())
print("AP", round(clf.score({"visits": visits, "orders": orders}, tags), 3))
clf.save("customers.safetensors")  # lacuna predict customers.safetensors ... reads it as well
