"""perf --compile of a bundle in one command: whatever becomes of a stage's compiler, tokens come, or the error says which stage,
how and where; nothing half made stays."""
import json
import os
import signal
import subprocess
import time

import bundles
import pytest
from conftest import WINML, need_qnn, need_vnpu
from test_genai import N, PROMPT, library, perf, tokens  # noqa: F401 (fixtures)

WANT = bundles.greedy(PROMPT, N)


@pytest.fixture
def bundle(tmp_path):
    need_vnpu()
    yield bundles.pipeline(tmp_path / "b", {"vnpu": {}})
    left = [f for f in os.listdir(tmp_path / "b") if ".tmp-" in f or f.startswith(".")]
    assert not left, left
    folder = tmp_path / "b" / "_compiled"
    if folder.exists():
        assert (folder / ".winml_bundle_complete").exists()
        assert not [f for f in os.listdir(folder) if f.startswith(".winml-compile")]


def stages(result):
    return {s["stage"]: s for s in result.report["compile"]["stages"]}


def statuses(result):
    return {k: v["status"] for k, v in stages(result).items()}


def both(status):
    return {"context": status, "iterator": status}


def test_compiles_and_reuses(perf, bundle):
    first = perf(bundle, "--compile", "--runtime", "winml-genai", "--device", "npu")
    assert tokens(first) == WANT and statuses(first) == both("compiled")
    assert all(s["shared"] and s["duration_ms"] > 0 for s in stages(first).values())
    folder = f"{bundle}/_compiled"
    assert first.report["compile"]["directory"] == folder == first.report["benchmark_info"]["running_model_path"]
    with open(f"{folder}/genai_config.json") as f:
        names = [list(s.values())[0]["filename"] for s in json.load(f)["model"]["decoder"]["pipeline"]]
    assert names == ["embeddings.onnx", "context_vnpu_ctx.onnx", "iterator_vnpu_ctx.onnx", "lm_head.onnx"]
    assert not os.path.exists(f"{folder}/ctx.onnx") and os.path.exists(f"{folder}/tokenizer.json")
    made = os.stat(f"{folder}/context_vnpu_ctx.onnx").st_mtime_ns
    again = perf(bundle, "--compile")
    assert tokens(again) == WANT and statuses(again) == both("cached")
    assert os.stat(f"{folder}/context_vnpu_ctx.onnx").st_mtime_ns == made
    assert perf(folder).code == 0, "the folder is a bundle of its own"


def test_source_or_options_change(perf, bundle):
    perf(bundle, "--compile")
    os.utime(f"{bundle}/ctx.onnx")
    assert statuses(perf(bundle, "--compile")) == both("cached"), "only touched"
    with open(f"{bundle}/ctx.onnx", "ab") as f:
        f.write(b"\x7a\x00")  # an empty metadata-like field: other bytes, same meaning
    r = perf(bundle, "--compile")
    assert statuses(r) == both("compiled") and tokens(r) == WANT
    r = perf(bundle, "--compile", "--ep-options", "min_nodes=2")
    assert statuses(r) == both("compiled") and tokens(r) == WANT
    with open(f"{bundle}/tokenizer_config.json", "a") as f:
        f.write("\n")
    assert statuses(perf(bundle, "--compile", "--ep-options", "min_nodes=2")) == both("cached")


def test_crash_at_teardown(perf, bundle):
    """A finished artifact counts, although its maker crashed afterwards."""
    r = perf(bundle, "--compile", WINML_VNPU_FAULT="crash@teardown")
    assert tokens(r) == WANT and statuses(r) == both("salvaged")
    assert all(s["exit"] == "SIGSEGV" for s in stages(r).values()) and "its finished result was kept" in r.err



@pytest.mark.parametrize("fault,exit", [("crash@save", "SIGSEGV"), ("kill@save", "SIGKILL"), ("exit@save", "exit status 3"), ("fail@save", "exit status 1")])
def test_dies_before_its_artifact_is_whole(perf, bundle, fault, exit):
    r = perf(bundle, "--compile", WINML_VNPU_FAULT=fault)
    assert tokens(r) == WANT and statuses(r) == both("failed")
    assert "is not compiled and runs from its source" in r.err and not os.path.exists(f"{bundle}/_compiled")
    assert {s["exit"] for s in stages(r).values()} <= {exit, None}


def test_hangs(perf, bundle):
    start = time.monotonic()
    r = perf(bundle, "--compile", "--compile-timeout", 1, WINML_VNPU_FAULT="hang@save")
    assert tokens(r) == WANT and statuses(r) == both("timeout") and time.monotonic() - start < 15
    assert not os.path.exists(f"{bundle}/_compiled")


def test_crash_at_load_names_the_stage(perf, bundle):
    r = perf(bundle, "--compile", WINML_VNPU_FAULT="crash@load")
    assert r.code == 3
    for word in "phase model", "SIGSEGV", "'context'", f"{bundle}/_compiled", "context_vnpu_ctx.onnx":
        assert word in r.err, word
    assert r.report["process"]["phase"] == "model" and statuses(r) == both("compiled")
    good = perf(bundle, "--compile")
    assert tokens(good) == WANT and statuses(good) == both("cached"), "what was compiled is still there"
    assert perf(bundle, "--compile", WINML_VNPU_FAULT="crash@load").report == good.report, "an earlier result is kept"


def test_damaged_folder_is_made_anew(perf, bundle):
    perf(bundle, "--compile")
    blob = next(f for f in os.listdir(f"{bundle}/_compiled") if f.endswith(".bin"))
    with open(f"{bundle}/_compiled/{blob}", "r+b") as f:
        f.seek(60)
        f.write(b"\xff" * 64)
    r = perf(bundle, "--compile")
    assert tokens(r) == WANT and statuses(r) == both("compiled") and "compiled anew" in r.err


def test_incomplete_folder_is_made_anew(perf, bundle):
    perf(bundle, "--compile")
    for victim in "context_vnpu_ctx.onnx", ".winml_bundle_complete", "tokenizer.json":
        os.remove(f"{bundle}/_compiled/{victim}")
        assert tokens(perf(bundle, "--compile")) == WANT
        assert os.path.exists(f"{bundle}/_compiled/{victim}"), victim


def test_compiled_source(perf, bundle, winml):
    """A stage that is compiled already is used as it is."""
    out = f"{bundle}/done.onnx"
    assert winml("compile", "-m", f"{bundle}/ctx.onnx", "--ep", "vnpu", "-o", out).code == 0
    with open(f"{bundle}/genai_config.json") as f:
        text = f.read()
    with open(f"{bundle}/genai_config.json", "w") as f:
        f.write(text.replace('"ctx.onnx"', '"done.onnx"'))
    r = perf(bundle, "--compile")
    assert tokens(r) == WANT and statuses(r) == {"context": "precompiled", "iterator": "compiled"}


def test_source_that_cannot_be_read_is_told(perf, bundle):
    with open(f"{bundle}/iter.onnx", "wb") as f:
        f.write(b"junk")
    r = perf(bundle, "--compile")
    assert r.code == 3 and "stage 'iterator' is not compiled and runs from its source: " in r.err
    assert statuses(r) == {"context": "compiled", "iterator": "failed"} and "iter.onnx" in stages(r)["iterator"]["note"]


def test_inspect(perf, winml, bundle):
    """Before and after compiling, and with a file gone."""
    def look(folder):
        r = winml("inspect", "-m", folder, "-f", "json").json
        return r, {s["stage"]: s for s in r["stages"]}
    r, s = look(bundle)
    assert r["type"] == "decoder-pipeline" and r["context_length"] == bundles.CONTEXT and r["device"] == "npu"
    assert s["context"]["providers"] == [{"name": "VirtualNPUExecutionProvider", "options": {}}] and s["lm_head"]["providers"] == []
    assert (s["context"]["nodes"], s["context"]["compiled_parts"], s["context"]["bytes"]) == (14, 0, os.path.getsize(f"{bundle}/ctx.onnx"))
    perf(bundle, "--compile")
    blob = next(f for f in os.listdir(f"{bundle}/_compiled") if f.endswith(".bin"))
    s = look(f"{bundle}/_compiled")[1]
    assert s["context"]["compiled_for"] == "VirtualNPUExecutionProvider" and s["context"]["missing_files"] == 0
    assert s["context"]["bytes"] == sum(os.path.getsize(f"{bundle}/_compiled/{f}") for f in (blob, "context_vnpu_ctx.onnx"))
    os.remove(f"{bundle}/_compiled/{blob}")
    os.remove(f"{bundle}/lm_head.onnx")
    s = look(f"{bundle}/_compiled")[1]
    assert s["iterator"]["missing_files"] == 1 and s["lm_head"]["error"] == "missing"


def test_interrupt_while_compiling(tmp_path, bundle):
    out = tmp_path / "r.json"
    p = subprocess.Popen([WINML, "perf", "-m", bundle, "--compile", "-o", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache"), "WINML_VNPU_FAULT": "hang@save"})
    for _ in range(600):
        if any(f.startswith("_compiled.tmp-") for f in os.listdir(bundle)):
            break
        time.sleep(0.02)
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = p.communicate(timeout=20)
    assert p.returncode == 130 and time.monotonic() - begin < 1.5, err
    assert not os.path.exists(f"{bundle}/_compiled")


def test_two_at_once(tmp_path, bundle):
    """The second waits and takes what the first made."""
    env = {**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache")}
    runs = [subprocess.Popen([WINML, "perf", "-m", bundle, "--compile", "--no-apply-template", "--prompt", PROMPT, "--max-new-tokens", str(N), "-f", "json",
                              "-o", str(tmp_path / f"{i}.json")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) for i in range(2)]
    reports = [json.loads(p.communicate(timeout=60)[0]) for p in runs]
    assert all(r["response_tokens"] == WANT for r in reports)
    assert sorted(s["status"] for r in reports for s in r["compile"]["stages"]) == ["cached"] * 2 + ["compiled"] * 2


def test_bundle_that_cannot_be_written(perf, tmp_path, bundle):
    faults = os.path.join(os.path.dirname(WINML), "tests", "faults", "libwinml_faults.so")
    if not os.path.exists(faults):
        pytest.skip("tests/faults is for Linux, without sanitizers")
    for status in "compiled", "cached":
        r = perf(bundle, "--compile", LD_PRELOAD=faults, FAULTS_DIR=bundle, FAULTS_AT="1", FAULTS_HOW="full")
        assert tokens(r) == WANT and statuses(r) == both(status)
        assert r.report["compile"]["directory"].startswith(str(tmp_path / "cache"))
    assert not os.path.exists(f"{bundle}/_compiled")


def test_qnn(perf, tmp_path):
    """The real compiler and the vendor's simulator."""
    need_qnn()
    bundle = bundles.fixed(tmp_path / "b", len(PROMPT), {"qnn": {"backend_path": "QnnHtp.dll", "htp_performance_mode": "burst"}})
    want = bundles.greedy(PROMPT, N, mlp=True)
    assert tokens(perf(bundle, "--ep", "cpu")) == want
    r = perf(bundle, "--compile", "--device", "npu")
    assert tokens(r) == want and statuses(r) == {"mlp_prompt": "compiled", "mlp_token": "compiled"}
    assert r.report["benchmark_info"]["simulated"] and r.report["benchmark_info"]["ep"] == "qnn"
    again = perf(bundle, "--compile", "--device", "npu")
    assert tokens(again) == want and set(statuses(again).values()) == {"cached"}
