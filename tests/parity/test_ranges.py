"""Value ranges that a model carries are kept by the inputs made for it."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def test_token_ids_stay_inside_the_vocabulary(winml, tmp_path):
    """A table of 7 rows, read by ids: any id beyond it fails the run; 0 and 1 alone would not show the others."""
    table = np.arange(14, dtype="f").reshape(7, 2)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"], "g"), helper.make_node("ReduceMax", ["rows"], ["y"], "m", keepdims=0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])], [numpy_helper.from_array(table, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    p = model.metadata_props.add()
    p.key, p.value = "winml.io.inputs", json.dumps([{"name": "ids", "dtype": "int64", "shape": [1, 512], "value_range": [0, 7]}])
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    assert winml("perf", "-m", path, "--ep", "cpu", "--iterations", "3", "-o", tmp_path / "r.json").code == 0
    assert winml("optimize", "-m", path, "-o", tmp_path / "o.onnx", "--verify").code == 0
    # with a range that leaves the table, the run must fail: so the range is what is used
    model.metadata_props[0].value = json.dumps([{"name": "ids", "dtype": "int64", "value_range": [100, 101]}])
    onnx.save(model, path)
    r = winml("perf", "-m", path, "--ep", "cpu", "--iterations", "3", "-o", tmp_path / "r2.json")
    assert r.code == 4, r.err
