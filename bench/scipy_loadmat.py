# The peer of bench_data: seconds of SciPy's loadmat plus conversion to float32, and the peak memory in MB.
import resource
import sys
import time

import numpy as np
import scipy.io

begin = time.perf_counter()
data = scipy.io.loadmat(sys.argv[1])
views = [view.astype(np.float32) for view in data["X"].ravel()]
seconds = time.perf_counter() - begin
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-6)
