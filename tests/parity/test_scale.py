"""Large models: many nodes, many gigabytes, deep sub-graphs. What is asserted is that they work and what memory they
take; times are for bench/run."""
import os
import resource
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import WINML
from judge import same_answers

MAKE = os.path.join(os.path.dirname(WINML), "bench", "bench_make_model")


def make(kind, n, path):
    """A graph of one kind, see bench/make_scale.c."""
    if not os.path.exists(MAKE):
        pytest.skip("bench_make_model is not built")
    subprocess.run([MAKE, kind, path, str(n)], check=True)
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
