# The peer of bench_metrics: seconds of scikit-learn's three ranking metrics together, and two of their values.
import sys
import time

import numpy as np
from sklearn.metrics import coverage_error, label_ranking_average_precision_score, label_ranking_loss

scores = np.load(sys.argv[1] + "/scores.npy")
truth = np.load(sys.argv[1] + "/truth.npy")
begin = time.perf_counter()
coverage_error(truth, scores)
loss = label_ranking_loss(truth, scores)
precision = label_ranking_average_precision_score(truth, scores)
print(time.perf_counter() - begin, precision, loss)
