"""build --export-type plain: bundles of tiny checkpoints against reference tokens of PyTorch, against the export of the same
checkpoint (which test_export.py judges), and against our quantizer on the float bundle."""
import json
import os
import time

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import DEPS, ROOT, need_openvino, need_qnn, no_leftovers
from exported import DATA, session, widened
from hub_server import Hub
from onnx import numpy_helper

TINY = f"{ROOT}/tests/data/genai/qwen3-tiny"
REFERENCE = json.load(open(f"{TINY}/reference.json"))
HALF = {"fp16", "w4a16"}


@pytest.fixture
def build(winml, tmp_path):
    def run(*more, model=TINY, name="b", code=0):
        out = tmp_path / name
        r = winml("build", "-m", model, "-o", out, "--export-type", "plain", *more)
        assert r.code == code, r.err
        r.bundle = out
        return r
    return run


def weights(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer}


class Model:
    """A bundle's graph, run as a runtime does: what was given before comes back as the cache."""
    def __init__(self, folder):
        self.s = session(folder / "model.onnx")
        self.past = {i.name: i for i in self.s.get_inputs() if i.name.startswith("past")}
        self.clear()

    def clear(self):
        self.n = 0
        self.cache = {k: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float16 if "16" in i.type else np.float32) for k, i in self.past.items()}

    def __call__(self, ids):
        self.n += len(ids)
        names = [o.name for o in self.s.get_outputs()]
        out = dict(zip(names, self.s.run(None, {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, self.n), np.int64),
                                                **self.cache})))
        self.cache = {k: out[k.replace("past_key_values", "present")] for k in self.cache}
        return out["logits"][0]

    def greedy(self, prompt, n):
        self.clear()
        tokens, ids = [], prompt
        for _ in range(n):
            tokens.append(int(self(ids)[-1].argmax()))
            ids = tokens[-1:]
        return tokens


def test_tokens(build):
    m = Model(build().bundle)
    for r in REFERENCE:
        assert m.greedy(r["prompt_ids"], len(r["greedy_ids"])) == r["greedy_ids"]


def test_tokens_of_the_runtime(build, winml):
    """The same through onnxruntime-genai, which reads config and tokenizer, too."""
    if not os.path.exists(f"{DEPS}/genai/libonnxruntime-genai.so"):
        pytest.skip("onnxruntime-genai could not be fetched")
    bundle = build().bundle
    for r in REFERENCE[:2]:
        more = [] if r["template"] else ["--no-apply-template"]
        got = winml("generate", "-m", bundle, "--prompt", r["prompt"], "--max-new-tokens", len(r["greedy_ids"]), "-f", "json", *more)
        assert got.code == 0, got.err
        assert got.json["tokens"] == r["greedy_ids"] and got.json["request"]["prompt_tokens"] == len(r["prompt_ids"])


def test_config(build):
    bundle = build("--max-cache-len", "128").bundle
    c = json.loads((bundle / "genai_config.json").read_text())
    m, d = c["model"], c["model"]["decoder"]
    assert (m["type"], m["bos_token_id"], m["eos_token_id"], m["pad_token_id"], m["vocab_size"], m["context_length"]) == ("qwen3", 0, 2, 0, 300, 128)
    assert (d["head_size"], d["hidden_size"], d["num_attention_heads"], d["num_key_value_heads"], d["num_hidden_layers"]) == (32, 64, 4, 2, 4)
    g = onnx.load(str(bundle / "model.onnx"), load_external_data=False).graph
    names = {v.name for v in [*g.input, *g.output]}
    for group in (d["inputs"], d["outputs"]):
        for name in group.values():
            assert {name % i for i in range(4)} <= names if "%d" in name else name in names
    assert c["search"]["max_length"] == 128 and not c["search"]["do_sample"]
    tables = {t.name: list(t.dims) for t in g.initializer if t.name.endswith("_cache")}
    assert sorted(tables.values()) == [[128, 16]] * 2, "one pair of tables for all layers"
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        assert (bundle / name).read_bytes() == open(f"{TINY}/{name}", "rb").read()


FAMILIES = ["llama", "llama-yarn", "llama3-rope", "mistral-window", "qwen2", "qwen3", "phi3-longrope", "gemma2", "granite", "smollm3"]


@pytest.mark.parametrize("name", FAMILIES)
def test_family(build, winml, tmp_path, name):
    """Logits of a whole text, in one call and token by token, are those of the exported model."""
    checkpoint, n = widened(name, tmp_path / "c"), 12
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"input_ids": {"dtype": "int32", "shape": [1, n]}, "attention_mask": {"dtype": "int32", "shape": [1, n]}}))
    r = winml("export", "-m", checkpoint, "-o", tmp_path / "e.onnx", "--task", "text-generation", "--input-specs", spec)
    assert r.code == 0, r.err
    ids = np.random.default_rng(5).integers(0, 100, n).astype(np.int32)
    want = session(tmp_path / "e.onnx").run(["logits"], {"input_ids": ids[None], "attention_mask": np.ones((1, n), np.int32)})[0][0]
    m = Model(build(model=checkpoint).bundle)
    limit = 1e-4 * np.abs(want).max()
    assert np.abs(m(ids.tolist()) - want).max() < limit
    m.clear()
    steps = np.concatenate([m(ids[:5].tolist())] + [m([int(t)]) for t in ids[5:]])
    assert np.abs(steps - want).max() < limit


@pytest.mark.parametrize("precision", ["int4", "int8", "w4a16", "fp16"])
def test_precision(build, winml, tmp_path, precision):
    """Integers are those that our quantizer makes of the float bundle, halves those it makes; nothing else changes."""
    bundle, base = build("-p", precision).bundle, build("-p", "fp16" if precision in HALF else "fp32", name="base").bundle
    got = weights(bundle / "model.onnx")
    assert {str(v.dtype) for v in got.values()} <= {"float16" if precision in HALF else "float32", "int64", "uint8"}
    if precision == "fp16":
        want = weights(build(name="f").bundle / "model.onnx")
        for name, value in got.items():
            expected = want[name].astype(np.float16) if want[name].dtype == np.float32 else want[name]
            tiny = (expected == 0) & (want[name] != 0)  # becomes the least half that there is
            assert np.array_equal(value[~tiny], expected[~tiny]), name
        m = Model(bundle)
        assert sum(m.greedy(r["prompt_ids"], 20) == r["greedy_ids"] for r in REFERENCE) >= 4
        return
    bits = {"int4": "int4", "w4a16": "int4", "int8": "w8a32"}[precision]
    r = winml("quantize", "-m", base / "model.onnx", "-o", tmp_path / "q.onnx", "-p", bits, "--block-size", 32, "--accuracy-level", 4)
    assert r.code == 0, r.err
    want = weights(tmp_path / "q.onnx")
    integers = [k for k in want if want[k].dtype == np.uint8]
    assert len(integers) == 28
    for name in integers:
        scale = name.rsplit("_Q", 1)[0] + "_scales"
        assert np.array_equal(got[name], want[name]) and np.array_equal(got[scale], want[scale]), name
    nodes = [n for n in onnx.load(str(bundle / "model.onnx"), load_external_data=False).graph.node if n.op_type == "MatMulNBits"]
    assert len(nodes) == 29, "the head over the vocabulary, too"
    logits = Model(bundle)(REFERENCE[0]["prompt_ids"]).astype(np.float32)
    truth = Model(base)(REFERENCE[0]["prompt_ids"]).astype(np.float32)
    cosine = (logits * truth).sum() / np.sqrt((logits**2).sum() * (truth**2).sum())
    assert cosine > (0.999 if precision == "int8" else 0.85), "random weights bear 4 bits badly, but this is another model"


def test_goes_on(build, winml, tmp_path):
    """What is complete and of the same inputs and options is not made again; what is damaged or of others is."""
    def status(r):
        m = json.loads((r.bundle / "manifest.json").read_text())
        assert m["complete"] and m["tool"] == "winml"
        assert {f["file"] for s in m["stages"] for f in s["files"]} | {"manifest.json"} == set(os.listdir(r.bundle))
        return {s["name"]: s["status"] for s in m["stages"]}
    first = build("-p", "int4")
    assert set(status(first).values()) == {"completed"}
    graph = (first.bundle / "model.onnx").read_bytes()
    assert set(status(build("-p", "int4")).values()) == {"reused"}
    (first.bundle / "genai_config.json").unlink()
    assert status(build("-p", "int4")) == {"model": "reused", "tokenizer": "reused", "config": "completed"}
    with open(first.bundle / "model.onnx.data", "r+b") as f:
        f.truncate(100)
    assert status(build("-p", "int4"))["model"] == "completed"
    other = build("-p", "fp32")
    assert set(status(other).values()) == {"completed"} and "is replaced" in other.err
    assert set(status(build("-p", "int4")).values()) == {"completed"}
    assert (first.bundle / "model.onnx").read_bytes() == graph, "the same input gives the same bytes"
    time.sleep(0.01)
    assert set(status(build("-p", "int4", "--rebuild")).values()) == {"completed"}
    no_leftovers(first.bundle)


def test_replaced_by_another_kind(build, winml):
    """Nothing of a pipeline, and nothing that was compiled of it, stays in the plain bundle that takes its place."""
    r = winml("build", "-m", TINY, "-o", build("-p", "int4").bundle, "--export-type", "optimized", "-p", "fp32")
    assert r.code == 0 and "is replaced" in r.err
    bundle = build("-p", "int4", name="other").bundle.parent / "b"
    assert (bundle / "ctx.onnx").exists() and not (bundle / "model.onnx").exists()
    (bundle / "_compiled").mkdir()
    (bundle / "mine.txt").write_text("of the user")
    build("-p", "int4")
    assert set(os.listdir(bundle)) == {*os.listdir(bundle.parent / "other"), "mine.txt"}


def test_refusals(build, winml, tmp_path):
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "genai_config.json").write_text("{}")
    r = build(name="strange", code=1)
    assert "was not made by this command" in r.err and "--rebuild" in r.err and (strange / "genai_config.json").read_text() == "{}"
    assert "w16a16 is not supported" in build("-p", "w16a16", code=2).err
    assert "'bert'" in build(model=f"{DATA}/bert-fill-mask", code=2).err
    assert "256 positions" in build("--max-cache-len", "257", code=2).err
    assert "multiples of 16" in build(model=f"{DATA}/llama", code=1).err
    generic = winml("build", "-m", TINY, "-o", tmp_path / "g")
    assert generic.code == 1 and "--export-type plain" in generic.err
    assert not os.path.exists(tmp_path / "g")


def test_weights_in_a_file_on_openvino(build, winml):
    """The folder with the changed config shows OpenVINO no weights that lie elsewhere."""
    need_openvino()
    bundle = build().bundle
    before = sorted(os.listdir(bundle))
    case = REFERENCE[0]
    r = winml("generate", "-m", bundle, "--ep", "openvino", "--no-apply-template", "--prompt", case["prompt"], "--max-new-tokens", 8, "-f", "json")
    assert r.code == 0 and r.json["ep"] == "openvino", r.err
    assert r.json["tokens"] == case["greedy_ids"][:8]
    assert sorted(os.listdir(bundle)) == before


def test_checkpoint_is_no_bundle(winml):
    """What to do is said with the folder that was named."""
    for args in (["generate", "--prompt", "hi"], ["perf", "--runtime", "winml-genai"], ["perf"]):
        r = winml(args[0], "-m", TINY, *args[1:])
        assert r.code == 2 and f"winml build -m {TINY}" in r.err, r.err


def test_missing_and_damaged_files(build, winml):
    bundle = build().bundle
    model = (bundle / "model.onnx").read_bytes()
    (bundle / "model.onnx").write_bytes(model[:len(model) // 2])
    r = winml("generate", "-m", bundle, "--prompt", "hi")
    assert r.code == 3 and f"winml inspect -m {bundle}" in r.err
    (bundle / "model.onnx").unlink()
    r = winml("generate", "-m", bundle, "--prompt", "hi")
    assert r.code == 3 and "the model model.onnx of stage 'decoder' is not in" in r.err


def test_perf_builds_a_model_id_once(winml, tmp_path):
    need_qnn()
    hub = Hub()
    hub.add("org/tiny", {name: open(f"{TINY}/{name}", "rb").read() for name in os.listdir(TINY) if name != "reference.json"})
    args = ["perf", "-m", "org/tiny", "--runtime", "winml-genai", "--iterations", 1, "--warmup", 0, "--max-new-tokens", 2, "-f", "json"]
    env = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.endpoint}
    first = winml(*args, "--precision", "w8a16", **env)
    hub.close()
    assert first.code == 0, first.err
    bundle = tmp_path / "cache" / "artifacts" / "org_tiny" / "genai-bundle"
    info = first.json["benchmark_info"]
    assert info["model_id"] == "org/tiny" and info["bundle_dir"] == str(bundle) and "--precision" not in first.err
    made = (bundle / "manifest.json").read_bytes()
    again = winml(*args, "--precision", "w8a16", **env)
    assert again.code == 0 and (bundle / "manifest.json").read_bytes() == made and "ignored with a GenAI bundle: --precision" in again.err
    assert winml(*args, "--rebuild", HF_HUB_OFFLINE="1", **env).code == 0 and (bundle / "manifest.json").read_bytes() != made
