"""Models and samples that are valid but unusual, and such that are not: every precision gives a model that is checked, loads and answers like its
source, or refuses in two lines that say what, where and what to do. docs/commands/quantize.md, "Special inputs", is the list."""
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import odd_models
from conftest import no_leftovers
from judge import session

PRECISIONS = {"w8a8": 20, "fp16": 55, "int4": 15, "dynamic": 33}  # the least SQNR in dB over all outputs
NOTHING = {"w8a8": "nothing can be quantised", "fp16": "that could become float16", "int4": "no MatMul with a constant float weight",
           "dynamic": "with a constant float32 weight"}
UNFIT = {  # the precisions that find nothing to do
    "int4": "bias_is_output conv_1d conv_3d conv_bias_computed gather_table_twice lstm no_shape_conv open_conv optional_slots shared_bias"
            " size_1_everything vector_matmul weight_twice_in_a_node zero_bias",
    "int4 dynamic": "constant_of_shape conv_weight_input default_input einsum empty_weight empty_weight_out functions gemm_alpha_0 gemm_beta_0"
                    " gemm_trans_a gru inf_weight nan_weight only_constants only_identity same_output_twice_read scalars weight_left"
                    " weight_through_identity weight_through_reshape weight_through_transpose",
    "w8a8 int4 dynamic": "only_shapes", "fp16 dynamic": "half_already",
    "w8a8 fp16 int4 dynamic": "no_nodes only_bool only_double only_integers only_strings"}
OTHER = {  # other refusals: exit status, what is said
    ("quantised", "w8a8"): (1, "quantised already"), ("quantised", "int4"): (1, NOTHING["int4"]), ("quantised", "dynamic"): (1, NOTHING["dynamic"]),
    ("string_input", "w8a8"): (1, "input 's' takes texts"), ("sequence_input", "w8a8"): (1, "input 's' takes a sequence"),
    ("optional_input", "w8a8"): (1, "input 'o' takes an optional value"), ("gemm_int", "w8a8"): (3, "no kernel for operator Gemm"),
    ("custom_operator", "w8a8"): (3, "no operator Nobody of domain my.ops"),
    **{("no_outputs", p): (1, "the graph has no outputs") for p in PRECISIONS},
    **{(f"opset_{n}", "dynamic"): (1, f"dynamic quantization needs opset 11: the model uses opset {n}") for n in range(7, 11)},
    ("ir3_listed", "dynamic"): (1, "dynamic quantization needs opset 11: the model uses opset 9")}
REFUSED = OTHER | {(m, p): (1, NOTHING[p]) for ps, ms in UNFIT.items() for p in ps.split() for m in ms.split()}
DOES_NOT_RUN = {"custom_operator", "gemm_int", "equal_node_names", "sequence_input"}  # the source itself, or nothing can be given to it
NOT_FINITE = {"nan_weight", "inf_weight", "nan_bias", "inf_bias", "nan_value", "inf_value"}


@pytest.fixture
def quantize(winml, tmp_path):
    def run(model, precision, *args, code=0):
        source, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
        source.write_bytes(model.SerializeToString())
        out.unlink(missing_ok=True)
        r = winml("quantize", "-m", source, "-o", out, "-p", precision, "-f", "json", *args)
        assert r.code == code, r.err
        assert out.exists() == (code == 0)
        no_leftovers(tmp_path)
        return r
    return run


def value_for(i, rng):
    shape = [d if isinstance(d, int) else 2 for d in i.shape] or ([2, 8] if i.name == "x" and i.type == "tensor(float)" else [])
    if "string" in i.type:
        return np.array(["a"] * shape[0], object)
    if i.type.startswith("optional"):
        return rng.random([2, 8]).astype("f")
    kind = {"float": "f4", "double": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "int8": "i1", "bool": "?"}[i.type[7:-1]]
    return (rng.random(shape) if kind[0] == "f" else rng.integers(0, 2, shape)).astype(kind)


def worst_sqnr(before, after, seeds=(1, 2, 3)):
    """Of all outputs; integers must be equal, and what is finite must be so in both."""
    a, b = session(before), session(after)
    names = [o.name for o in a.get_outputs()]
    assert [o.name for o in b.get_outputs()] == names and [o.type for o in b.get_outputs()] == [o.type for o in a.get_outputs()]
    power, noise = np.zeros(len(names)), np.zeros(len(names))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        feed = {i.name: value_for(i, rng) for i in a.get_inputs()}
        for k, (x, y) in enumerate(zip(a.run(None, feed), b.run(None, feed))):
            assert x.shape == y.shape
            if x.dtype.kind != "f":
                assert np.array_equal(x, y)
                continue
            assert np.array_equal(np.isfinite(x), np.isfinite(y)), names[k]
            x, y = x.astype("d"), y.astype("d")
            power[k] += (x[np.isfinite(x)] ** 2).sum()
            noise[k] += ((x - y)[np.isfinite(x)] ** 2).sum()
    return min([10 * np.log10(p / n) for p, n in zip(power, noise) if n > 0], default=999)


def checked(path):
    """Whether the full check passes."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return True
    except Exception:
        return False


@pytest.mark.parametrize("name", odd_models.MODELS)
def test_every_precision(quantize, tmp_path, name):
    model = odd_models.MODELS[name]()
    for precision, least in PRECISIONS.items():
        code, text = REFUSED.get((name, precision), (0, ""))
        args = [] if not name.startswith(("open_conv", "no_shape")) else ["--input-shape", f"x={'1,3,8,8' if 'conv' in name else '2,8'}"]
        r = quantize(model, precision, *args, code=code)
        if code:
            assert text in r.json["error"]["message"] and "Hint: " in r.err, r.err
            continue
        assert checked(tmp_path / "o.onnx") or not checked(tmp_path / "m.onnx")
        if name not in DOES_NOT_RUN | NOT_FINITE | {"no_shape_conv", "open_conv", "huge_weight"}:
            assert worst_sqnr(tmp_path / "m.onnx", tmp_path / "o.onnx") >= least, precision
