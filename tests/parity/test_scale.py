"""Large models: many nodes, many gigabytes, deep sub-graphs. What is asserted is that they work and what memory they
take; times are for bench/run."""
import json
import os
import resource
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import WINML
from judge import same_answers

MAKE = os.path.join(os.path.dirname(WINML), "bench", "bench_make_model")


def make(kind, n, path):
    """A graph of one kind, see bench/make_scale.c."""
    if not os.path.exists(MAKE):
        pytest.skip("bench_make_model is not built")
    subprocess.run([MAKE, kind, path, "--nodes", str(n)], check=True)
    return path


def peak_mib(args, timeout=600):
    """Runs winml; what it printed and the most memory it had, mapped files included."""
    code = ("import resource, subprocess, sys; p = subprocess.run(sys.argv[1:]); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(p.returncode)")
    import sys
    p = subprocess.run([sys.executable, "-c", code, WINML, *map(str, args)], capture_output=True, text=True, timeout=timeout)
    assert p.returncode == 0, p.stderr
    return p.stdout, int(p.stderr.split()[-1]) / 1024


def sparse_model(folder, layers, width):
    """Linear layers between layer norms, as exporters write them; the weights are holes in a file: they take no disk."""
    path, at = folder / "model.onnx", 0
    nodes, weights = [], []

    def constant(name, *value):
        weights.append(numpy_helper.from_array(np.array(value, "f") if len(value) > 1 else np.array(value[0], "f"), name))
        return name

    def hole(name, *dims):
        nonlocal at
        t = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        size = 4 * int(np.prod(dims))
        for k, v in (("location", "model.data"), ("offset", at), ("length", size)):
            t.external_data.add(key=k, value=str(v))
        at += (size + 4095) // 4096 * 4096
        weights.append(t)
        return name

    def node(op, *inputs, **attributes):
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    constant("two", 2.0), constant("eps", 1e-5)
    x = "x"
    for i in range(layers):
        d = node("Sub", x, node("ReduceMean", x, axes=[-1]))
        v = node("ReduceMean", node("Pow", d, "two"), axes=[-1])
        d = node("Div", d, node("Sqrt", node("Add", v, "eps")))
        d = node("Add", node("Mul", d, hole(f"gamma{i}", width)), hole(f"beta{i}", width))
        y = node("Identity", node("Transpose", node("Transpose", d, perm=[1, 0]), perm=[1, 0]))
        y = node("Add", node("MatMul", y, hole(f"w{i}", width, width)), hole(f"b{i}", width))
        x = node("Add", x, y)
    nodes[-1].output[0] = "y"
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", width]) for n in ("x", "y")]
    m = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights),
                          opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(m, path)
    with open(folder / "model.data", "wb") as f:
        f.truncate(at)
    return path, at


def shape_chains(path, n):
    """Types that follow from values: targets of Reshape given and computed from Shape, float scales, two branches."""
    nodes = []

    def node(op, *inputs, **attributes):
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    weights = [numpy_helper.from_array(np.array(v, t), k) for k, v, t in (
        ("zero", 0, "i8"), ("keep3", [0, -1, 4], "i8"), ("keep4", [0, 4, 4, 4], "i8"), ("rest", [-1], "i8"), ("four", [4], "i8"), ("axis", [0], "i8"), ("up", [1, 1, 2, 2], "f"),
        ("down", [1, 1, .5, .5], "f"), ("none", [], "f"), ("half", [1, 1, 1, 0.5], "f"))]
    x = "x"
    while len(nodes) < n:
        batch = node("Unsqueeze", node("Gather", node("Shape", x), "zero"), "axis")
        node("Relu", node("Reshape", x, node("Concat", batch, "rest", "four", axis=0)))
        y = node("Transpose", node("Reshape", x, "keep3"), perm=[0, 2, 1])
        y = node("Reshape", node("Relu", y), "keep4")
        y = node("Resize", node("Resize", y, "none", "up"), "none", "down")
        z = node("Cast", node("Greater", node("Resize", y, "none", "half"), "half0"), to=TensorProto.FLOAT)
        node("ReduceMax", z)
        x = node("Abs", y)
    weights.append(numpy_helper.from_array(np.array(0.5, "f"), "half0"))
    nodes[-1].output[0] = "y"
    info = [helper.make_tensor_value_info(v, TensorProto.FLOAT, ["batch", 4, 4, 4]) for v in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights),
                                opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


@pytest.mark.parametrize("kind", ["chains", "blocks"])
def test_types_in_runs(winml, tmp_path, kind):
    """Graphs beyond one question are asked about in runs, with answers used again: the types are those of one question."""
    source, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    shape_chains(source, 7000) if kind == "chains" else make("blocks", 7000, source)
    config = tmp_path / "only.json"
    names = [c["name"] for c in winml("optimize", "-l", "-f", "json").json["capabilities"]]
    config.write_text(json.dumps({n: n in ("shape-inference", "constant-nodes") for n in names}))
    r = winml("optimize", "-m", source, "-o", out, "-c", config, "--no-verify", "-f", "json")
    assert r.code == 0, r.err
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    m = onnx.load(out)
    del m.graph.value_info[:]
    inner = {o for n in m.graph.node for o in n.output} - {"y"}
    m.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in sorted(inner))
    whole = ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    said = {o.name: tuple(o.shape) for o in whole.get_outputs() if o.shape}
    found = {v.name: tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in v.type.tensor_type.shape.dim)
             for v in onnx.load(out).graph.value_info if v.type.tensor_type.shape.dim}
    said.pop("y"), found.pop("y", None)
    assert len(said) > 5000 and found == said


@pytest.mark.parametrize("gigabytes", [10, 40])
def test_weights_stay(tmp_path, gigabytes):
    """Weights that stay in their file are not read, however large: memory is that of the graph and of the runtime."""
    source, size = sparse_model(tmp_path, 4 * gigabytes, 8000)
    assert size > gigabytes * 1e9
    out = tmp_path / "o.onnx"
    text, peak = peak_mib(["optimize", "-m", source, "-o", out, "--weights", "reference", "-f", "json"])
    d = json.loads(text)
    assert d["nodes"]["after"] <= 4 * d["nodes"]["before"] / 15  # LayerNormalization, MatMul and two Adds are left
    assert peak < 500, f"{peak:.0f} MiB"
    assert not os.path.exists(tmp_path / "o.onnx.data")
    weights = {t.name: t for t in onnx.load(out, load_external_data=False).graph.initializer}
    places = {n: {e.key: e.value for e in t.external_data} for n, t in weights.items() if len(t.dims) == 2}
    assert len(places) == 4 * gigabytes
    assert all(p["location"] == "model.data" and int(p["length"]) == 4 * 8000 * 8000 for p in places.values())


def test_weights_stream(tmp_path):
    """Copying weights takes no memory for them; scaled ones are made piece by piece."""
    if shutil.disk_usage(tmp_path).free < 4 << 30:
        pytest.skip("less than 4 GiB of disk are free")
    source, size = sparse_model(tmp_path, 6, 8000)
    out = tmp_path / "o.onnx"
    for args in ([], ["--disable-constant-sharing"]):
        _, peak = peak_mib(["optimize", "-m", source, "-o", out, "--overwrite", "--weights", "copy", "-f", "json", *args])
        assert peak < 300, f"{peak:.0f} MiB"
    assert os.path.getsize(f"{out}.data") > 0.99 * size
    onnx.checker.check_model(str(out))


@pytest.mark.parametrize("weights", ["reference", "copy"])
def test_large_constants_are_not_computed(tmp_path, weights):
    """A transposed weight of 250 MB is no constant to compute when weights stay; a reshaped one is the same bytes."""
    source, _ = sparse_model(tmp_path, 1, 8000)
    m = onnx.load(source, load_external_data=False)
    by_op = {n.op_type: n for n in m.graph.node}
    matmul = by_op["MatMul"]
    m.graph.initializer.append(numpy_helper.from_array(np.array([0, -1], "i8"), "keep"))
    add = [helper.make_node("Reshape", [matmul.input[1], "keep"], ["w_reshaped"]),
           helper.make_node("Transpose", ["w_reshaped"], ["w_transposed"], perm=[1, 0])]
    matmul.input[1] = "w_transposed"
    for n in reversed(add):
        m.graph.node.insert(0, n)
    onnx.save(m, source)
    out = tmp_path / "o.onnx"
    _, peak = peak_mib(["optimize", "-m", source, "-o", out, "--weights", weights, "--no-verify", "-f", "json"])
    ops = [n.op_type for n in onnx.load(out, load_external_data=False).graph.node]
    assert "Reshape" not in ops
    assert ("Transpose" in ops) == (weights == "reference")
    assert peak < (200 if weights == "reference" else 1100), f"{peak:.0f} MiB"


@pytest.mark.parametrize("kind, n, left", [
    ("chain", 30000, 24000), ("tree", 30000, 30000), ("identities", 100000, 1), ("constants", 30000, 15000), ("weights", 10000, 10000),
    ("readers", 5000, 5001), ("outputs", 20000, 20000), ("blocks", 20000, 15000)])
def test_many_nodes(winml, tmp_path, kind, n, left):
    """Kinds of graphs that make something quadratic: they end, with the nodes they must have, and answer the same."""
    source, out = make(kind, n, tmp_path / "m.onnx"), tmp_path / "o.onnx"
    r = winml("optimize", "-m", source, "-o", out, "--no-verify", "-f", "json", timeout=120)
    assert r.code == 0, r.err
    assert r.json["nodes"]["after"] <= left
    if n <= 20000 and kind not in ("outputs", "readers"):
        same_answers(str(source), str(out), seeds=(0,))


def test_deep(winml, tmp_path):
    """As deep as protobuf goes, and one level more."""
    out = tmp_path / "o.onnx"
    assert winml("optimize", "-m", make("nested", 32, tmp_path / "m.onnx"), "-o", out, "-f", "json").code == 0
    same_answers(str(tmp_path / "m.onnx"), str(out))
    r = winml("optimize", "-m", make("nested", 200, tmp_path / "n.onnx"), "-o", tmp_path / "p.onnx")
    assert r.code != 0 and "deeper than 100" in r.err and "protobuf itself ends there" in r.err and len(r.err) < 600
