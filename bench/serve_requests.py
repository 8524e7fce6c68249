# Bodies of requests for bench/serve.sh: JSON and binary tensors, one row or many, and scripts of wrk that send them.
# usage: serve_requests.py DATA.npz MODEL_NAME OUT [ROWS...]
import json
import sys

import numpy as np

data, name, out = np.load(sys.argv[1]), sys.argv[2], sys.argv[3]
views = {key: data[key].astype(np.float32) for key in data.files
         if key not in ("label", "W", "G", "ids", "label_names") and data[key].ndim == 2}
for rows in map(int, sys.argv[4:] or ["1"]):
    inputs, binary_inputs, tensors = [], [], b""
    for key, all_rows in views.items():
        part = all_rows[np.arange(rows) % len(all_rows)]
        head = {"name": key, "datatype": "FP32", "shape": list(part.shape)}
        if rows == 1:
            inputs.append({**head, "data": [float(str(x)) for x in part.ravel()]})
        binary_inputs.append({**head, "parameters": {"binary_data_size": part.nbytes}})
        tensors += part.tobytes()
    scores = [{"name": "scores"}]
    head = json.dumps({"inputs": binary_inputs, "outputs": scores, "parameters": {"binary_data_output": True}}).encode()
    bodies = {"binary": (head + tensors, len(head))}
    if rows == 1:
        bodies["json"] = (json.dumps({"inputs": inputs, "outputs": scores}).encode(), None)
    for kind, (body, length) in bodies.items():
        stem = f"{out}/{name}-{rows}-{kind}"
        with open(stem, "wb") as file:
            file.write(body)
        with open(stem + ".json-bytes", "w") as file:
            file.write("-" if length is None else str(length))
        with open(stem + ".lua", "w") as file:
            file.write(f'local file = io.open("{stem}", "rb")\nwrk.method = "POST"\nwrk.body = file:read("*a")\n')
            if length is not None:
                file.write(f'wrk.headers["Inference-Header-Content-Length"] = "{length}"\n')
        print(stem, len(body))
