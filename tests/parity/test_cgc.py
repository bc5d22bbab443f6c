"""Operators written out for compilers that lack them, against ONNX Runtime's own, over their attributes."""
import itertools
import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from judge import check, ops, session


def run(winml, tmp_path, name, m, feed, rtol=1e-4, atol=1e-5):
    """The operator is gone, the answer is the same."""
    source, out, config = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "c.json"
    onnx.save(m, source)
    names = [c["name"] for c in winml("optimize", "-l", "-f", "json").json["capabilities"]]
    config.write_text(json.dumps({n: n in (name, "shape-inference") for n in names}))
    r = winml("optimize", "-m", source, "-o", out, "-c", config, "--no-verify", "--allow-unsafe", "-f", "json")
    assert r.code == 0, r.err
    assert m.graph.node[0].op_type not in ops(out)
    check(str(out))
    a, b = session(str(source)).run(None, feed)[0], session(str(out)).run(None, feed)[0]
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("align, odd, opset, half", list(itertools.product((0, 1), (0, 1), (16, 20), (0, 1))))
def test_gridsample(winml, tmp_path, align, odd, opset, half):
    shape, grid = ([2, 3, 5, 4], [2, 3, 7, 2]) if odd else ([1, 1, 4, 4], [1, 2, 2, 2])
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode="linear" if opset == 20 else "bilinear", align_corners=align)
    io = [helper.make_tensor_value_info("x", kind, ["n"] + shape[1:]), helper.make_tensor_value_info("g", kind, ["n"] + grid[1:])]
    y = helper.make_tensor_value_info("y", kind, ["n", shape[1], grid[1], grid[2]])
    m = helper.make_model(helper.make_graph([node], "g", io, [y]), opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    rng = np.random.default_rng(1)
    where = rng.uniform(-1.4, 1.4, grid)
    where.reshape(-1)[:8] = [-1, 1, 0, 0, 1e9, -1e9, 1, -1]  # corners, the middle, far outside
    t = np.float16 if half else np.float32
    if half:
        where = np.clip(where, -6e4, 6e4)
        try:
            session(m.SerializeToString())
        except Exception:
            pytest.skip("this ONNX Runtime has no GridSample of half floats")
    feed = {"x": rng.standard_normal(shape).astype(t), "g": where.astype(t)}
    run(winml, tmp_path, "gridsample-to-gather", m, feed, 1e-2 if half else 1e-4, 5e-3 if half else 1e-5)


@pytest.mark.parametrize("size, length, axis, inverse, onesided, parts", [
    (8, None, 1, 0, 0, 1), (8, None, 1, 0, 1, 1), (7, None, 1, 0, 1, 1), (6, None, 1, 0, 0, 2), (6, None, 1, 1, 0, 2),
    (12, 5, 1, 0, 0, 1), (5, 12, 1, 0, 0, 2), (5, 16, 1, 0, 1, 1), (9, None, 0, 0, 0, 2), (9, 4, -3, 1, 0, 2), (480, 512, 1, 0, 1, 1)])
@pytest.mark.parametrize("opset", [17, 20])
def test_dft(winml, tmp_path, size, length, axis, inverse, onesided, parts, opset):
    shape = [3, size, parts] if axis == 1 else [size, 3, parts]
    inits = [numpy_helper.from_array(np.array(length or 0, "i8"), "n"), numpy_helper.from_array(np.array(axis, "i8"), "axis")]
    inputs, attributes = ["x", "n" if length else ""], {"inverse": inverse, "onesided": onesided}
    if opset == 20:
        inputs.append("axis")
    else:
        attributes["axis"] = axis
    node = helper.make_node("DFT", inputs if any(inputs[1:]) else inputs[:1], ["y"], **attributes)
    x, out = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), shape[:2] + [2]
    out[axis] = (length or size) // 2 + 1 if onesided else length or size
    m = helper.make_model(helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
                                            [t for t in inits if t.name in node.input]),
                          opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    feed = {"x": np.random.default_rng(2).standard_normal(shape).astype("f")}
    run(winml, tmp_path, "dft-to-matmul", m, feed, 1e-3, 1e-4)


def test_two_versions_of_one_opset(winml, tmp_path):
    """Nobody can say which one is meant: the pass fails and says so, the others go on."""
    node = helper.make_node("Neg", ["x"], ["y"])
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "y")]
    m = helper.make_model(helper.make_graph([node], "g", io[:1], io[1:]), ir_version=8,
                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx", 16)])
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("optimize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--enable-deduplicate-opset-imports", "--no-verify",
              "-f", "json")
    said = [p for p in r.json["passes"] if p["name"] == "deduplicate-opset-imports"]
    assert said[0]["status"] == "failed" and "imported in two versions" in said[0]["reason"]
