"""Checkpoints of random weights, of the sizes that people export: safetensors and config.json, nothing but the standard library."""
import json
import math
import os
import random
import struct

PATTERN = 1 << 18  # random numbers that are made; a weight is a walk through them


def resnet50():
    tensors = {}

    def conv(name, out, inner, kernel):
        tensors[f"{name}.convolution.weight"] = [out, inner, kernel, kernel]
        for part in ("weight", "bias", "running_mean", "running_var"):
            tensors[f"{name}.normalization.{part}"] = [out]

    conv("resnet.embedder.embedder", 64, 3, 7)
    depths, sizes = [3, 4, 6, 3], [256, 512, 1024, 2048]
    before = 64
    for s, (depth, size) in enumerate(zip(depths, sizes)):
        for i in range(depth):
            layer = f"resnet.encoder.stages.{s}.layers.{i}"
            if i == 0:
                conv(f"{layer}.shortcut", size, before, 1)
            for k, (out, inner, kernel) in enumerate([(size // 4, before, 1), (size // 4, size // 4, 3), (size, size // 4, 1)]):
                conv(f"{layer}.layer.{k}", out, inner, kernel)
            before = size
    tensors["classifier.1.weight"], tensors["classifier.1.bias"] = [1000, 2048], [1000]
    config = {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "depths": depths, "hidden_sizes": sizes,
              "embedding_size": 64, "layer_type": "bottleneck", "hidden_act": "relu", "num_channels": 3, "num_labels": 1000}
    return config, tensors, "F32"


def bert_base():
    hidden, inner, layers = 768, 3072, 12
    tensors = {}

    def linear(name, out, into):
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = [out, into], [out]

    def norm(name):
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = [hidden], [hidden]

    for name, rows in (("word", 30522), ("position", 512), ("token_type", 2)):
        tensors[f"bert.embeddings.{name}_embeddings.weight"] = [rows, hidden]
    norm("bert.embeddings.LayerNorm")
    for i in range(layers):
        layer = f"bert.encoder.layer.{i}"
        for name in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{name}", hidden, hidden)
        linear(f"{layer}.attention.output.dense", hidden, hidden)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", inner, hidden)
        linear(f"{layer}.output.dense", hidden, inner)
        norm(f"{layer}.output.LayerNorm")
    linear("bert.pooler.dense", hidden, hidden)
    linear("classifier", 2, hidden)
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": hidden, "intermediate_size": inner,
              "num_hidden_layers": layers, "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512,
              "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
    return config, tensors, "F32"


def qwen3():
    hidden, inner, layers, heads, groups, head, words = 1024, 3072, 28, 16, 8, 128, 151936
    tensors = {"model.embed_tokens.weight": [words, hidden], "model.norm.weight": [hidden]}
    for i in range(layers):
        layer = f"model.layers.{i}"
        for name, out, into in (("self_attn.q_proj", heads * head, hidden), ("self_attn.k_proj", groups * head, hidden),
                                ("self_attn.v_proj", groups * head, hidden), ("self_attn.o_proj", hidden, heads * head),
                                ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden), ("mlp.down_proj", hidden, inner)):
            tensors[f"{layer}.{name}.weight"] = [out, into]
        for name, size in (("self_attn.q_norm", head), ("self_attn.k_norm", head), ("input_layernorm", hidden),
                           ("post_attention_layernorm", hidden)):
            tensors[f"{layer}.{name}.weight"] = [size]
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": hidden, "intermediate_size": inner,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": head,
              "vocab_size": words, "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6, "hidden_act": "silu",
              "attention_bias": False, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
    return config, tensors, "BF16"


KINDS = {"resnet50": resnet50, "bert-base": bert_base, "qwen3-0.6b": qwen3}


def pattern(dtype):
    """Numbers around zero, positive where a variance could be asked for: |x| would do for both, so all are positive."""
    rng = random.Random(0)
    wide = struct.pack(f"<{PATTERN}f", *(abs(rng.gauss(0, 0.02)) + 1e-4 for _ in range(PATTERN)))
    return wide if dtype == "F32" else b"".join(wide[i + 2 : i + 4] for i in range(0, len(wide), 4))


def make(kind, folder):
    """The checkpoint in the folder, flushed to the disk."""
    config, tensors, dtype = KINDS[kind]()
    item = {"F32": 4, "BF16": 2}[dtype]
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        size = math.prod(tensors[name]) * item
        header[name] = {"dtype": dtype, "shape": tensors[name], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2)
    numbers = pattern(dtype)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while at:
            at -= f.write(numbers[: min(at, len(numbers))])
        f.flush()
        os.fsync(f.fileno())


def replace_section(path, heading, text):
    """Puts the text, which begins with the heading, into the page, in place of the section before."""
    with open(path, encoding="utf-8") as f:
        page = f.read()
    before, _, after = page.partition(heading + "\n")
    at = after.find("\n## ")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.rstrip("\n") + "\n\n" + text + (after[at:] if at >= 0 else ""))
