"""perf: keys of the report, inputs, traces of every EP, what happens when something goes wrong."""
import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from conftest import WINML, bug, model, need_openvino, need_qnn, need_vnpu


def load(path):
    with open(path) as f:
        return json.load(f)


def test_report(winml, tmp_path):
    out = tmp_path / "deep" / "r é.json"
    r = winml("perf", "-m", model("orientation"), "--ep", "cpu", "--iterations", "7", "--warmup", "2", "-o", out, "-f", "json", "--monitor")
    assert r.code == 0, r.err
    d = r.json
    assert d == load(out)
    assert list(d)[:6] == ["schema_version", "benchmark_info", "model_info", "latency_ms", "throughput", "raw_samples_ms"]
    assert d["schema_version"] == 2 and len(d["raw_samples_ms"]) == 7
    info = d["benchmark_info"]
    for key in ("runtime model_id running_model_path task device ep ep_source ep_options precision iterations warmup duration_sec "
                "batch_size effective_batch_size timestamp").split():
        assert key in info, key
    assert info["ep"] == "CPUExecutionProvider" and info["device"] == "cpu" and info["iterations"] == 7
    l, s = d["latency_ms"], sorted(d["raw_samples_ms"])
    assert l["min"] == s[0] and l["max"] == s[-1] and l["p50"] == s[3] and l["p99"] == s[6]
    assert abs(l["mean"] - np.mean(s)) < 2e-3 and abs(l["std"] - np.std(s)) < 2e-3
    assert d["model_info"]["input_shapes"] == [[None, 3, 224, 224]] and d["model_info"]["precision"] == "fp32"
    m = d["memory"]
    assert m["rss_peak_mb"] >= m["rss_after_inference_mb"] >= m["rss_baseline_mb"] > 0 and m["vram_local_baseline_mb"] is None
    h = d["hw_monitor"]
    assert list(h) == ["monitor", "device_kind", "adapter_luid", "monitor_source", "cpu", "ram", "gpu", "device_memory", "running_time_ns"]
    assert h["monitor"] == "HWMonitor" and h["cpu"]["sample_count"] >= 1 and h["cpu"]["mean_pct"] <= 100 and h["device_kind"] is None
    assert list(h["cpu"])[:4] == ["mean_pct", "process_mean_pct", "peak_pct", "sample_count"] and h["ram"]["system_used_mb"] > h["ram"]["used_mb"]
    assert list(h["gpu"]) == ["mean_pct", "peak_pct", "sample_count", "luids"] and list(h["device_memory"]) == [
        "local_mean_mb", "shared_mean_mb", "local_peak_mb", "shared_peak_mb"]
    assert d["placement"][0]["ep"] == "CPUExecutionProvider"
    again = winml("perf", "-m", model("orientation"), "--iterations", "1", "-o", out)
    assert again.code == 1 and "--overwrite" in again.err


def test_default_report_lies_in_the_cache(winml, tmp_path):
    r = winml("perf", "-m", bug("odd_dims"), "--ep", "cpu", "--iterations", "1", "--input-shape", "x=1,3,8,8")
    assert r.code == 0, r.err
    path = re.search(r"Results saved to: (.*)", r.out).group(1)
    assert path.startswith(str(tmp_path / "cache" / "perf" / "odd_dims")) and load(path)["schema_version"] == 2


@pytest.mark.parametrize("form", ["npz", "folder"])
def test_given_inputs(winml, tmp_path, form):
    arrays = {"input": np.random.rand(1, 576).astype("f"), "state": np.zeros((2, 1, 128), "f"), "sr": np.array(16000, "i8")}
    if form == "npz":
        data = tmp_path / "in.npz"
        np.savez_compressed(data, **arrays)
    else:
        data = tmp_path / "in"
        data.mkdir()
        for k, v in arrays.items():
            np.save(data / f"{k}.npy", v)
    r = winml("perf", "-m", model("vad"), "--ep", "cpu", "--iterations", "3", "--input-data", data, "-o", tmp_path / "r.json")
    assert r.code == 0, r.err
    bad = tmp_path / "bad.npz"
    np.savez(bad, input=arrays["input"], extra=arrays["sr"])
    r = winml("perf", "-m", model("vad"), "--ep", "cpu", "--iterations", "3", "--input-data", bad, "-o", tmp_path / "r2.json")
    assert r.code == 2 and "'state'" in r.err and "'extra'" in r.err


def test_duration_and_batch(winml, tmp_path):
    r = winml("perf", "-m", model("orientation"), "--duration", "0.5", "--batch-size", "2", "--warmup", "1", "-o", tmp_path / "r.json", "-f", "json")
    assert r.code == 0, r.err
    d = r.json
    assert 450 < sum(d["raw_samples_ms"]) < 2000 and d["benchmark_info"]["duration_sec"] == 0.5
    assert d["benchmark_info"]["effective_batch_size"] == 2
    assert abs(d["throughput"]["samples_per_sec"] - 2 * d["throughput"]["batches_per_sec"]) < 0.1


@pytest.mark.parametrize("args,code,word", [
    (["--iterations", "0"], 2, "0"), (["--duration", "1", "--op-tracing", "basic"], 2, "--duration"), (["--ep", "nope"], 2, "nope"),
    (["--device", "config"], 2, "config"), (["--input-shape", "zz=1"], 2, "zz"), (["--top-k", "0"], 2, "0"), (["extra"], 2, "extra")])
def test_usage(winml, tmp_path, args, code, word):
    r = winml("perf", "-m", model("orientation"), "-o", tmp_path / "r.json", *args)
    assert r.code == code and word in r.err, (r.code, r.err)


def test_missing_model_and_hub_id(winml, tmp_path):
    assert winml("perf", "-m", tmp_path / "none.onnx").code == 2
    r = winml("perf", "-m", "microsoft/resnet-50")
    assert r.code == 1 and "not available in this version" in r.err


def trace_of(path):
    t = load(str(path)[:-5] + "_op_trace.json")
    for key in "metadata summary operators statistics artifacts status error fallback_reason".split():
        assert key in t, key
    return t


def test_trace_on_cpu(winml, tmp_path):
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), "--iterations", "3", "--op-tracing", "basic", "-o", out)
    assert r.code == 0, r.err
    t = trace_of(out)
    assert t["status"] == "ok" and len(t["operators"]) > 50 and all(len(o["samples_us"]) == 3 for o in t["operators"])
    assert {"Conv"} <= {o["name"] for o in t["operators"]}
    assert load(out)["hw_monitor"] == {"monitor": "HWMonitor", "ep_proof": t}
    assert 99 < sum(o["percent_of_total"] for o in t["operators"]) < 101


def test_graphs_inside_nodes_are_not_counted_twice(winml, tmp_path):
    """The rows of a traced model with If nodes add up to no more than the traced runs."""
    data = tmp_path / "in.npz"
    np.savez(data, input=np.random.rand(1, 576).astype("f"), state=np.zeros((2, 1, 128), "f"), sr=np.array(16000, "i8"))
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("vad"), "--ep", "cpu", "--iterations", "5", "--input-data", data, "--op-tracing", "basic", "-o", out)
    assert r.code == 0, r.err
    t = trace_of(out)
    assert {"If", "LSTM"} <= {o["name"] for o in t["operators"]}
    assert sum(o["duration_us"] for o in t["operators"]) < 1.01 * 1000 * t["summary"]["traced_latency_ms"]
    assert 99 < sum(o["percent_of_total"] for o in t["operators"]) < 101


def test_trace_on_openvino(winml, tmp_path):
    need_openvino()
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), "--ep", "openvino", "--device", "cpu", "--iterations", "3", "--op-tracing", "basic", "-o", out)
    assert r.code == 0, r.err
    t = trace_of(out)
    assert t["status"] == "ok" and any(o["name"] == "Convolution" for o in t["operators"])
    assert not any(o["op_path"].startswith("OpenVINOExecutionProvider_") for o in t["operators"]), "the fused node gave way"


def test_trace_on_qnn_raw_and_compiled(winml, tmp_path):
    """The path of a folder with blanks and letters beyond ASCII, two passes each, names of the source."""
    need_qnn()
    folder = tmp_path / "ré sults"
    small, compiled = tmp_path / "small.onnx", tmp_path / "small_qnn.onnx"
    target = ["--ep", "qnn", "--device", "npu"]
    assert winml("optimize", "-m", model("ocr-cls"), "-o", small, "--input-shape", "x=1,3,48,192").code == 0
    c = winml("compile", "-m", small, "-o", compiled, *target, "--ep-options", "soc_model=60", "--ep-options", "htp_arch=73", "-f", "json")
    assert c.code == 0, c.err
    assert c.json["target"]["simulated"] and c.json["models"][0]["validation"][0]["cosine"] > 0.99
    for source in (small, compiled):
        out = folder / (source.stem + ".json")
        r = winml("perf", "-m", source, *target, "--iterations", "3", "--warmup", "1", "--op-tracing", "basic", "--no-memory", "-o", out)
        assert r.code == 0, r.err
        t = trace_of(out)
        assert t["status"] == "ok" and t["metadata"]["simulated"] and os.path.getsize(t["artifacts"]["csv"]) > 1000
        rows = [o for o in t["operators"] if o["ep"] == "QNNExecutionProvider" and o["op_id"] is not None]
        assert len(rows) > 100 and all(len(o["samples_us"]) == 3 for o in rows)
        assert sum(o["op_path"].startswith("Conv@") and o["name"] == "Conv" for o in rows) > 40
        assert 80 < sum(o["percent_of_total"] for o in t["operators"]) < 100.5
        assert t["summary"]["host_call_us"] > 0.9 * t["summary"]["accel_execute_us"] > 0 and t["artifacts"]["profile"]
        assert "memory" not in load(out) and load(out)["benchmark_info"]["simulated"] is True


def vnpu(*options):
    out = ["--ep", "vnpu", "--device", "npu"]
    for o in options:
        out += ["--ep-options", o]
    return out


def test_trace_on_the_virtual_npu(winml, tmp_path):
    need_vnpu()
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), *vnpu(), "--iterations", "4", "--op-tracing", "basic", "-o", out)
    assert r.code == 0, r.err
    t = trace_of(out)
    assert any(o["ep"] == "VirtualNPUExecutionProvider" and o["name"] == "Conv" for o in t["operators"])
    assert any(o["ep"] == "CPUExecutionProvider" for o in t["operators"]), "nodes that fell back have rows as well"
    made = [o for o in t["operators"] if re.fullmatch(r"Mul_\d+", o["op_path"])]
    assert made and all(o["name"] == "Mul" for o in made), "nodes that ORT made have types"


def test_source_of_a_compiled_model(winml, tmp_path):
    need_vnpu()
    source, compiled, out = tmp_path / "a.onnx", tmp_path / "a_ctx.onnx", tmp_path / "r.json"
    assert winml("optimize", "-m", model("orientation"), "-o", source, "--input-shape", "x=1,3,224,224").code == 0
    c = winml("compile", "-m", source, "-o", compiled, *vnpu())
    assert c.code == 0, c.err
    args = ["perf", "-m", compiled, *vnpu(), "--iterations", "2", "--op-tracing", "basic", "-o", out, "--overwrite", "-f", "json"]
    r = winml(*args)
    assert r.code == 0, r.err
    assert not r.json["warnings"] and sum(o["name"] == "Conv" for o in trace_of(out)["operators"]) > 30
    with open(source, "ab") as f:
        f.write(b"\x32\x00")  # another producer_version: still a model
    r = winml(*args)
    assert r.code == 0 and "is not what" in r.json["warnings"][0], r.json["warnings"]


@pytest.mark.parametrize("option,reason", [("csv=off", "options_ignored"), ("refuse_ops=all", "no_nodes_on_ep")])
def test_trace_without_data(winml, tmp_path, option, reason):
    need_vnpu()
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), *vnpu(option), "--iterations", "2", "--op-tracing", "basic", "-o", out, "-f", "json")
    assert r.code == 4 and r.json["op_trace"] is None and r.json["op_trace_reason"] == reason
    assert r.json["error"]["code"] == 4 and r.json["error"]["hint"]
    assert len(load(out)["raw_samples_ms"]) == 2, "the ordinary report is written all the same"
    t = trace_of(out)
    assert t["reason"] == reason and t["error"]
    if reason == "no_nodes_on_ep":
        assert "Conv (" in t["error"]


def test_fail_on_fallback(winml, tmp_path):
    need_vnpu()
    args = ["perf", "-m", model("orientation"), "--iterations", "1", "--overwrite", "-o", tmp_path / "r.json"]
    assert winml(*args, *vnpu("ops=Conv"), "--fail-on-fallback", "90").code == 5
    assert winml(*args, *vnpu(), "--fail-on-fallback", "50").code == 0


@pytest.mark.parametrize("what", ["fail", "crash", "kill", "hang", "exit"])
@pytest.mark.parametrize("where,code", [("load", 3), ("run", 4), ("teardown", 0)])
def test_faults(winml, tmp_path, what, where, code):
    need_vnpu()
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), *vnpu(f"fault={what}@{where}"), "--iterations", "3", "--warmup", "1", "--timeout", "3",
              "-o", out, "-f", "json")
    if what == "hang" and where != "teardown":
        code = 1
    assert r.code == code, r.err
    if where == "teardown":
        assert len(load(out)["raw_samples_ms"]) == 3
        if what != "fail":
            assert "teardown" in load(out)["warnings"][0] or "ended" in load(out)["warnings"][0] or "stopped" in load(out)["warnings"][0]
    else:
        assert not out.exists() and r.json["error"]["message"]
        if what == "kill":
            assert "SIGKILL" in r.json["error"]["message"]


def test_crash_in_the_middle_keeps_what_was_measured(winml, tmp_path):
    need_vnpu()
    out = tmp_path / "r.json"
    r = winml("perf", "-m", model("orientation"), *vnpu("fault=kill@run:40", "latency_us=20000"), "--iterations", "100", "--warmup", "0", "-o", out, "-f", "json")
    assert r.code == 4, r.err
    d = load(out)
    assert d["benchmark_info"]["ep"] == "VirtualNPUExecutionProvider" and d["benchmark_info"]["simulated"] and d["placement"]
    assert 5 <= len(d["raw_samples_ms"]) < 41 and "salvaged" in d["warnings"][0] and "SIGKILL" in d["benchmark_info"]["salvaged"]


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    out = tmp_path / "r.json"
    p = subprocess.Popen([WINML, "perf", "-m", model("orientation"), "--iterations", "100000", "-o", str(out)], stderr=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 1 and "Aborted" in err
    assert load(out)["benchmark_info"]["interrupted"] and len(load(out)["raw_samples_ms"]) > 10


def test_ctrl_c_of_a_child(tmp_path):
    need_vnpu()
    out = tmp_path / "r.json"
    p = subprocess.Popen([WINML, "perf", "-m", model("orientation"), *vnpu("latency_us=30000"), "--iterations", "100000", "-o", str(out)],
                         stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 1 and "Aborted" in err
    assert load(out)["benchmark_info"]["interrupted"] and len(load(out)["raw_samples_ms"]) > 3


def test_live_chart(tmp_path):
    """On a terminal: a chart that is gone when the report appears."""
    import pty
    fd, terminal = pty.openpty()
    p = subprocess.Popen([WINML, "perf", "-m", model("orientation"), "--ep", "cpu", "--monitor", "--duration", "1.5", "-o", str(tmp_path / "r.json")],
                         stdin=terminal, stdout=terminal, stderr=terminal, env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"})
    os.close(terminal)
    text = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(fd)
    assert p.wait(30) == 0
    text = text.decode()
    assert "HW Monitor - orientation.onnx" in text and re.search("[\u2801-\u28ff]", text) and "CPU " in text
    assert text.rindex("\x1b[J") > text.rindex("HW Monitor"), "the panel is erased before the report"
    assert load(tmp_path / "r.json")["hw_monitor"]["cpu"]["sample_count"] > 5


def test_html(winml, tmp_path):
    page = tmp_path / "r.html"
    r = winml("perf", "-m", model("orientation"), "--iterations", "5", "--op-tracing", "basic", "--monitor", "-o", tmp_path / "r.json", "--report", page)
    assert r.code == 0, r.err
    text = page.read_text()
    assert all(word in text for word in ("median", "p95", "deviation", "<h2>Load", "all CPUs", "<h2>Memory", "Where the nodes run"))
    assert "<svg" in text and "Histogram" in text and "Conv" in text
    assert not re.search(r'(src|href)=|url\(|@import|https?://', text), "self-contained"


VIEWER = '''#!/usr/bin/env python3
"""Stands in for the vendor's qnn-profile-viewer: looks at its inputs, writes an analysis with made-up numbers."""
import json, os, sys
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
mode = os.environ.get("VIEWER_MODE", "")
assert os.path.getsize(a["--input_log"]) > 100 and a["--schematic"].endswith("_schematic.bin") and os.path.getsize(a["--schematic"]) > 1000
assert a["--reader"].endswith("libQnnHtpOptraceProfilingReader.so") and json.load(open(a["--config"]))["features"]["qhas_json"]
if mode == "fail":
    sys.exit("no licence")
total = dict(time_us=100.0, graph_execute_us=90, inf_per_s="10000", timeline_cycles=1000, percent_utilization=50, total_dram_read=4096,
             total_dram_write=0, total_vtcm_read=3, total_vtcm_write=4, peak_vtcm_alloc=5, qnn_nodes=2, htp_nodes=7, unique_qnn_ops=2, unique_htp_ops=3)
if mode == "drift":
    del total["peak_vtcm_alloc"]
ops = [dict(qnn_op="Conv@0_token_1_2", qnn_op_type="Conv2d", cycles=600, percent_active_cycles=60.0, num_htp_ops=5, dram_read=1024, dram_write=0,
            vtcm_read=3072, vtcm_write=1, num_dominant_path_cycles_htp_0=300), dict(qnn_op="Mul_x", qnn_op_type="ElementWise", cycles=200, percent_active_cycles=20.0)]
if mode != "silent":
    json.dump({"data": {"htp_overall_summary": {"data": [total]}, "qnn_op_instances_nodes": {"data": ops}}},
              open(os.path.splitext(a["--output"])[0] + "_qnn_htp_analysis_summary.json", "w"))
'''


@pytest.mark.parametrize("mode,reason", [("", None), ("fail", "viewer_failed"), ("silent", "qhas_output_missing"), ("drift", "qhas_parse_failed"),
                                         ("none", "sdk_missing"), ("compiled", "schematic_missing")])
def test_detailed_trace_of_qnn(winml, tmp_path, mode, reason):
    """Log and schematic are the EP's own; only the vendor's viewer is a stand-in."""
    need_qnn()
    sdk = tmp_path / "sdk é"
    for folder, name, text in (("bin", "qnn-profile-viewer", VIEWER), ("lib", "libQnnHtpOptraceProfilingReader.so", "")):
        path = sdk / folder / "x86_64-linux-clang" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    small, out, target = tmp_path / "small.onnx", tmp_path / "r.json", ["--ep", "qnn", "--device", "npu"]
    assert winml("optimize", "-m", model("ocr-cls"), "-o", small, "--input-shape", "x=1,3,48,192").code == 0
    running = small
    if mode == "compiled":
        running = tmp_path / "c.onnx"
        assert winml("compile", "-m", small, "-o", running, *target).code == 0
    env = {"QNN_SDK_ROOT": str(sdk) if mode != "none" else "", "VIEWER_MODE": mode}
    r = winml("perf", "-m", running, *target, "--iterations", "1", "--warmup", "0", "--no-memory", "--op-tracing", "detail", "-o", out,
              "--report", tmp_path / "r.html", **env)
    assert r.code == 0, r.err
    t = trace_of(out)
    assert t["fallback_reason"] == reason and t["status"] == ("basic_fallback" if reason else "ok")
    if reason:
        assert f"({reason})" in r.err and len(t["operators"]) > 100 and "Op-Tracing (basic)" in r.out
        return
    assert "Op-Tracing (detail)" in r.out and "VTCM hit" in r.out and "<td class=n>75 %" in (tmp_path / "r.html").read_text()
    s, rows = t["summary"], {o["op_path"]: o for o in t["operators"]}
    assert s["inference_us"] == 100 and s["execute_us"] == 90 and s["inf_per_s"] == 10000 and s["vtcm_peak_bytes"] == 5 and s["htp_nodes"] == 7
    c = rows["Conv@0"]
    assert c["name"] == "Conv" and c["duration_us"] == 60 and c["percent_of_total"] == 60 and c["dominant_path_us"] == 30
    assert c["dram_read_bytes"] == 1024 and c["vtcm_hit_ratio"] == 0.75 and c["num_htp_ops"] == 5
    m = rows["Mul_x"]
    assert m["name"] == "ElementWise" and m["duration_us"] == 20 and m["vtcm_hit_ratio"] is None and m["dram_read_bytes"] is None
    assert all(os.path.exists(t["artifacts"][k]) for k in ("csv", "qhas", "schematic"))
