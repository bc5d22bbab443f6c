"""Fixtures of the tests that run the program and judge it by onnx, onnxruntime and numpy."""
import json
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WINML = os.environ.get("WINML") or f"{ROOT}/build/release/winml"
DEPS = os.environ.get("WINML_DEPS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "winml-build")
BUGS = f"{ROOT}/tests/data/bugs"
ORT_LIBRARY = f"{DEPS}/ort/linux-x64/libonnxruntime.so"


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def winml(tmp_path):
    """Runs the program; its cache lies in the test's own folder."""
    def run(*args, timeout=300, cwd=None, **env):
        done = subprocess.run([WINML, *map(str, args)], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                              env={**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache"), **env})
        left = subprocess.run(["pgrep", "-f", f"{WINML} __job"], capture_output=True, text=True).stdout
        assert not left, "a child process was left behind"
        return Result(done)
    return run


def model(name):
    path = f"{DEPS}/models/{name}.onnx"
    if not os.path.exists(path):
        pytest.skip(f"the model {name} could not be fetched")
    return path


def bug(name):
    return f"{BUGS}/{name}.onnx"


def need_qnn():
    if not os.path.exists(f"{DEPS}/ep/qnn/libonnxruntime_providers_qnn.so"):
        pytest.skip("the QNN plugin could not be fetched")


def need_vnpu():
    if not os.path.exists(os.path.join(os.path.dirname(WINML), "ep", "libwinml_virtual_npu.so")):
        pytest.skip("the virtual NPU is not built")


def need_openvino():
    if not os.path.exists(f"{DEPS}/ep/openvino/libonnxruntime_providers_openvino_plugin.so"):
        pytest.skip("the OpenVINO plugin could not be fetched")
    with open("/proc/cpuinfo") as f:
        if "GenuineIntel" not in f.read():
            pytest.skip("OpenVINO lists devices on Intel CPUs only, and this is none")


def no_leftovers(folder):
    """Nothing temporary under a folder."""
    left = [f for f in os.listdir(folder) if f.startswith(".winml") or ".tmp-" in f]
    assert not left, left
