"""Checkpoints written and read without PyTorch: what torch.save writes, by Python's own pickle and zipfile."""
import contextlib
import hashlib
import io
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import safetensors

# safetensors' names, winml's names, bits
SAFE_TYPES = {"F32": ("float32", 32), "F16": ("float16", 16), "BF16": ("bfloat16", 16), "F64": ("float64", 64), "I64": ("int64", 64),
              "I32": ("int32", 32), "I16": ("int16", 16), "I8": ("int8", 8), "U64": ("uint64", 64), "U32": ("uint32", 32),
              "U16": ("uint16", 16), "U8": ("uint8", 8), "BOOL": ("bool", 8), "C64": ("complex64", 64), "F8_E4M3": ("float8e4m3fn", 8),
              "F8_E5M2": ("float8e5m2", 8), "F8_E8M0": ("float8e8m0", 8), "F8_E4M3FNUZ": ("float8e4m3fnuz", 8),
              "F8_E5M2FNUZ": ("float8e5m2fnuz", 8), "F4": ("float4e2m1", 4), "F6_E2M3": ("undefined", 6), "F6_E3M2": ("undefined", 6)}
# PyTorch's storage classes: winml's names, bytes
TORCH_STORAGES = {"FloatStorage": ("float32", 4), "DoubleStorage": ("float64", 8), "HalfStorage": ("float16", 2),
                  "BFloat16Storage": ("bfloat16", 2), "LongStorage": ("int64", 8), "IntStorage": ("int32", 4), "ShortStorage": ("int16", 2),
                  "CharStorage": ("int8", 1), "ByteStorage": ("uint8", 1), "BoolStorage": ("bool", 1),
                  "ComplexFloatStorage": ("complex64", 8), "ComplexDoubleStorage": ("complex128", 16), "UntypedStorage": ("uint8", 1)}
TORCH_TYPES = {"uint16": ("uint16", 2), "uint32": ("uint32", 4), "uint64": ("uint64", 8), "float8_e4m3fn": ("float8e4m3fn", 1),
               "float8_e5m2": ("float8e5m2", 1), "float8_e4m3fnuz": ("float8e4m3fnuz", 1), "float8_e5m2fnuz": ("float8e5m2fnuz", 1),
               "float8_e8m0fnu": ("float8e8m0", 1)}


def row(dtype, shape, data):
    return {"dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest()}


def read_safetensors(path):
    with open(path, "rb") as f:
        return {name: row(SAFE_TYPES[t["dtype"]][0], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(f.read())}


def write_safetensors(path, header, data):
    """A header by hand: a dict or text."""
    import json
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


class Storage:
    def __init__(self, cls, data, key=None):
        self.cls, self.data, self.key = cls, data, key
        self.width = TORCH_STORAGES[cls][1]

    def __len__(self):
        return len(self.data) // self.width


class Tensor:
    """A view: offset, sizes and strides in elements. `dtype` names one of TORCH_TYPES, over an untyped storage."""

    def __init__(self, storage, size, stride=None, offset=0, dtype=None, parameter=False, version=2):
        self.storage, self.size, self.offset, self.dtype, self.parameter, self.version = storage, tuple(size), offset, dtype, parameter, version
        if stride is None:
            stride, n = [], 1
            for d in reversed(self.size):
                stride.insert(0, n)
                n *= max(d, 1)
        self.stride = tuple(stride)

    def expected(self):
        name, width = TORCH_TYPES[self.dtype] if self.dtype else (TORCH_STORAGES[self.storage.cls])
        raw = np.frombuffer(self.storage.data, f"V{width}")
        steps = tuple(s * width for s in self.stride)
        view = np.lib.stride_tricks.as_strided(raw[self.offset:], self.size, steps) if np.prod(self.size) else np.empty(self.size, f"V{width}")
        return row(name, self.size, np.ascontiguousarray(view).tobytes())


@contextlib.contextmanager
def torch_names():
    """Modules that pickle finds the names of PyTorch in, while it writes."""
    torch, utils, storage = (types.ModuleType(n) for n in ("torch", "torch._utils", "torch.storage"))
    torch._utils, torch.storage = utils, storage

    def name(module, text, kind=None):
        made = type(text, (), {"__module__": module.__name__}) if kind is None else kind
        made.__module__, made.__qualname__, made.__name__ = module.__name__, text, text
        setattr(module, text, made)

    for cls in TORCH_STORAGES:
        name(storage if cls == "UntypedStorage" else torch, cls)
    for dtype in TORCH_TYPES:
        name(torch, dtype)
    for fn in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter"):
        name(utils, fn, lambda *_: None)
    before = {k: sys.modules.get(k) for k in ("torch", "torch._utils", "torch.storage")}
    sys.modules.update({"torch": torch, "torch._utils": utils, "torch.storage": storage})
    try:
        yield torch
    finally:
        for k, v in before.items():
            sys.modules.pop(k)
            if v is not None:
                sys.modules[k] = v


def dump(obj, torch, protocol, keys, view=False):
    """The pickle of obj; storages are put under keys, in the order in which they come."""
    class Pickler(pickle.Pickler):
        def persistent_id(self, o):
            if not isinstance(o, Storage):
                return None
            key = o.key if o.key is not None else str(list(keys).index(o) if o in keys else len(keys))
            keys[o] = key
            cls = getattr(torch.storage if o.cls == "UntypedStorage" else torch, o.cls)
            return ("storage", cls, key, "cpu", len(o)) + ((None,) if view else ())

        def reducer_override(self, o):
            if not isinstance(o, Tensor):
                return NotImplemented
            args = (o.storage, o.offset, o.size, o.stride)
            version = 3 if o.dtype else o.version
            if version > 1:
                args += (False, OrderedDict())
            if version == 3:
                args += (getattr(torch, o.dtype),)
            fn = getattr(torch._utils, {1: "_rebuild_tensor", 2: "_rebuild_tensor_v2", 3: "_rebuild_tensor_v3"}[version])
            if o.parameter:
                bare = Tensor(o.storage, o.size, o.stride, o.offset, o.dtype)
                return torch._utils._rebuild_parameter, (bare, True, OrderedDict())
            return fn, args

    out = io.BytesIO()
    Pickler(out, protocol).dump(obj)
    return out.getvalue()


def save_zip(path, obj, protocol=2, folder="archive/", method=zipfile.ZIP_STORED, zip64=False, order=b"little"):
    keys = {}
    with torch_names() as torch:
        text = dump(obj, torch, protocol, keys)
    with zipfile.ZipFile(path, "w", method) as z:
        def put(name, data):
            with z.open(folder + name, "w", force_zip64=zip64) as f:
                f.write(data)
        put("data.pkl", text)
        put("byteorder", order)
        for storage, key in keys.items():
            put(f"data/{key}", storage.data)
        put("version", b"3\n")


def save_old(path, obj, protocol=2):
    keys = {}
    with torch_names() as torch:
        text = dump(obj, torch, protocol, keys, view=True)
    with open(path, "wb") as f:
        pickle.dump(0x1950a86a20f9469cfc6c, f, protocol)
        pickle.dump(1001, f, protocol)
        pickle.dump({"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}, f, protocol)
        f.write(text)
        pickle.dump(sorted(keys.values()), f, protocol)
        for storage in sorted(keys, key=lambda s: keys[s]):
            f.write(struct.pack("<q", len(storage)) + storage.data)


def raw_zip(path, text, members=()):
    """An archive with any bytes as its pickle."""
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", text)
        for name, data in members:
            z.writestr(f"archive/{name}", data)


def read_torch(path):
    """A real checkpoint, read by Python's unpickler: name to row."""
    with zipfile.ZipFile(path) as z:
        main = next(n for n in z.namelist() if n.endswith("/data.pkl"))
        folder = main[:-len("data.pkl")]

        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                if module == "collections":
                    return OrderedDict
                if name == "_rebuild_tensor_v2":
                    return lambda storage, offset, size, stride, *_: Tensor(storage, size, stride, offset)
                assert module == "torch" and name in TORCH_STORAGES, f"{module}.{name}"
                return name

            def persistent_load(self, pid):
                return Storage(pid[1], z.read(f"{folder}data/{pid[2]}"), pid[2])

        return {k: t.expected() for k, t in Unpickler(io.BytesIO(z.read(main))).load().items()}
