"""build --export-type optimized: pipelines of tiny checkpoints, run stage by stage with ONNX Runtime and by onnxruntime-genai,
against the logits that PyTorch gave (logits.npz, of prompt and greedy answer) and against the export of other families."""
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import DEPS, ROOT, WINML, need_qnn, no_leftovers
from exported import session, widened
from onnx import numpy_helper

TINY = f"{ROOT}/tests/data/genai/qwen3-tiny"
REFERENCE = json.load(open(f"{TINY}/reference.json"))
LOGITS = np.load(f"{TINY}/logits.npz")
GRAPHS = ["ctx.onnx", "iter.onnx", "embeddings.onnx", "lm_head.onnx"]


@pytest.fixture
def build(winml, tmp_path):
    def run(*more, model=TINY, name="b", code=0, ep="cpu"):
        out = tmp_path / name
        r = winml("build", "-m", model, "-o", out, "--export-type", "optimized", "--ep", ep, *more)
        assert r.code == code, r.err
        r.bundle = out
        return r
    return run


class Stages:
    """A pipeline as a runtime runs it: windows of the prompt through ctx, tokens through iter, one cache for both."""
    def __init__(self, folder):
        self.ctx, self.iter, self.embed, self.head = (session(folder / name) for name in GRAPHS)
        inputs = {i.name: i for i in self.ctx.get_inputs()}
        self.window = inputs["input_hidden_states"].shape[1]
        self.empty = {k: np.zeros(i.shape, np.float16 if "16" in i.type else np.float32) for k, i in inputs.items() if k.startswith(("past_keys", "past_values"))}
        self.slots = self.empty["past_keys_0"].shape[2]
        self.names = [o.name for o in self.ctx.get_outputs()]
        self.clear()

    def clear(self):
        self.n, self.cache = 0, self.empty

    def call(self, s, ids, step):
        x = self.embed.run(None, {"input_ids": np.array([ids + [0] * (step - len(ids))], np.int64)})[0]
        out = dict(zip(self.names, s.run(self.names, {"input_hidden_states": x, "past_seq_len": np.array([[self.n + step - 1]], np.int32),
                                                      "total_seq_len": np.array([self.slots], np.int32), **self.cache})))
        self.cache = {k: out[k.replace("past", "present")] for k in self.cache}
        self.n += len(ids)
        return self.head.run(None, {"output_hidden_states": out["output_hidden_states"]})[0][0, :len(ids)]

    def whole(self, ids):
        self.clear()
        return np.concatenate([self.call(self.ctx, ids[k:k + self.window], self.window) for k in range(0, len(ids), self.window)])

    def stepwise(self, prompt, rest):
        """The prompt at once, then token by token."""
        return np.concatenate([self.whole(prompt)] + [self.call(self.iter, [t], 1) for t in rest])


    def greedy(self, prompt, n):
        tokens = [int(self.whole(prompt)[-1].argmax())]
        while len(tokens) < n:
            tokens.append(int(self.call(self.iter, tokens[-1:], 1)[-1].argmax()))
        return tokens


def agreement(m, truth=None):
    """How often the likeliest token is that of PyTorch, or of another pipeline, over all prompts and their greedy answers."""
    same = []
    for r in REFERENCE:
        n, ids = len(r["prompt_ids"]), r["prompt_ids"] + r["greedy_ids"][:-1]
        got = m.stepwise(ids[:n], ids[n:]).argmax(-1)
        same += (got[n - 1:] == r["greedy_ids"]).tolist() if truth is None else (got == truth.stepwise(ids[:n], ids[n:]).argmax(-1)).tolist()
    return np.mean(same)


def texts():
    for key in LOGITS:
        r = REFERENCE[int(key)]
        yield r["prompt_ids"], r["greedy_ids"][:-1], LOGITS[key]


@pytest.mark.parametrize("more", [[], ["--prefill-len", "7", "--max-cache-len", "64"]], ids=["one-window", "windows"])
def test_logits(build, more):
    m = Stages(build("-p", "fp32", *more).bundle)
    for prompt, answer, want in texts():
        assert np.abs(m.whole(prompt + answer) - want).max() < 1e-3
        assert np.abs(m.stepwise(prompt, answer) - want).max() < 1e-3


def test_tokens_of_the_runtime(build, winml):
    """Through onnxruntime-genai; a prompt of several windows, too, against the plain bundle."""
    if not os.path.exists(f"{DEPS}/genai/libonnxruntime-genai.so"):
        pytest.skip("onnxruntime-genai could not be fetched")
    bundle = build("-p", "fp32").bundle
    for r in REFERENCE[:2]:
        more = [] if r["template"] else ["--no-apply-template"]
        got = winml("generate", "-m", bundle, "--prompt", r["prompt"], "--max-new-tokens", len(r["greedy_ids"]), "-f", "json", *more)
        assert got.code == 0, got.err
        assert got.json["tokens"] == r["greedy_ids"] and got.json["request"]["prompt_tokens"] == len(r["prompt_ids"])
    plain = bundle.parent / "plain"
    assert winml("build", "-m", TINY, "-o", plain, "--export-type", "plain").code == 0
    text = "what is in a long prompt, longer than a window: " * 4
    a, b = (winml("generate", "-m", d, "--prompt", text, "--max-new-tokens", 12, "-f", "json") for d in (bundle, plain))
    assert a.code == b.code == 0 and a.json["request"]["prompt_tokens"] > 64
    assert a.json["tokens"] == b.json["tokens"] and a.json["text"] == b.json["text"]


def test_graphs(build):
    bundle = build("-p", "fp32", "--max-cache-len", "128").bundle
    for name in GRAPHS:
        onnx.checker.check_model(str(bundle / name), full_check=True)
    shapes = {}
    for name, step in (("ctx.onnx", 64), ("iter.onnx", 1)):
        m = onnx.load(str(bundle / name), load_external_data=False)
        values = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*m.graph.input, *m.graph.output]}
        cache = [f"past_{k}_{i}" for i in range(4) for k in ("keys", "values")]
        assert [v.name for v in m.graph.input] == [*cache, "input_hidden_states", "past_seq_len", "total_seq_len"]
        assert [v.name for v in m.graph.output] == ["output_hidden_states", *(c.replace("past", "present") for c in cache)]
        assert values["past_keys_0"] == values["present_values_3"] == [1, 2, 128, 32]
        assert values["input_hidden_states"] == values["output_hidden_states"] == [1, step, 64]
        assert values["past_seq_len"] == [1, 1] and values["total_seq_len"] == [1]
        gqa = [n for n in m.graph.node if n.op_type == "GroupQueryAttention"]
        assert len(gqa) == 4 and all({a.name for a in n.attribute} == {"num_heads", "kv_num_heads", "do_rotary"} for n in gqa)
        assert len({n.input[7] for n in gqa}) == 1, "one pair of tables for all layers"
        where = {e.value for t in m.graph.initializer for e in t.external_data if e.key == "location"}
        assert where == {"transformer.data"}, "one file of weights for both graphs"
        shapes[name] = {t.name: {e.key: e.value for e in t.external_data} for t in m.graph.initializer if t.external_data}
    assert shapes["ctx.onnx"] == shapes["iter.onnx"]


def test_config(build):
    bundle = build("-p", "fp32", "--ep-options", "soc_model=73", ep="qnn").bundle
    c = json.loads((bundle / "genai_config.json").read_text())
    m, d = c["model"], c["model"]["decoder"]
    assert (m["type"], m["bos_token_id"], m["eos_token_id"], m["pad_token_id"], m["vocab_size"], m["context_length"]) == ("decoder-pipeline", 0, 2, 0, 300, 256)
    assert d["sliding_window"] == {"window_size": 64, "pad_value": 0, "alignment": "left", "slide_inputs": True, "slide_key_value_cache": False}
    assert [list(s) for s in d["pipeline"]] == [["embeddings"], ["context"], ["iterator"], ["lm_head"]]
    stages = {k: v for s in d["pipeline"] for k, v in s.items()}
    for name, s in stages.items():
        g = onnx.load(str(bundle / s["filename"]), load_external_data=False).graph
        assert s["inputs"] == [v.name for v in g.input] and s["outputs"] == [v.name for v in g.output]
        assert (s["run_on_prompt"], s["run_on_token_gen"]) == (name != "iterator", name != "context")
        assert s.get("is_lm_head", False) == (name == "lm_head") and ("session_options" in s) == (name in ("context", "iterator"))
    o = stages["iterator"]["session_options"]
    assert (o["log_id"], o["intra_op_num_threads"], o["inter_op_num_threads"]) == ("onnxruntime-genai.iterator", 2, 1)
    qnn = o["provider_options"][0]["qnn"]
    assert qnn.pop("backend_path") in ("libQnnHtp.so", "QnnHtp.dll")
    assert qnn == {"htp_performance_mode": "burst", "htp_graph_finalization_optimization_mode": "3", "soc_model": "73"}
    assert c["search"] == {"max_length": 256, "min_length": 0, "do_sample": False, "past_present_share_buffer": True}
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        assert (bundle / name).read_bytes() == open(f"{TINY}/{name}", "rb").read()


@pytest.mark.parametrize("name", ["llama", "llama3-rope", "qwen2", "phi3-longrope", "granite", "smollm3"])
def test_family(build, winml, tmp_path, name):
    """Logits of a text in windows and token by token are those of the exported model. Random weights of small models give values
    so small that the eps of norms counts, which LpNormalization has not: here it is next to nothing for both."""
    checkpoint, n = widened(name, tmp_path / "c"), 12
    c = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**c, "rms_norm_eps": 1e-10}))
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"input_ids": {"dtype": "int32", "shape": [1, n]}, "attention_mask": {"dtype": "int32", "shape": [1, n]}}))
    r = winml("export", "-m", checkpoint, "-o", tmp_path / "e.onnx", "--task", "text-generation", "--input-specs", spec)
    assert r.code == 0, r.err
    ids = np.random.default_rng(5).integers(0, 100, n).tolist()
    want = session(tmp_path / "e.onnx").run(["logits"], {"input_ids": np.array([ids], np.int32), "attention_mask": np.ones((1, n), np.int32)})[0][0]
    m = Stages(build("-p", "fp32", "--prefill-len", 5, "--max-cache-len", 16, model=checkpoint).bundle)
    limit = 1e-3 * np.abs(want).max()
    assert np.abs(m.whole(ids) - want).max() < limit
    assert np.abs(m.stepwise(ids[:5], ids[5:]) - want).max() < limit


def test_quantised(build):
    """As a whole it answers as PyTorch does; for that the head has 8 bits, since 4 would change too much here. With 4 all the same,
    the transformer in integers answers as the float one with that head does."""
    floats = build("-p", "fp32", name="f").bundle
    assert agreement(Stages(floats)) == 1
    auto = build(name="auto")
    assert agreement(Stages(auto.bundle)) >= 0.9 and "lm_head gets 8 bits" in auto.err
    head = json.loads((auto.bundle / "manifest.json").read_text())["head"]
    assert head["precision"] == "w8a32" and 0.7 < head["agreement_of_4_bits"] < 0.9
    bundle = build("--head-precision", "int4", name="4").bundle
    mixed = shutil.copytree(floats, floats.parent / "mixed")
    for name in ("lm_head.onnx", "lm_head.onnx.data"):
        shutil.copy(bundle / name, mixed)
    assert agreement(Stages(bundle), Stages(mixed)) >= 0.9
    answers = agreement(Stages(mixed))
    assert abs(answers - head["agreement_of_4_bits"]) < 0.1, "what was measured with other prompts holds for these"


def producer(graph):
    return {o: n for n in graph.node for o in n.output}


def test_quantised_graphs(build):
    bundle = build("--head-precision", "w4a32", ep="qnn").bundle
    for name in GRAPHS:
        onnx.checker.check_model(str(bundle / name), full_check=True)
    places = []
    for name in ("ctx.onnx", "iter.onnx"):
        m = onnx.load(str(bundle / name), load_external_data=False)
        places.append({t.name: {e.key: e.value for e in t.external_data} for t in m.graph.initializer if t.external_data})
        assert {p["location"] for p in places[-1].values()} == {"transformer.data"}
        g = onnx.load(str(bundle / name)).graph
        consts, made = {t.name: numpy_helper.to_array(t) for t in g.initializer}, producer(g)
        assert [o.version for o in m.opset_import if not o.domain] == [21]
        for n in g.node:
            if n.op_type == "QuantizeLinear":
                assert consts[n.input[2]].dtype == np.uint16
            if n.op_type == "Conv":
                w = made[n.input[1]]
                assert w.op_type == "DequantizeLinear" and consts[w.input[0]].dtype == np.int8 and not consts[w.input[2]].any()
                assert made[n.input[0]].op_type == "DequantizeLinear"
            if n.op_type == "GroupQueryAttention":
                assert [made[x].op_type for x in n.input[:3]] == ["Cast"] * 3 and {a.name for a in n.attribute} == {"num_heads", "kv_num_heads", "do_rotary"}
        assert {v.type.tensor_type.elem_type for v in g.input if v.name.startswith(("past_keys", "past_values"))} == {onnx.TensorProto.FLOAT16}
    big = [{k: v for k, v in p.items() if k.endswith("_quantized")} for p in places]
    assert big[0] == big[1] and len(big[0]) >= 28, "the integers of the weights are there once"
    head = onnx.load(str(bundle / "lm_head.onnx"), load_external_data=False).graph.node
    assert [n.op_type for n in head] == ["MatMulNBits"]
    a = {a.name: a.i for a in head[0].attribute}
    assert (a["K"], a["N"], a["bits"], a["block_size"], a["accuracy_level"]) == (64, 300, 4, 32, 4) and len(head[0].input) == 3


def test_quantised_in_the_runtime(build, winml):
    if not os.path.exists(f"{DEPS}/genai/libonnxruntime-genai.so"):
        pytest.skip("onnxruntime-genai could not be fetched")
    bundle = build().bundle
    r = REFERENCE[0]
    got = winml("generate", "-m", bundle, "--prompt", r["prompt"], "--max-new-tokens", 12, "-f", "json", "--no-apply-template")
    assert got.code == 0, got.err
    assert got.json["tokens"] == Stages(bundle).greedy(r["prompt_ids"], 12)


def test_quantised_on_qnn(build, winml):
    """Compiled for the NPU and run on its simulator: the same tokens but for near ties."""
    need_qnn()
    if not os.path.exists(f"{DEPS}/genai/libonnxruntime-genai.so"):
        pytest.skip("onnxruntime-genai could not be fetched")
    bundle = build(ep="qnn").bundle
    r = REFERENCE[0]
    got = winml("generate", "-m", bundle, "--compile", "--prompt", r["prompt"], "--max-new-tokens", 4, "-f", "json", "--no-apply-template")
    assert got.code == 0, got.err
    assert got.json["effective_device"] == "npu" and got.json["tokens"][:2] == Stages(bundle).greedy(r["prompt_ids"], 2)
    assert {f for f in os.listdir(bundle / "_compiled") if f.endswith("_qnn_ctx.onnx")} == {"context_qnn_ctx.onnx", "iterator_qnn_ctx.onnx"}


def test_text_file(build, tmp_path):
    text = tmp_path / "prompts.txt"
    text.write_text("what is in a box\n\nthe capital of France in simple terms\n")
    first = build("--text-file", text, "--samples", 1)
    ctx = (first.bundle / "ctx.onnx").read_bytes()
    assert (build("--text-file", text).bundle / "ctx.onnx").read_bytes() != ctx, "two texts are more than one"
    text.write_text("what is in a box\n")
    assert (build("--text-file", text).bundle / "ctx.onnx").read_bytes() == ctx
    text.write_text("\n\n")
    assert "no text" in build("--text-file", text, code=2).err and (first.bundle / "genai_config.json").exists()


def maps(pid):
    try:
        with open(f"/proc/{pid}/maps") as f, open(f"/proc/{pid}/task/{pid}/children") as c:
            return f.read(), c.read().split()
    except OSError:
        return "", []


def test_interrupted(build, tmp_path):
    """Only a child loads ONNX Runtime; Ctrl-C ends it, and what was complete before is not made again."""
    text, bundle = tmp_path / "prompts.txt", tmp_path / "b"
    text.write_text("what is the capital of France\n" * 20000)
    more = ["--text-file", str(text), "--samples", "20000"]
    p = subprocess.Popen([WINML, "build", "-m", TINY, "-o", str(bundle), "--export-type", "optimized", "--ep", "cpu", *more],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    parent, child, end = "", "", time.monotonic() + 60
    while "libonnxruntime" not in child:
        assert time.monotonic() < end and p.poll() is None
        now, kids = maps(p.pid)
        parent += now
        child += "".join(maps(k)[0] for k in kids)
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 1 and "libonnxruntime" not in parent, err
    assert not any(os.path.exists(f"/proc/{k}") for k in kids) and not (bundle / "genai_config.json").exists()
    before = json.loads((bundle / "manifest.json").read_text())
    assert not before["complete"] and [s["name"] for s in before["stages"]] == ["embeddings", "floats"]
    text.write_text("what is the capital of France\n")
    os.utime(text, (1, 1))
    assert build().bundle == bundle
    assert "_winml_build" not in os.listdir(bundle)


def test_resumed(build):
    """A build that ended before its last part goes on there, without the floats and the ranges."""
    first = build()
    files = {f: (first.bundle / f).read_bytes() for f in os.listdir(first.bundle)}
    (first.bundle / "genai_config.json").unlink()
    (first.bundle / "embeddings.onnx").unlink()
    m = {s["name"]: s["status"] for s in json.loads((build().bundle / "manifest.json").read_text())["stages"]}
    assert m == {"embeddings": "completed", "lm_head": "reused", "floats": "reused", "calibration": "reused", "context": "reused",
                 "iterator": "reused", "tokenizer": "reused", "config": "completed"}
    (first.bundle / "iter.onnx").unlink()
    m = {s["name"]: s["status"] for s in json.loads((build().bundle / "manifest.json").read_text())["stages"]}
    assert m["iterator"] == m["floats"] == m["calibration"] == "completed" and m["context"] == "reused"
    for f in set(files) - {"manifest.json"}:
        assert (first.bundle / f).read_bytes() == files[f], f


def test_goes_on(build):
    def status(r):
        m = json.loads((r.bundle / "manifest.json").read_text())
        assert m["complete"] and {f["file"] for s in m["stages"] for f in s["files"]} | {"manifest.json"} == set(os.listdir(r.bundle))
        return {s["name"]: s["status"] for s in m["stages"]}
    first = build("-p", "fp32")
    assert set(status(first).values()) == {"completed"}
    assert set(status(build("-p", "fp32")).values()) == {"reused"}
    data = (first.bundle / "transformer.data").read_bytes()
    (first.bundle / "transformer.data").write_bytes(b"half")
    again = status(build("-p", "fp32"))
    assert again["context"] == "completed" and again["embeddings"] == again["lm_head"] == "reused"
    assert (first.bundle / "transformer.data").read_bytes() == data
    assert set(status(build("-p", "fp32", ep="qnn")).values()) == {"completed"}, "another target is another bundle"
    no_leftovers(first.bundle)


def test_refusals(build, winml, tmp_path):
    assert "ep=openvino" in build("-p", "fp32", ep="openvino", code=2).err
    assert "device" in build("-p", "fp32", "--device", "gpu", ep="vitisai", code=2).err
    assert "int3" in build("-p", "int3", code=2).err and "int2" in build("--head-precision", "int2", code=2).err
    assert "soft limit" in build("-p", "fp32", model=widened("gemma2", tmp_path / "g"), code=1).err
    assert "sliding window" in build("-p", "fp32", model=widened("mistral-window", tmp_path / "m"), code=1).err
    r = winml("build", "-m", TINY, "-o", tmp_path / "x", "--export-type", "plain", "--ep", "qnn")
    assert r.code == 2 and "every EP" in r.err
    assert not os.path.exists(tmp_path / "x")
