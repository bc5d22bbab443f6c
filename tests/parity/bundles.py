"""A tiny GenAI bundle, made here, and what it answers by numpy: one layer of attention over bytes."""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

BYTES, BOS, EOS, VOCAB, WIDTH, CONTEXT = 256, 256, 257, 258, 16, 128


def weights():
    rng = np.random.default_rng(7)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in
            {"embed": (VOCAB, WIDTH), "wq": (WIDTH, WIDTH), "wv": (WIDTH, WIDTH), "head": (WIDTH, VOCAB),
             "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}.items()}


def greedy(prompt, n, mlp=False):
    """The likeliest tokens after a text, no template."""
    w, ids, out = weights(), list(prompt.encode()), []
    while len(out) < n:
        x = w["embed"][ids]
        scores = (x[-1] @ w["wq"]) @ x.T / 4
        p = np.exp(scores - scores.max())
        y = x[-1] + (p / p.sum()) @ (x @ w["wv"])
        if mlp:
            y = y + np.maximum(y @ w["up"], 0) @ w["down"]
        logits = y @ w["head"]
        ids.append(int(np.argmax(logits)))
        out.append(ids[-1])
        if ids[-1] == EOS:
            break
    return out


def _value(name, kind, *shape):
    return h.make_tensor_value_info(name, kind, shape)


def _save(path, nodes, inputs, outputs, used):
    w = weights()
    consts = {"one": np.array([1], np.int64), "scale": np.array(0.25, np.float32), **w}
    g = h.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(consts[k], k) for k in used])
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m)
    onnx.save(m, path)


def _embed_nodes():
    return [h.make_node("Gather", ["embed", "input_ids"], ["x"], "embed_ids")]


def _attention_nodes():
    return [h.make_node("Unsqueeze", ["x", "one"], ["k"], "to_heads"),
            h.make_node("Concat", ["past_k_0", "k"], ["present_k_0"], "keys", axis=2),
            h.make_node("MatMul", ["x", "wv"], ["v0"], "values"),
            h.make_node("Unsqueeze", ["v0", "one"], ["v"], "values_to_heads"),
            h.make_node("Concat", ["past_v_0", "v"], ["present_v_0"], "all_values", axis=2),
            h.make_node("MatMul", ["x", "wq"], ["q0"], "queries"),
            h.make_node("Mul", ["q0", "scale"], ["q1"], "scaled"),
            h.make_node("Unsqueeze", ["q1", "one"], ["q"], "queries_to_heads"),
            h.make_node("Transpose", ["present_k_0"], ["kt"], "turned", perm=[0, 1, 3, 2]),
            h.make_node("MatMul", ["q", "kt"], ["scores"], "score"),
            h.make_node("Softmax", ["scores"], ["p"], "weigh", axis=-1),
            h.make_node("MatMul", ["p", "present_v_0"], ["o0"], "mix"),
            h.make_node("Squeeze", ["o0", "one"], ["o"], "from_heads"),
            h.make_node("Add", ["x", "o"], ["y"], "residual")]


def _head_nodes():
    return [h.make_node("MatMul", ["y", "head"], ["logits"], "head_matmul")]


_IDS = ("input_ids", T.INT64, "batch", "sequence")
_X = ("x", T.FLOAT, "batch", "sequence", WIDTH)
_Y = ("y", T.FLOAT, "batch", "sequence", WIDTH)
_LOGITS = ("logits", T.FLOAT, "batch", "sequence", VOCAB)
_PAST = [(f"past_{c}_0", T.FLOAT, "batch", 1, "past", WIDTH) for c in "kv"]
_PRESENT = [(f"present_{c}_0", T.FLOAT, "batch", 1, "total", WIDTH) for c in "kv"]


def _byte_letters():
    """The printable letter that stands for each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def _tokenizer(folder):
    vocab = {c: i for i, c in enumerate(_byte_letters())}
    special = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, t in ((BOS, "<s>"), (EOS, "</s>"))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    doc = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
           "pre_tokenizer": level, "post_processor": None, "decoder": level,
           "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                     "fuse_unk": False, "byte_fallback": False, "vocab": {**vocab, "<s>": BOS, "</s>": EOS}, "merges": []}}
    with open(f"{folder}/tokenizer.json", "w") as f:
        json.dump(doc, f)
    with open(f"{folder}/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "add_bos_token": False,
                   "add_prefix_space": False, "model_max_length": CONTEXT}, f)
    with open(f"{folder}/chat_template.jinja", "w") as f:
        f.write("{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}<s>assistant: ")


def _write(folder, kind, decoder):
    os.makedirs(folder, exist_ok=True)
    _tokenizer(folder)
    config = {"model": {"type": kind, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": EOS, "vocab_size": VOCAB,
                        "context_length": CONTEXT,
                        "decoder": {"hidden_size": WIDTH, "num_attention_heads": 1, "num_key_value_heads": 1, "num_hidden_layers": 1,
                                    "head_size": WIDTH, **decoder}},
              "search": {"max_length": CONTEXT, "min_length": 0, "do_sample": False, "past_present_share_buffer": False}}
    with open(f"{folder}/genai_config.json", "w") as f:
        json.dump(config, f, indent=1)
    return str(folder)


def flat(folder):
    """One model; runs wherever it is sent."""
    os.makedirs(folder, exist_ok=True)
    values = [_value(*v) for v in (_IDS, *_PAST)], [_value(*v) for v in (_LOGITS, *_PRESENT)]
    _save(f"{folder}/model.onnx", _embed_nodes() + _attention_nodes() + _head_nodes(), *values, ["one", "scale", "embed", "wq", "wv", "head"])
    return _write(folder, "llama", {
        "session_options": {"log_id": "tiny", "provider_options": []}, "filename": "model.onnx",
        "inputs": {"input_ids": "input_ids", "past_key_names": "past_k_%d", "past_value_names": "past_v_%d"},
        "outputs": {"logits": "logits", "present_key_names": "present_k_%d", "present_value_names": "present_v_%d"}})


def pipeline(folder, provider=None):
    """Embeddings and head on the CPU; the two transformers on a provider, {"name": {options}}."""
    os.makedirs(folder, exist_ok=True)
    cache = [_value(*v) for v in (_X, *_PAST)], [_value(*v) for v in (_Y, *_PRESENT)]
    _save(f"{folder}/embeddings.onnx", _embed_nodes(), [_value(*_IDS)], [_value(*_X)], ["embed"])
    for name in "ctx", "iter":
        _save(f"{folder}/{name}.onnx", _attention_nodes(), *cache, ["one", "scale", "wq", "wv"])
    _save(f"{folder}/lm_head.onnx", _head_nodes(), [_value(*_Y)], [_value(*_LOGITS)], ["head"])
    options = {"session_options": {"log_id": "tiny", "provider_options": [provider]}} if provider else {}
    attention = {"inputs": ["x", "past_k_0", "past_v_0"], "outputs": ["y", "present_k_0", "present_v_0"], **options}
    return _write(folder, "decoder-pipeline", {
        "inputs": {"input_ids": "input_ids", "past_key_names": "past_k_%d", "past_value_names": "past_v_%d"},
        "outputs": {"logits": "logits", "present_key_names": "present_k_%d", "present_value_names": "present_v_%d"},
        "pipeline": [
            {"embeddings": {"filename": "embeddings.onnx", "inputs": ["input_ids"], "outputs": ["x"], "run_on_prompt": True, "run_on_token_gen": True}},
            {"context": {"filename": "ctx.onnx", "run_on_prompt": True, "run_on_token_gen": False, **attention}},
            {"iterator": {"filename": "iter.onnx", "run_on_prompt": False, "run_on_token_gen": True, **attention}},
            {"lm_head": {"filename": "lm_head.onnx", "inputs": ["y"], "outputs": ["logits"], "run_on_prompt": True, "run_on_token_gen": True,
                         "is_lm_head": True}}]})


def fixed(folder, length, provider):
    """Two stages of fixed shapes, as NPUs want them: a layer after the attention, for a prompt of that length and for one token."""
    bundle = pipeline(folder)
    nodes = [h.make_node("MatMul", ["y", "up"], ["u"], "up_matmul"), h.make_node("Relu", ["u"], ["a"], "gate"),
             h.make_node("MatMul", ["a", "down"], ["d"], "down_matmul"), h.make_node("Add", ["y", "d"], ["z"], "mlp_residual")]
    with open(f"{bundle}/genai_config.json") as f:
        config = json.load(f)
    stages = config["model"]["decoder"]["pipeline"]
    for i, (name, n) in enumerate((("mlp_prompt", length), ("mlp_token", 1))):
        _save(f"{bundle}/{name}.onnx", nodes, [_value("y", T.FLOAT, 1, n, WIDTH)], [_value("z", T.FLOAT, 1, n, WIDTH)], ["up", "down"])
        stages.insert(3 + i, {name: {"filename": f"{name}.onnx", "inputs": ["y"], "outputs": ["z"], "run_on_prompt": i == 0, "run_on_token_gen": i == 1,
                                     "session_options": {"log_id": name, "provider_options": [provider]}}})
    stages[-1]["lm_head"]["inputs"] = ["z"]
    _save(f"{bundle}/lm_head.onnx", [h.make_node("MatMul", ["z", "head"], ["logits"], "head_matmul")],
          [_value("z", T.FLOAT, "batch", "sequence", WIDTH)], [_value(*_LOGITS)], ["head"])
    with open(f"{bundle}/genai_config.json", "w") as f:
        json.dump(config, f, indent=1)
    return bundle
