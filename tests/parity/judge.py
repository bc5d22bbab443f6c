"""Answers of ONNX Runtime from Python, with its optimisations off."""
import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(s, shapes=None, seed=0, optional=True):
    rng = np.random.default_rng(seed)
    out = {}
    for i in s.get_inputs():
        shape = (shapes or {}).get(i.name) or [d if isinstance(d, int) and d >= 0 else 1 for d in i.shape]
        kind = i.type[len("tensor("):-1]
        if kind in ("float", "double", "float16"):
            dtype = {"float": "f4", "double": "f8", "float16": "f2"}[kind]
            out[i.name] = rng.standard_normal(shape).astype(dtype)
        elif kind == "bool":
            out[i.name] = rng.integers(0, 2, shape).astype(bool)
        else:
            out[i.name] = rng.integers(0, 2, shape).astype(kind)
    return out


def same_answers(before, after, shapes=None, seeds=(0, 1, 2), rtol=1e-4, atol=1e-5):
    a, b = session(before), session(after)
    assert [o.name for o in a.get_outputs()] == [o.name for o in b.get_outputs()]
    for seed in seeds:
        f = feeds(a, shapes, seed)
        for x, y in zip(a.run(None, f), b.run(None, f)):
            if isinstance(x, list):
                assert len(x) == len(y)
                x, y = np.concatenate([v.ravel() for v in x]), np.concatenate([v.ravel() for v in y])
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def check(path):
    onnx.checker.check_model(path, full_check=True)


def ops(path):
    m = onnx.load(path, load_external_data=False)
    return [n.op_type for n in m.graph.node]
