# Asks ONNX's own checker about exported files. usage: check.py FILE...
import sys

import onnx

for path in sys.argv[1:]:
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert model.opset_import[0].version == 17, path
    for key in ("labels", "thresholds", "views", "method"):
        assert key in notes, (path, key)
    for value in list(model.graph.input) + list(model.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch", (path, value.name)
print(len(sys.argv) - 1, "files are valid")
