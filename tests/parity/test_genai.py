"""perf and generate over GenAI bundles: tokens against numpy, the report's numbers against each other, and what a crash,
Ctrl-C or a missing library costs."""
import json
import os
import signal
import subprocess
import time

import bundles
import pytest
from conftest import DEPS, WINML, need_qnn, need_vnpu

PROMPT, N = "hello world", 8


@pytest.fixture(autouse=True)
def library():
    if not os.path.exists(f"{DEPS}/genai/libonnxruntime-genai.so"):
        pytest.skip("onnxruntime-genai could not be fetched")


@pytest.fixture
def perf(winml, tmp_path):
    """Runs perf on a bundle; the report is in .report."""
    def run(bundle, *more, warmup=1, iterations=2, **env):
        path = tmp_path / "r.json"
        done = winml("perf", "-m", bundle, "--no-apply-template", "--prompt", PROMPT, "--max-new-tokens", N, "--warmup", warmup,
                     "--iterations", iterations, "-o", path, "--overwrite", *more, **env)
        done.report = json.loads(path.read_text()) if path.exists() else None
        return done
    return run


def tokens(result):
    assert result.code == 0, result.err
    return result.report["response_tokens"]


CASES = [("flat", None, []), ("flat", None, ["--ep", "vnpu"]), ("pipeline", None, []), ("pipeline", "vnpu", []),
         ("pipeline", "vnpu", ["--device", "npu"]), ("pipeline", "vnpu", ["--ep", "cpu"]), ("pipeline", "qnn", ["--ep", "vnpu"]),
         ("pipeline", "qnn", []), ("flat", None, ["--device", "auto"])]


@pytest.mark.parametrize("kind,provider,more", CASES, ids=lambda v: str(v))
def test_tokens(perf, tmp_path, kind, provider, more):
    """Wherever it runs, the answer is the same."""
    if provider == "qnn" and not more:
        need_qnn()
    if "vnpu" in (provider, *more):
        need_vnpu()
    options = {"backend_path": "QnnHtp.dll"} if provider == "qnn" else {}
    bundle = bundles.flat(tmp_path / "b") if kind == "flat" else bundles.pipeline(tmp_path / "b", {provider: options} if provider else None)
    before = sorted(os.listdir(bundle))
    r = perf(bundle, *more)
    assert tokens(r) == bundles.greedy(PROMPT, N)
    assert sorted(os.listdir(bundle)) == before, "the bundle was written to"
    info = r.report["benchmark_info"]
    on_npu = (provider or "vnpu" in more) and "cpu" not in more
    assert info["effective_device"] == ("npu" if on_npu else "cpu")
    assert info["prompt_tokens"] == len(PROMPT) and info["generated_tokens"] == N


def test_report_adds_up(perf, tmp_path):
    r = perf(bundles.flat(tmp_path / "b"), "--monitor", warmup=2, iterations=5).report
    assert [q["kind"] for q in r["requests"]] == ["warmup"] * 2 + ["timed"] * 5
    assert [q["index"] for q in r["requests"]] == list(range(7))
    for q in r["requests"]:
        decode = sum(q["decode_token_durations_ms"])
        assert len(q["decode_token_durations_ms"]) == q["generated_tokens"] - 1
        assert q["model_ttft_duration_ms"] == pytest.approx(q["prefill_duration_ms"] + q["first_token_duration_ms"], abs=0.01)
        assert q["response_eval_duration_ms"] == pytest.approx(q["first_token_duration_ms"] + decode, abs=0.01)
        assert q["model_compute_duration_ms"] == pytest.approx(q["prefill_duration_ms"] + q["response_eval_duration_ms"], abs=0.01)
        assert q["steady_state_decode_tokens_per_second"] == pytest.approx((N - 1) * 1000 / decode, rel=0.05)
        assert q["prefill_tokens_per_second"] == pytest.approx(len(PROMPT) * 1000 / q["prefill_duration_ms"], rel=0.05)
    timed = sorted(q["request_duration_ms"] for q in r["requests"][2:])
    stats = r["aggregate"]["request_duration_ms"]
    assert stats["mean"] == pytest.approx(sum(timed) / 5, abs=0.002)
    assert (stats["min"], stats["p50"], stats["p99"], stats["max"]) == pytest.approx((timed[0], timed[2], timed[4], timed[4]), abs=0.001)
    assert r["aggregate"]["cold_start_total_duration_ms"] > r["load"]["native_load_duration_ms"]
    assert r["memory"]["rss_model_load_delta_mb"] > 1 and r["hw_monitor"]["cpu"]["process_mean_pct"] >= 0
    assert r["process"] == {**r["process"], "exit_kind": "exit", "code": 0, "phase": "teardown", "teardown_only": False}


def test_template(winml, tmp_path):
    """The template file of the bundle frames the prompt."""
    bundle = bundles.flat(tmp_path / "b")
    r = winml("perf", "-m", bundle, "--prompt", "hi", "--iterations", 1, "--warmup", 0, "--max-new-tokens", 2, "-f", "json").json
    assert r["benchmark_info"]["prompt_tokens"] == len("user: hi\n" + "assistant: ") + 2
    assert r["requests"][0]["template_duration_ms"] > 0


def test_usage(winml, tmp_path):
    bundle = bundles.flat(tmp_path / "b")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "p.txt").write_text(" hi\n")
    for code, args in [(2, ["-m", tmp_path, "--runtime", "winml-genai"]), (2, ["-m", f"{bundle}/model.onnx", "--runtime", "ort-genai"]),
                       (2, ["-m", bundle, "--ep", "nope"]), (2, ["-m", f"{bundle}/model.onnx", "--device", "config"]),
                       (2, ["-m", bundle, "--input-data", bundle]), (1, ["-m", bundle, "--prompt-file", tmp_path / "bad.txt"]),
                       (2, ["-m", bundle, "--prompt-file", tmp_path / "no.txt"]),
                       (2, ["-m", bundle, "--prompt", "a", "--prompt-file", tmp_path / "p.txt"])]:
        assert winml("perf", *args).code == code, args
    r = winml("perf", "-m", bundle, "--no-apply-template", "--prompt-file", tmp_path / "p.txt", "--iterations", 1, "--batch-size", 2, "-f", "json")
    assert r.json["benchmark_info"]["prompt_tokens"] == 4 and "ignored with a GenAI bundle: --batch-size" in r.err


def test_nothing_measured(winml, tmp_path):
    """Figures of no request are none, not 0."""
    r = winml("perf", "-m", bundles.flat(tmp_path / "b"), "--no-apply-template", "--prompt", "", "-f", "json")
    assert r.code == 4 and "the prompt has no tokens" in r.json["error_message"]
    a = r.json["aggregate"]
    assert a["timed_request_count"] == 0 and set(a["request_duration_ms"].values()) == {None} and a["tokens_per_second_overall"] is None


def test_ep_that_is_not_here(perf, tmp_path):
    bundle = bundles.pipeline(tmp_path / "b", {"cuda": {}})
    r = perf(bundle)
    assert r.code == 3 and r.err.count("cannot be had here") == 2 and "--device cpu" in r.err and "memory" not in r.report
    assert tokens(perf(bundle, "--device", "cpu")) == bundles.greedy(PROMPT, N)


def test_option_that_the_ep_does_not_know(perf, tmp_path):
    """The EP's own words, and not the bundle's files under suspicion."""
    need_vnpu()
    r = perf(bundles.pipeline(tmp_path / "b", {"vnpu": {"nope": "1"}}))
    assert r.code == 3 and "there is no option 'nope'" in r.err and "--device cpu" in r.err and "damaged" not in r.err


def test_console(winml, tmp_path):
    """What people read: the answer, times, where it is written."""
    r = winml("perf", "-m", bundles.flat(tmp_path / "b"), "--no-apply-template", "--prompt", PROMPT, "--max-new-tokens", 4, "-o", tmp_path / "r.json")
    answer = bytes(bundles.greedy(PROMPT, 4)).decode()
    for line in f"Answer   {answer}\n", "Time to first token (ms)", "Prefill  ", "Decode   ", f"Results saved to: {tmp_path}/r.json":
        assert line in r.out, r.out
    assert winml("perf", "-m", tmp_path / "b", "-o", tmp_path / "r.json").code == 1, "an existing report is kept"


def test_sys_tells_the_library(winml, tmp_path):
    assert winml("sys", "-f", "json").json["winml"]["genai"]["path"].startswith(DEPS)
    assert winml("sys", "-f", "json", WINML_GENAI=f"{DEPS}/genai").json["winml"]["genai"]["path"] == f"{DEPS}/genai/libonnxruntime-genai.so"
    assert winml("sys", "-f", "json", WINML_GENAI=str(tmp_path)).json["winml"]["genai"] is None


def test_no_library(winml, tmp_path):
    r = winml("perf", "-m", bundles.flat(tmp_path / "b"), WINML_GENAI=str(tmp_path))
    assert r.code == 1 and "WINML_GENAI" in r.err


def test_crash_while_loading(perf, tmp_path):
    need_vnpu()
    r = perf(bundles.pipeline(tmp_path / "b", {"vnpu": {}}), "--ep-options", "fault=crash@load")
    assert r.code == 3 and "generation process died in phase model (SIGSEGV)" in r.err and "--compile" in r.err
    assert r.report["process"]["name"] == "SIGSEGV" and r.report["requests"] == []


def test_crash_while_running(perf, tmp_path):
    """What was measured until then is the result, and the exit status still says that it failed."""
    need_vnpu()
    r = perf(bundles.pipeline(tmp_path / "b", {"vnpu": {}}), "--ep-options", f"fault=kill@run:{3 * N + 3}", warmup=0, iterations=9)
    assert r.code == 4 and "generation process died in phase timed (SIGKILL)" in r.err
    assert r.report["partial"] and len(r.report["requests"]) >= 3
    assert r.report["aggregate"]["timed_request_count"] == len(r.report["requests"])


def test_crash_at_teardown(perf, tmp_path):
    """The process goes without giving the driver an occasion."""
    need_vnpu()
    r = perf(bundles.pipeline(tmp_path / "b", {"vnpu": {}}), "--ep-options", "fault=crash@teardown")
    assert tokens(r) == bundles.greedy(PROMPT, N)
    assert r.report["process"]["exit_kind"] == "exit" and not r.report["process"]["teardown_only"]


def test_failure_keeps_the_earlier_report(perf, tmp_path):
    need_vnpu()
    bundle = bundles.pipeline(tmp_path / "b", {"vnpu": {}})
    good = perf(bundle).report
    r = perf(bundle, "--ep-options", "fault=crash@load")
    assert r.code == 3 and r.report == good


def test_time_limit(perf, tmp_path):
    need_vnpu()
    r = perf(bundles.pipeline(tmp_path / "b", {"vnpu": {}}), "--ep-options", "fault=hang@load", "--generation-timeout", 2)
    assert r.code == 1 and "phase model" in r.err and "--generation-timeout" in r.err


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def maps(pid):
    try:
        with open(f"/proc/{pid}/maps") as f:
            return f.read()
    except OSError:
        return ""


@pytest.mark.parametrize("more", [[], ["--compile"]], ids=str)
def test_interrupt_and_maps(tmp_path, more):
    """The parent loads nothing of what may crash; Ctrl-C ends the child within a second, and what was measured is written."""
    need_vnpu()
    bundle = bundles.pipeline(tmp_path / "b", {"vnpu": {}})
    out = tmp_path / "r.json"
    p = subprocess.Popen([WINML, "perf", "-m", bundle, "--no-apply-template", "--prompt", PROMPT, "--max-new-tokens", "4", "--warmup", "0",
                          "--iterations", "1000", "--ep-options", "latency_us=60000", "-o", str(out), *more], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, env={**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache")})
    seen, child, end = "", "", time.monotonic() + 60
    while "genai" not in child or time.monotonic() < generating + 1.5:
        assert time.monotonic() < end and p.poll() is None
        seen += maps(p.pid)
        now = "".join(maps(c) for c in children(p.pid))
        if "onnxruntime-genai" in now and "genai" not in child:
            generating = time.monotonic()
        child = now or child
        time.sleep(0.02)
    assert "libonnxruntime" in child and "virtual_npu" in child
    assert "onnxruntime" not in seen and "virtual_npu" not in seen
    kids = children(p.pid)
    p.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = p.communicate(timeout=20)
    assert time.monotonic() - begin < 1 and p.returncode == 130, err
    assert kids and not any(os.path.exists(f"/proc/{k}") for k in kids)
    report = json.loads(out.read_text())
    assert report["partial"] and report["benchmark_info"]["interrupted"] and report["requests"]
    assert report["process"]["exit_kind"] == "interrupt"
