"""Variants of families (tests/data/variants): config, shapes of weights and inputs, and some of the outputs that transformers gave.
The numbers of weights and inputs are not stored: they follow from their names."""
import json
import os
import zlib

import numpy as np
from safetensors.numpy import save_file

from conftest import ROOT

DATA = f"{ROOT}/tests/data/variants"
ALL = sorted(n[: -len(".json")] for n in os.listdir(DATA)) if os.path.isdir(DATA) else []


def load(name):
    with open(f"{DATA}/{name}.json") as f:
        return json.load(f)


def fill(name, shape):
    """Norms, biases and statistics differ from what they start with, so that a missing term shows."""
    n = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    leaf = name.split(".")[-1]
    if leaf == "running_var":
        n = 0.5 + np.abs(n)
    elif leaf == "weight" and len(shape) > 1:
        n = n / np.sqrt(np.prod(shape[1:]))
    elif leaf == "weight" or "scale" in leaf or "lambda" in leaf:
        n = 1 + 0.3 * n
    else:
        n = 0.4 * n
    return np.asarray(n, np.float32)


def make_input(name, shape):
    return np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape).astype(np.float32)


def inputs(variant):
    """Floats are given by their shape, other numbers one by one."""
    out = {}
    for name, given in variant["inputs"].items():
        flat = all(isinstance(n, int) for n in given)
        out[name] = make_input(name, given) if flat else np.array(given)
    return out


def write(variant, folder):
    """Its checkpoint."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(variant["config"]))
    save_file({k: fill(k, shape) for k, shape in variant["weights"].items()}, folder / "model.safetensors")
    return folder
