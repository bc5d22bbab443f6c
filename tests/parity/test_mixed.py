"""Mixed precision by sensitivity: a goal that plain 8 bits miss is reached, with most of the model in 8 bits."""
import json
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
import minilm
import qdq_models
import test_text_calibration as texts


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    if not os.path.exists(f"{texts.FOLDER}/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    path = tmp_path_factory.mktemp("minilm") / "minilm.onnx"
    onnx.save(minilm.build(texts.FOLDER), path)
    return path


def ratio(before, after, sentences):
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(f"{texts.FOLDER}/tokenizer.json")
    tok.no_padding()
    a, b = judge.session(str(before)), judge.session(str(after))
    signal = noise = 0
    for text in sentences:
        e = tok.encode(text)
        ids = np.array([e.ids])
        feed = {"input_ids": ids, "attention_mask": np.array([e.attention_mask]), "token_type_ids": np.zeros_like(ids)}
        x, y = (s.run(None, feed)[0].astype("f8") for s in (a, b))
        signal, noise = signal + (x ** 2).sum(), noise + ((x - y) ** 2).sum()
    return 10 * np.log10(signal / noise)


def test_a_goal_that_plain_integers_miss(winml, tmp_path, source):
    data, plain, out = tmp_path / "texts.txt", tmp_path / "plain.onnx", tmp_path / "mixed.onnx"
    data.write_text("\n".join(texts.OTHERS) + "\n", encoding="utf-8")
    common = ["-p", "w8a8", "--calibration-data", data, "--samples", "8", "--tokenizer", texts.FOLDER, "-f", "json"]
    assert winml("quantize", "-m", source, "-o", plain, *common).code == 0
    r = winml("quantize", "-m", source, "-o", out, "--auto-mixed", *common)
    assert r.code == 0, r.err
    m = r.json["mixed_precision"]
    judge.check(out)
    assert m["goal_db"] == 20 and m["reached"] and m["plain_sqnr_db"] < 10 and 0 < m["wide_nodes_percent"] < 90
    assert ratio(source, plain, texts.OTHERS[:8]) < 10 and ratio(source, out, texts.OTHERS[:8]) >= 20
    assert abs(ratio(source, out, texts.OTHERS[:8]) - m["sqnr_db"]) < 0.1
    assert m["raised"] == len(m["tensors"]) and m["steps"][0]["raised"] == 0
    assert min(s["raised"] for s in m["steps"] if s["sqnr_db"] >= 20) == m["raised"]


def chain():
    """Layers one after another, with a second output half way, one of integers, one of a constant, one that is always 0."""
    m = qdq_models.Maker(5)
    h = m.input("x", [4, 32])
    for i in range(4):
        w = m.rng.standard_normal((32, 32)).astype("f") / 6
        w[:, i] *= 8
        h = m.node("Add", [m.node("MatMul", [h, m.weight(f"w{i}", values=w)]), m.weight(f"b{i}", 32)])
        h = m.node("Sigmoid" if i % 2 else "Tanh", [h])
        if i == 1:
            m.node("Mul", [h, m.weight("two", values=np.array(2, "f"))], ["side"])
    m.node("MatMul", [h, m.weight("last", 32, 10)], ["logits"])
    m.node("ArgMax", ["logits"], ["best"], axis=-1)
    m.node("Identity", [m.weight("numbers", values=np.arange(5, dtype="f"))], ["fixed"])
    m.node("Mul", ["side", m.weight("none", values=np.zeros(1, "f"))], ["nothing"])
    return m.build("logits", "side", "best", "fixed", "nothing", best=TensorProto.INT64)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "chain.onnx"
    onnx.save(chain(), path)
    return path


def branches():
    """A value that is an output, and read by nodes, by a Relu and inside of both branches of an If."""
    m = qdq_models.Maker(7)
    h = m.node("MatMul", [m.input("x", [4, 16]), m.weight("w0", 16, 16)], ["h"])
    cond = m.node("Greater", [m.node("ReduceSum", [h], keepdims=0), m.weight("zero", values=np.array(0, "f"))])
    parts = []
    for name in ("then", "else"):
        m.weight(f"k_{name}", values=np.array(len(name) - 2 + len(parts), "f"))
        out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [4, 16])
        parts.append(helper.make_graph([helper.make_node("Mul", ["h", f"k_{name}"], [f"{name}_out"], f"{name}_mul")], name, [], [out]))
    i = m.node("If", [cond], then_branch=parts[0], else_branch=parts[1])
    m.node("MatMul", [i, m.weight("w1", 16, 8)], ["y"])
    m.node("MatMul", [m.node("Relu", [h]), m.weight("w2", 16, 8)], ["q"])
    return m.build("y", "q", "h")


def test_values_that_branches_read_and_that_are_outputs(winml, tmp_path):
    onnx.save(branches(), tmp_path / "branches.onnx")
    for goal in (40, 60):
        out = tmp_path / f"{goal}.onnx"
        r = winml("quantize", "-m", tmp_path / "branches.onnx", "-o", out, "--target-sqnr", goal, "-f", "json")
        assert r.code == 0, r.err
        judge.check(out)
        m = r.json["mixed_precision"]
        assert m["plain_sqnr_db"] < goal <= m["sqnr_db"] and m["reached"] and m["raised"] > 0 and m["wide_nodes_percent"] <= 100


def test_half_floats(winml, tmp_path, small):
    half, out = tmp_path / "half.onnx", tmp_path / "out.onnx"
    assert winml("quantize", "-m", small, "-o", half, "-p", "fp16", "--no-keep-io-types").code == 0
    r = winml("quantize", "-m", half, "-o", out, "--target-sqnr", 42, "-f", "json")
    assert r.code == 0, r.err
    judge.check(out)
    m = r.json["mixed_precision"]
    assert m["plain_sqnr_db"] < 42 <= m["sqnr_db"] and 0 < m["raised"] < m["candidates"]


def test_what_a_tensor_alone_costs(winml, tmp_path, small):
    """Checked with ONNX Runtime: one weight as its integers have it, all else float."""
    r, m = mix(winml, small, tmp_path / "out.onnx", 45, "--rank", 3)
    rows = {t["tensor"]: t for t in r.json["tensors"]}
    assert all(rows[t["tensor"]]["alone_sqnr_db"] == t["alone_sqnr_db"] for t in m["tensors"])
    assert sum(t["alone_sqnr_db"] is not None for t in rows.values()) > 20
    assert "Alone dB" in winml("quantize", "-m", small, "-o", tmp_path / "text.onnx", "--target-sqnr", 45, "--rank", 3).out
    name = next(t["tensor"] for t in m["tensors"] if t["kind"] == "weight")
    data = tmp_path / "x.npz"
    np.savez(data, x=np.random.default_rng(5).random((2, 4, 32), dtype="f4"))
    plain, one = tmp_path / "plain.onnx", onnx.load(small)
    assert winml("quantize", "-m", small, "-o", plain, "--calibration-data", data).code == 0
    values = {t.name: numpy_helper.to_array(t) for t in onnx.load(plain).graph.initializer}
    back = (values[name + "_quantized"].astype("f4") - values[name + "_zero_point"]) * values[name + "_scale"]
    for t in one.graph.initializer:
        if t.name == name:
            t.CopyFrom(numpy_helper.from_array(back.astype("f4"), name))
    onnx.save(one, tmp_path / "one.onnx")
    a, b = judge.session(str(small)), judge.session(str(tmp_path / "one.onnx"))
    worst = np.inf
    for o in ("logits", "side"):
        x, y = (np.concatenate([s.run([o], {"x": v})[0] for v in np.load(data)["x"]]).astype("f8") for s in (a, b))
        if (x != y).any():
            worst = min(worst, 10 * np.log10((x ** 2).sum() / ((x - y) ** 2).sum()))
    r, m = mix(winml, small, tmp_path / "again.onnx", 45, "--calibration-data", data)
    assert abs(next(t["alone_sqnr_db"] for t in m["tensors"] if t["tensor"] == name) - worst) < 0.05


def mix(winml, small, out, goal, *options):
    r = winml("quantize", "-m", small, "-o", out, "-p", "w8a8", "--target-sqnr", goal, "-f", "json", *options)
    assert r.code == 0, r.err
    judge.check(out)
    judged = [o["sqnr_db"] for o in r.json["accuracy"]["outputs"] if o["output"] in ("logits", "side", "fixed")]
    m = r.json["mixed_precision"]
    assert abs(min(judged) - m["sqnr_db"]) < 0.02 and m["reached"] == (m["sqnr_db"] >= goal) and m["raised"] == len(m["tensors"])
    return r, m


@pytest.mark.parametrize("goal", [38, 45, 60])
def test_the_worst_of_several_outputs_reaches_the_goal(winml, tmp_path, small, goal):
    r, m = mix(winml, small, tmp_path / "out.onnx", goal)
    assert m["plain_sqnr_db"] < goal <= m["sqnr_db"] and 0 < m["raised"] < m["candidates"] and r.json["passes"][0]["ms"] > 0
    assert not r.json["warnings"]


def test_a_goal_that_8_bits_reach_leaves_the_model_plain(winml, tmp_path, small):
    out, plain = tmp_path / "out.onnx", tmp_path / "plain.onnx"
    _, m = mix(winml, small, out, 20)
    assert m["reached"] and m["raised"] == 0 and len(m["steps"]) == 1
    assert winml("quantize", "-m", small, "-o", plain, "-p", "w8a8").code == 0
    a, b = onnx.load(out), onnx.load(plain)
    assert [n.SerializeToString() for n in a.graph.node] == [n.SerializeToString() for n in b.graph.node]


def test_a_goal_out_of_reach_gives_the_best_model_and_says_so(winml, tmp_path, small):
    r, m = mix(winml, small, tmp_path / "out.onnx", 200)
    assert not m["reached"] and m["sqnr_db"] == max(s["sqnr_db"] for s in m["steps"]) > m["plain_sqnr_db"]
    assert any(f"the best is {m['sqnr_db']:.2f} dB" in w for w in r.json["warnings"])


def test_no_output_of_floats_is_an_error(winml, tmp_path):
    m = chain()
    del m.graph.output[0], m.graph.output[0], m.graph.output[1:]
    onnx.save(m, tmp_path / "ints.onnx")
    r = winml("quantize", "-m", tmp_path / "ints.onnx", "-o", tmp_path / "out.onnx", "--auto-mixed")
    assert r.code == 1 and "nothing to measure the goal by" in r.err and not (tmp_path / "out.onnx").exists()


def test_the_html_report_has_the_path_and_what_was_raised(winml, tmp_path, small):
    html = tmp_path / "r.html"
    _, m = mix(winml, small, tmp_path / "out.onnx", 45, "--report", html)
    text = html.read_text()
    for s in m["steps"]:
        assert f"<title>{s['raised']} raised: {s['sqnr_db']:.2f} dB</title>" in text
    listed = text[text.index("Tensors raised"):text.index("Tensors that lose most")]
    for t in m["tensors"]:
        assert f"<td>{t['tensor']}</td><td>{t['kind']}</td>" in listed
    assert listed.count("<tr><td>") == m["raised"] and text.count(">taken<") == 1


def types_of(path):
    """Integer types of every pair, by the value that goes in, and the scales of it."""
    m = onnx.load(path)
    values = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    found = {}
    for n in m.graph.node:
        if n.op_type == "QuantizeLinear":
            found.setdefault(n.output[0].removesuffix("_QuantizeLinear_Output"), (str(values[n.input[2]].dtype), float(values[n.input[1]])))
    return found


def overrides(tmp_path, **members):
    path = tmp_path / "overrides.json"
    path.write_text(json.dumps(members))
    return ["--overrides", path]


def test_types_that_the_user_says_stay(winml, tmp_path, small):
    _, m = mix(winml, small, tmp_path / "free.onnx", 45)
    noisy = [t["tensor"] for t in m["tensors"] if t["kind"] == "activation"][0]
    assert types_of(tmp_path / "free.onnx")[noisy][0] == "uint16"
    out = tmp_path / "out.onnx"
    _, m = mix(winml, small, out, 42, *overrides(tmp_path, **{noisy: [{"quant_type": "QUInt8"}]}))
    assert m["raised"] > 0 and noisy not in [t["tensor"] for t in m["tensors"]] and types_of(out)[noisy][0] == "uint8"
    weight = [t["tensor"] for t in m["tensors"] if t["kind"] == "weight"][0]
    _, m = mix(winml, small, tmp_path / "weight.onnx", 42, *overrides(tmp_path, **{weight: [{"quant_type": "QInt8"}]}))
    assert weight not in [t["tensor"] for t in m["tensors"]]
    values = {t.name: t.data_type for t in onnx.load(tmp_path / "weight.onnx").graph.initializer}
    assert values[weight + "_quantized"] == TensorProto.INT8


@pytest.mark.parametrize("pattern", [False, True])
def test_ranges_that_the_user_says_hold_for_16_bits(winml, tmp_path, small, pattern):
    _, m = mix(winml, small, tmp_path / "free.onnx", 60)
    name = [t["tensor"] for t in m["tensors"] if t["kind"] == "activation" and t["tensor"].startswith("t")][0]
    how = {"rmin": -40, "rmax": 40}
    asked = overrides(tmp_path, tensors={name[:-1] + "?": how}) if pattern else overrides(tmp_path, **{name: [how]})
    out = tmp_path / "out.onnx"
    _, m = mix(winml, small, out, 55, *asked)
    assert m["raised"] > 0
    kind, scale = types_of(out)[name]
    assert np.isclose(scale, 80 / (65535 if kind == "uint16" else 255)) and kind == "uint16"


def test_operators_that_the_user_makes_wide_or_leaves_out(winml, tmp_path, small):
    sigmoid = next(n for n in onnx.load(small).graph.node if n.op_type == "Sigmoid")
    out = tmp_path / "out.onnx"
    _, m = mix(winml, small, out, 42, *overrides(tmp_path, op_types={"Sigmoid": {"activation_type": "uint16"}}))
    assert types_of(out)[sigmoid.output[0]][0] == "uint16" and sigmoid.output[0] not in [t["tensor"] for t in m["tensors"]]
    _, m = mix(winml, small, tmp_path / "less.onnx", 42, *overrides(tmp_path, nodes={"matmul*": {"exclude": True}}))
    made = onnx.load(tmp_path / "less.onnx")
    maker = {o: n.op_type for n in made.graph.node for o in n.output}
    assert all(maker.get(i) != "DequantizeLinear" or i not in ("w0", "w1") for n in made.graph.node if n.op_type == "MatMul" for i in n.input)


TOOLS = ["--equalize", "--smooth-quant", "0.5", "--scale-search", "--bias-correction"]


@pytest.mark.parametrize("tools", [TOOLS[:1], TOOLS[1:3], TOOLS[3:4], TOOLS[4:], TOOLS], ids=["equalize", "smooth", "search", "bias", "all"])
def test_tools_for_accuracy(winml, tmp_path, small, tools):
    """They are measured against the float model as it was given, and bias correction on the types that were chosen."""
    r, m = mix(winml, small, tmp_path / "out.onnx", 42, *tools)
    assert m["reached"] and m["raised"] > 0
    if "--bias-correction" in tools:
        last = m["steps"][-1]
        assert last["raised"] == m["raised"] and (last["sqnr_db"] == m["sqnr_db"] or any("without the corrections" in w for w in r.json["warnings"]))
        assert m["sqnr_db"] >= max(s["sqnr_db"] for s in m["steps"] if s["raised"] == m["raised"])


def test_a_calibration_cache_gives_the_same_model(winml, tmp_path, small):
    cache = ["--calibration-cache", tmp_path / "ranges.json"]
    first, m = mix(winml, small, tmp_path / "a.onnx", 45, *cache)
    again, _ = mix(winml, small, tmp_path / "b.onnx", 45, *cache)
    assert "ranges in ranges.json" in again.json["dataset"] and m["raised"] > 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


@pytest.mark.parametrize("types", [["--weight-type", "int8", "--activation-type", "int8"], ["--weight-type", "int8", "--per-channel"], ["--contrib-qdq"]],
                         ids=["int8", "channels", "contrib"])
def test_other_types(winml, tmp_path, small, types):
    _, m = mix(winml, small, tmp_path / "out.onnx", 50, *types)
    assert m["reached"] and m["raised"] > 0
    wide = {t for t, _ in types_of(tmp_path / "out.onnx").values()}
    assert wide == ({"int8", "int16"} if "--activation-type" in types else {"uint8", "uint16"})
