"""Models from a hub: winml_hub against a hub on the loopback interface, and beside huggingface_hub in one cache."""
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from conftest import WINML
from hub_server import Hub, git_name

hf = pytest.importorskip("huggingface_hub")

PROGRAM = os.path.join(os.path.dirname(WINML), "tests", "hub", "winml_hub")
FAULTS = os.path.join(os.path.dirname(WINML), "tests", "faults", "libwinml_faults.so")
if not os.path.exists(PROGRAM):
    pytest.skip("winml_hub is not built", allow_module_level=True)

MODEL = "org/small-model"
SECRET = "hf_right"
MiB = 1 << 20
QUICK = ["--retry-ms", "1", "--piece", str(MiB)]


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


FILES = {
    "config.json": b'{"model_type": "bert"}', "tokenizer.json": b'{"version": "1.0"}', "vocab.txt": b"[PAD]\n", "README.md": b"# it\n",
    "1_Pooling/config.json": b"{}", "model.safetensors": noise(300_000), "pytorch_model.bin": noise(300_000, 2),
    "tf_model.h5": b"h5", "onnx/model.onnx": b"onnx", "flax_model.msgpack": b"flax", ".gitattributes": b"",
}
WANTED = {"config.json", "tokenizer.json", "vocab.txt", "README.md", "1_Pooling/config.json", "model.safetensors"}


class Done:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.json = json.loads(self.out)
        self.folder = self.json.get("folder")
        assert self.code in (0, 1)

    def fails(self, code, *words):
        assert self.code == 1 and self.json["code"] == code, self.out
        for w in words:
            assert w in self.json["error"] + " " + self.json["hint"], self.out
        return self


@pytest.fixture
def hub():
    h = Hub()
    yield h
    h.close()


@pytest.fixture
def env(hub, tmp_path):
    keep = {k: v for k, v in os.environ.items() if not re.match(r"(HF_|HUGGING|TRANSFORMERS|CURL_CA|REQUESTS_CA|SSL_CERT|.*_proxy$|.*_PROXY$)", k)}
    return {**keep, "HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.endpoint}


@pytest.fixture
def fetch(env):
    def run(*args, timeout=60, **more):
        return Done(subprocess.run([PROGRAM, *map(str, args), *QUICK], capture_output=True, text=True, timeout=timeout, env={**env, **more}))
    return run


@pytest.fixture
def cache(tmp_path):
    return str(tmp_path / "home" / "hub")


def below(folder):
    return {os.path.relpath(os.path.join(d, f), folder) for d, _, names in os.walk(folder) for f in names}


def has(folder, files, names):
    assert below(folder) == set(names)
    for n in names:
        with open(os.path.join(folder, n), "rb") as f:
            assert f.read() == files[n], n


def blobs(cache, model=MODEL):
    return os.path.join(cache, "models--" + model.replace("/", "--"), "blobs")


def no_unfinished(cache):
    assert not [f for f in below(cache) if "incomplete" in f or f.endswith(".tmp")]


def test_first_and_second_time(hub, fetch, cache):
    commit = hub.add(MODEL, FILES)
    r = fetch(MODEL)
    assert r.folder == f"{cache}/models--org--small-model/snapshots/{commit}"
    has(r.folder, FILES, WANTED)
    assert open(f"{cache}/models--org--small-model/refs/main").read() == commit
    assert os.readlink(r.folder + "/config.json") == f"../../blobs/{git_name(FILES['config.json'])}"
    assert os.readlink(r.folder + "/1_Pooling/config.json") == f"../../../blobs/{git_name(b'{}')}"
    no_unfinished(cache)
    del hub.seen[:]
    assert fetch(MODEL).folder == r.folder
    assert [s.path for s in hub.seen] == ["/api/models/org/small-model/revision/main"]


def test_the_other_way_round_offline(hub, fetch, cache):
    """What either fetched, the other finds without the network."""
    hub.add(MODEL, FILES)
    ours = fetch(MODEL).folder
    theirs = hf.snapshot_download(MODEL, cache_dir=cache, local_files_only=True)
    assert theirs == ours
    for name in WANTED:
        assert hf.hf_hub_download(MODEL, name, cache_dir=cache, local_files_only=True) == f"{ours}/{name}"
    assert hf.try_to_load_from_cache(MODEL, "preprocessor_config.json", cache_dir=cache) is hf._CACHED_NO_EXIST
    assert hf.try_to_load_from_cache(MODEL, "merges.txt", cache_dir=cache) is hf._CACHED_NO_EXIST
    assert hf.try_to_load_from_cache(MODEL, "tf_model.h5", cache_dir=cache) is None
    other = "org/other"
    hub.add(other, FILES, "v1")
    theirs = hf.snapshot_download(other, revision="v1", cache_dir=cache, endpoint=hub.endpoint, token=False)
    del hub.seen[:]
    assert fetch(other, "--revision", "v1", "--offline").folder == theirs
    assert fetch(other + "@v1", HF_HUB_OFFLINE="1").folder == theirs
    assert fetch(other, "--revision", "v1", "--cache-first").folder == theirs
    assert not hub.seen
    assert hf.scan_cache_dir(cache).warnings == []


def test_files_of_the_other_are_not_fetched_again(hub, fetch, cache):
    hub.add(MODEL, FILES)
    hf.snapshot_download(MODEL, cache_dir=cache, endpoint=hub.endpoint, token=False, allow_patterns=["*.safetensors", "*.json"])
    del hub.seen[:]
    has(fetch(MODEL).folder, FILES, WANTED)
    assert not hub.asked("cdn") and not hub.asked("hub", part="config.json")
    del hub.seen[:]
    hf.snapshot_download(MODEL, cache_dir=cache, endpoint=hub.endpoint, token=False, allow_patterns=list(WANTED))
    assert len(hub.seen) == 1


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/3", "feature/a-b", "commit", "short"])
def test_revisions(hub, fetch, cache, revision):
    old = hub.add(MODEL, {**FILES, "config.json": b"old"}, "main")
    new = hub.add(MODEL, {**FILES, "config.json": b"new"}, revision if revision not in ("commit", "short") else "other")
    if revision == "short":
        hub.refs[MODEL][new[:7]] = new
    asked = {"commit": new, "short": new[:7]}.get(revision, revision)
    r = fetch(MODEL, "--revision", asked)
    assert r.folder.endswith(new) and open(r.folder + "/config.json").read() == "new"
    ref = f"{cache}/models--org--small-model/refs/{asked}"
    assert not os.path.exists(ref) if revision == "commit" else open(ref).read() == new
    assert hf.snapshot_download(MODEL, revision=asked, cache_dir=cache, local_files_only=True) == r.folder
    assert old != new


def test_branch_moves(hub, fetch, cache):
    first = fetch_ok(fetch, hub, FILES)
    files = {**FILES, "config.json": b'{"model_type": "roberta"}'}
    hub.add(MODEL, files)
    del hub.seen[:]
    assert fetch(MODEL, "--cache-first").folder == first and not hub.seen
    second = fetch(MODEL).folder
    assert second != first
    has(second, files, WANTED)
    assert not hub.asked("cdn"), "the weights are the same blob"
    assert fetch(MODEL, "--offline").folder == second
    has(first, FILES, WANTED)


def fetch_ok(fetch, hub, files, model=MODEL):
    hub.add(model, files)
    r = fetch(model)
    assert r.code == 0, r.out
    return r.folder


def sharded(ending, n=3):
    one = {f"{ending[0]}-0000{i + 1}-of-0000{n}.{ending[1]}": noise(5000, i) for i in range(n)}
    index = {"metadata": {}, "weight_map": {f"layer.{i}.{p}": name for i, name in enumerate(one) for p in ("weight", "bias")}}
    return one, {f"{ending[0]}.{ending[1]}.index.json": json.dumps(index).encode()}


@pytest.mark.parametrize("case", ["single", "index", "bin", "bin index", "both"])
def test_which_weights(hub, fetch, case):
    shards, index = sharded(("model", "safetensors"))
    bins, bin_index = sharded(("pytorch_model", "bin"))
    base = {"config.json": b"{}"}
    files, wanted = {
        "single": ({**base, "model.safetensors": b"s", **bins, **bin_index}, ["model.safetensors"]),
        "index": ({**base, **shards, **index, "pytorch_model.bin": b"b", "model-00009-of-00009.safetensors": b"not named"}, [*shards, *index]),
        "bin": ({**base, "pytorch_model.bin": b"b", "tf_model.h5": b"h"}, ["pytorch_model.bin"]),
        "bin index": ({**base, **bins, **bin_index}, [*bins, *bin_index]),
        "both": ({**base, "model.safetensors": b"s", **shards, **index}, ["model.safetensors"]),
    }[case]
    has(fetch_ok(fetch, hub, files), files, ["config.json", *wanted])
    assert fetch(MODEL, "--offline").code == 0


def test_index_that_lies(hub, fetch):
    shards, index = sharded(("model", "safetensors"))
    hub.add(MODEL, {"config.json": b"{}", **dict(list(shards.items())[:2]), **index})
    fetch(MODEL).fails("not_found", "model-00003-of-00003.safetensors", "index of weights")
    for bad in ("../../x.safetensors", "/etc/passwd", 5, ""):
        name = "model.safetensors.index.json"
        hub.add(MODEL, {"config.json": b"{}", name: json.dumps({"weight_map": {"w": bad}}).encode()})
        fetch(MODEL).fails("format", name)
    hub.add(MODEL, {"config.json": b"{}", name: b'{"weight_map"'})
    fetch(MODEL).fails("format", name)


def test_no_weights_no_config(hub, fetch):
    hub.add(MODEL, {"config.json": b"{}", "flax_model.msgpack": b"f"})
    fetch(MODEL).fails("not_found", "model.safetensors", "flax_model.msgpack")
    assert fetch(MODEL, "--config").code == 0
    hub.add(MODEL, {"model.gguf": b"g"})
    fetch(MODEL).fails("not_found", "config.json", "model.gguf")
    hub.add(MODEL, {})
    fetch(MODEL).fails("not_found", "config.json")


def test_patterns(hub, fetch):
    hub.add(MODEL, FILES)
    has(fetch(MODEL, "--pattern", "onnx/*", "--pattern", "config.json").folder, FILES, ["onnx/model.onnx", "config.json"])
    assert fetch(MODEL, "--pattern", "onnx/model.onnx", "--offline").code == 0
    fetch(MODEL, "--pattern", "none.onnx").fails("not_found", "none.onnx")
    fetch(MODEL, "--pattern", "*.gguf").fails("not_found", "asked for")
    fetch(MODEL, "--pattern", "tf_*", "--offline").fails("not_found", "cache")


@pytest.mark.parametrize("bad", ["", "a/b/c", "/a", "a/", "-a/b", "a--b", "a..b", "a/b.git", "a b", "a/../b", "a\\b", "x" * 97, "é", "a@", "a/b@../x", "a/b@x..y/../z", "a/b@-x", "a/b@x:y"])
def test_no_ids(fetch, hub, bad):
    fetch(bad).fails("usage")
    assert not hub.seen


def test_id_and_revision_that_differ(fetch):
    fetch("a/b@v1", "--revision", "v2").fails("usage", "v2")


@pytest.mark.parametrize("good", ["resnet", "a/b", "A_b.c-d/e_f.G-1", "0/1", "_a_/b"])
def test_ids(hub, fetch, good):
    hub.add(good, {"config.json": b"{}"})
    assert os.path.exists(fetch(good, "--config").folder + "/config.json")
    hf.utils.validate_repo_id(good)


# --- who may see what ---

def test_no_such_model(hub, fetch):
    fetch("org/none").fails("not_found", "org/none", "HF_TOKEN")
    hub.add(MODEL, FILES)
    fetch(MODEL, "--revision", "v9").fails("not_found", "v9", "tree")


def test_private_and_gated(hub, fetch, cache):
    for how, words in (("private", "does not show it"), ("gated", "accept")):
        hub.closed[MODEL] = how
        hub.add(MODEL, FILES)
        fetch(MODEL).fails("not_found", words)
        r = fetch(MODEL, HF_TOKEN="hf_wrong").fails("not_found", "HF_TOKEN")
        assert "hf_wrong" not in r.out + r.err
        r = fetch(MODEL, HF_TOKEN=SECRET)
        has(r.folder, FILES, WANTED)
        assert SECRET not in r.out + r.err
        subprocess.run(["rm", "-rf", cache], check=True)


def test_token_stays_home(hub, fetch, env, tmp_path):
    """The token goes to the endpoint, and not to where it redirects."""
    hub.add(MODEL, FILES)
    r = fetch(MODEL, HF_TOKEN=SECRET)
    assert r.code == 0 and SECRET not in r.out + r.err and "secret" not in r.out + r.err
    assert hub.asked("hub") and all(s.headers.get("authorization") == f"Bearer {SECRET}" for s in hub.asked("hub"))
    assert hub.asked("cdn") and not any("authorization" in s.headers for s in hub.asked("cdn"))
    for f in below(tmp_path):
        with open(tmp_path / f, "rb") as h:
            assert SECRET.encode() not in h.read(), f


def test_token_does_not_follow_a_redirect_of_everything(hub, fetch):
    """An endpoint that sends us to another server altogether."""
    hub.add(MODEL, FILES)
    other = Hub()
    other.add(MODEL, FILES)
    for part in ("main", "config.json"):
        hub.go_wrong("hub", "GET", part, times=99, status=301, headers={"Location": f"{other.endpoint}/api/models/{MODEL}/revision/main"})
    fetch(MODEL, HF_TOKEN=SECRET)
    assert other.seen and not any("authorization" in s.headers for s in other.seen)
    other.close()


def test_where_the_token_comes_from(hub, fetch, env, tmp_path):
    hub.closed[MODEL] = "private"
    hub.add(MODEL, FILES)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "token").write_text(f"  {SECRET}\n")
    assert fetch(MODEL, "--config").code == 0
    fetch(MODEL, "--config", HF_HUB_DISABLE_IMPLICIT_TOKEN="1").fails("not_found")
    fetch(MODEL, "--config", HF_TOKEN="hf_wrong").fails("not_found", "HF_TOKEN")
    (home / "token").rename(tmp_path / "elsewhere")
    fetch(MODEL, "--config").fails("not_found")
    assert fetch(MODEL, "--config", HF_TOKEN_PATH="$HF_HOME/../elsewhere").code == 0
    assert fetch(MODEL, "--config", HUGGING_FACE_HUB_TOKEN=SECRET).code == 0
    r = fetch(MODEL, "--config", HF_TOKEN="hf_a\nX-Evil: 1 b").fails("usage", "HF_TOKEN")
    assert "Evil" not in r.out


def test_where_the_cache_is(hub, fetch, env, tmp_path):
    hub.add(MODEL, FILES)
    del env["HF_HOME"]
    for more, place in (({"HF_HUB_CACHE": "~/x y/hub", "HOME": str(tmp_path)}, "x y/hub"),
                        ({"HF_HOME": "${BASE}/home2", "BASE": str(tmp_path)}, "home2/hub"),
                        ({"HUGGINGFACE_HUB_CACHE": str(tmp_path / "old")}, "old"),
                        ({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, "xdg/huggingface/hub"),
                        ({"HOME": str(tmp_path / "me"), "XDG_CACHE_HOME": ""}, "me/.cache/huggingface/hub")):
        ours = fetch(MODEL, "--config", **more).folder
        assert os.path.dirname(os.path.dirname(os.path.dirname(ours))) == str(tmp_path / place)
        theirs = subprocess.run([hf_python(), "-c", f"import huggingface_hub as h; print(h.snapshot_download({MODEL!r}, local_files_only=True))"],
                                capture_output=True, text=True, env={k: v for k, v in {**env, **more}.items() if v != ""})
        assert theirs.stdout.strip() == ours, theirs.stderr


def hf_python():
    import sys
    return sys.executable


# --- the network goes wrong ---

@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
@pytest.mark.parametrize("where", ["list", "head", "small", "large"])
def test_errors_that_pass(hub, fetch, status, where):
    hub.add(MODEL, FILES)
    hub.go_wrong(*{"list": ("hub", "GET", "main"), "head": ("hub", "HEAD", "tokenizer.json"), "small": ("hub", "GET", "tokenizer.json"),
                   "large": ("cdn", "GET", "model.safetensors")}[where], times=2, status=status)
    has(fetch(MODEL).folder, FILES, WANTED)
    assert not any(f.times for f in hub.faults)


def test_errors_that_stay(hub, fetch, cache):
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, status=503)
    fetch(MODEL).fails("io", "503", "model.safetensors")
    assert len(hub.asked("cdn")) == 5
    assert not os.path.exists(f"{cache}/models--org--small-model/refs/main"), "what is not whole has no name"


def test_retry_after(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("hub", "GET", "main", status=429, headers={"Retry-After": "2"})
    began = time.monotonic()
    r = fetch(MODEL, "--config")
    assert r.code == 0 and time.monotonic() - began >= 2 and "warning: " in r.err
    hub.go_wrong("hub", "GET", "main", status=429, headers={"Retry-After": "86400"})
    began = time.monotonic()
    hub.add(MODEL, {**FILES, "config.json": b"new"})
    subprocess.run(["rm", "-rf", os.path.dirname(os.path.dirname(r.folder))], check=True)
    fetch(MODEL, "--config").fails("io", "429", "wait")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("after", [0, 1, 100_000, 299_999])
def test_dropped_connections(hub, fetch, after):
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=1, drop_after=after)
    has(fetch(MODEL).folder, FILES, WANTED)
    first, second = hub.asked("cdn")
    assert "range" not in first.headers
    assert second.headers.get("range") == (f"bytes={after}-299999" if after else None), "it goes on where it stopped"


def test_many_dropped_connections(hub, fetch):
    """As long as something arrives each time, it goes on."""
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=20, drop_after=10_000)
    has(fetch(MODEL).folder, FILES, WANTED)
    assert len(hub.asked("cdn")) == 21


def test_dropped_without_ranges(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=1, drop_after=100_000)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=9, no_ranges=True)
    has(fetch(MODEL).folder, FILES, WANTED)
    assert [s.status for s in hub.asked("cdn")] == [200, 200]


def test_dropped_lists(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("hub", "GET", "main", times=1, drop_after=40)
    hub.go_wrong("hub", "GET", "main", times=1, no_ranges=True)
    has(fetch(MODEL).folder, FILES, WANTED)


def test_hanging_server(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=1, hang=True)
    began = time.monotonic()
    has(fetch(MODEL, HF_HUB_DOWNLOAD_TIMEOUT="2").folder, FILES, WANTED)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("how", ["longer", "shorter"])
def test_wrong_size(hub, fetch, cache, how):
    hub.add(MODEL, FILES)
    data = FILES["model.safetensors"]
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, content=data + b"x" if how == "longer" else data[:-1])
    fetch(MODEL).fails("io", "bytes", "300000")
    assert not os.path.exists(f"{blobs(cache)}/{sha(data)}")


def sha(data):
    import hashlib
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_wrong_content(hub, fetch, cache, name):
    hub.add(MODEL, FILES)
    server = "cdn" if name == "model.safetensors" else "hub"
    wrong = bytes([FILES[name][0] ^ 1]) + FILES[name][1:]
    hub.go_wrong(server, "GET", name, times=1, content=wrong)
    r = fetch(MODEL)
    has(r.folder, FILES, WANTED)
    assert "once more from the start" in r.err
    subprocess.run(["rm", "-rf", cache], check=True)
    hub.go_wrong(server, "GET", name, times=99, content=wrong)
    fetch(MODEL).fails("verify", name, "hash")
    assert not [f for f in below(cache) if f.endswith(name)]
    no_unfinished_of(cache, sha(FILES[name]))


def no_unfinished_of(cache, etag):
    assert not [f for f in below(cache) if etag in f and "incomplete" in f]


def test_etag_changes_between(hub, fetch):
    """The server has another file than a moment ago."""
    new = {**FILES, "tokenizer.json": b'{"version": "2.0"}'}
    commit = hub.add(MODEL, FILES)

    def change():
        hub.models[MODEL][commit] = new
    hub.go_wrong("hub", "HEAD", "tokenizer.json", after=change)
    has(fetch(MODEL).folder, new, WANTED)
    assert len(hub.asked("hub", "HEAD", "tokenizer.json")) == 2


def test_signed_address_outlived(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("cdn", "GET", "model.safetensors", status=403)
    has(fetch(MODEL).folder, FILES, WANTED)
    assert len(hub.asked("hub", "GET", "model.safetensors")) == 1
    hub.add("org/other", {**FILES, "model.safetensors": noise(1000, 7)})
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, status=403)
    fetch("org/other").fails("not_found", "403")


def test_renamed(hub, fetch):
    hub.add("new-org/new-name", FILES)
    hub.renamed["org/old-name"] = "new-org/new-name"
    has(fetch("org/old-name", HF_TOKEN=SECRET).folder, FILES, WANTED)
    assert not any("authorization" in s.headers for s in hub.asked("cdn"))


def test_large_files_on_the_same_server(hub, fetch):
    """A mirror that redirects to itself."""
    hub.add(MODEL, FILES)
    hub.cdn_at = "hub"
    data = FILES["model.safetensors"]
    real = hub.answer_hub
    hub.answer_hub = lambda request, url, f: request.send_file(data, {"ETag": '"another"'}, f) if url.path.startswith("/blob/") else real(request, url, f)
    has(fetch(MODEL).folder, FILES, WANTED)


def test_circles_and_odd_redirects(hub, fetch):
    hub.add(MODEL, FILES)
    for target, words in ((f"/api/models/{MODEL}/revision/main", "circle"), ("ftp://127.0.0.1/x", "no web address"), ("file:///etc/passwd", "no web address")):
        hub.faults.clear()
        hub.go_wrong("hub", "GET", "main", times=99, status=302, headers={"Location": target})
        fetch(MODEL).fails("io", words)


@pytest.mark.parametrize("text", [b"<html>log in first</html>", b"{}", b"[]", b'{"sha": "../../x", "siblings": []}', b'{"sha": 5}', b""])
def test_not_a_hub(hub, fetch, text):
    hub.add(MODEL, FILES)
    hub.go_wrong("hub", "GET", "main", content=text)
    fetch(MODEL).fails("format", "HF_ENDPOINT")


def test_evil_names(hub, fetch, tmp_path):
    evil = ["../x.json", "/tmp/x.json", "a/../../x", "a\\..\\x", "", "a//b", "./x", "C:x", "a\x01b"]
    hub.add(MODEL, {**FILES, **{n: b"evil" for n in evil}})
    r = fetch(MODEL, "--pattern", "*")
    assert below(r.folder) == set(FILES)
    assert r.err.count("no safe path") == len(evil) - 1
    hub.add(MODEL, {**FILES, "config.json": b"other"})
    hub.go_wrong("hub", "HEAD", "config.json", headers={"X-Linked-Etag": '"../../../../evil"'})
    fetch(MODEL).fails("format", "ETag")
    assert not [f for f in below(tmp_path) if "evil" in f]


def test_terminal_codes_of_a_server(hub, fetch):
    hub.add(MODEL, FILES)
    hub.go_wrong("hub", "GET", "main", times=9, status=403, headers={"X-Error-Message": "\x1b[31mno\x07 way"})
    r = fetch(MODEL, HF_TOKEN=SECRET).fails("not_found", "[31mno way")
    assert "\\u001b" not in r.out
    hub.go_wrong("hub", "GET", "main", times=9, status=403, headers={"X-Error-Message": f"token {SECRET} is not good"})
    assert SECRET not in fetch("org/x", HF_TOKEN=SECRET).out


def test_no_network(hub, fetch, env):
    folder = fetch_ok(fetch, hub, FILES)
    env["HF_ENDPOINT"] = "http://127.0.0.1:1"
    r = fetch(MODEL)
    assert r.folder == folder and "warning: " in r.err and "from the cache" in r.err
    fetch("org/none").fails("io", "127.0.0.1:1", "network")
    env["HF_ENDPOINT"] = "http://no-such-host.invalid"
    assert fetch(MODEL).folder == folder
    env["HF_ENDPOINT"] = "no address"
    fetch(MODEL).fails("usage", "HF_ENDPOINT")


def test_hub_is_down(hub, fetch):
    folder = fetch_ok(fetch, hub, FILES)
    hub.go_wrong("hub", "GET", "main", times=99, status=503)
    assert fetch(MODEL).folder == folder


def test_offline(hub, fetch, cache):
    fetch(MODEL, "--offline").fails("not_found", "cache")
    fetch(MODEL, HF_HUB_OFFLINE="1").fails("not_found", "HF_HUB_OFFLINE")
    fetch(MODEL, TRANSFORMERS_OFFLINE="yes").fails("not_found", "cache")
    folder = fetch_ok(fetch, hub, FILES)
    os.remove(os.path.realpath(folder + "/model.safetensors"))
    fetch(MODEL, "--offline").fails("not_found", "model.safetensors")
    assert fetch(MODEL, "--config", "--offline").folder == folder
    has(fetch(MODEL, HF_HUB_OFFLINE="0", TRANSFORMERS_OFFLINE="1").folder, FILES, WANTED)


def test_proxy(hub, fetch, env):
    """A proxy is asked with the whole address; what it needs no proxy for, it is not asked for."""
    hub.add(MODEL, FILES)
    proxy = Hub()
    env["HF_ENDPOINT"] = "http://hub.invalid"
    fetch(MODEL, http_proxy=proxy.endpoint)
    assert proxy.seen[0].path == f"http://hub.invalid/api/models/{MODEL}/revision/main"
    env["HF_ENDPOINT"] = hub.endpoint
    del proxy.seen[:]
    assert fetch(MODEL, http_proxy=proxy.endpoint, no_proxy="127.0.0.1").code == 0 and not proxy.seen
    proxy.close()


def test_https(hub, fetch, env, tmp_path):
    """A certificate that nobody knows is refused, before anything is said; one that is named is taken."""
    import shutil
    import ssl
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    hub.servers["hub"].socket = context.wrap_socket(hub.servers["hub"].socket, server_side=True, do_handshake_on_connect=False)
    env["HF_ENDPOINT"] = f"https://localhost:{hub.servers['hub'].server_port}"
    hub.add(MODEL, FILES)
    fetch(MODEL, HF_TOKEN=SECRET).fails("io", "certificate", "CURL_CA_BUNDLE")
    assert not hub.seen
    for name in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        assert fetch(MODEL, "--config", **{name: str(tmp_path / "cert.pem")}).code == 0
    hub.go_wrong("hub", "GET", "main", times=9, status=302, headers={"Location": hub.endpoint + "/x"})
    fetch("org/x", "--config", CURL_CA_BUNDLE=str(tmp_path / "cert.pem")).fails("io", "from https to http")


def test_without_libcurl(hub, fetch, tmp_path):
    fetch(MODEL, WINML_CURL=str(tmp_path / "none.so")).fails("not_found", "none.so", "WINML_CURL")
    fetch(MODEL, WINML_CURL="libm.so.6").fails("unsupported", "curl_global_init")
    folder = fetch_ok(fetch, hub, FILES)
    assert fetch(MODEL, "--offline", WINML_CURL="none").folder == folder
    assert fetch(MODEL, WINML_CURL="none").folder == folder, "the cache serves"


# --- large files, unfinished files, several processes ---

BIG = noise(5 * MiB + 12345, 3)


def test_pieces(hub, fetch):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, pause=0.02)
    r = fetch(MODEL)
    has(r.folder, files, files)
    ranges = [s.headers["range"] for s in hub.asked("cdn", "GET")]
    assert len(ranges) == 5 and hub.most >= 4
    assert r.json["peak"] < 50 * MiB
    assert re.search(r"progress Downloading model.safetensors \d+/5\n", r.err) and r.err.count("progress end") == 1


def test_no_progress_when_told(hub, fetch):
    hub.add(MODEL, FILES)
    r = fetch(MODEL, HF_HUB_DISABLE_PROGRESS_BARS="1")
    assert r.code == 0 and "progress" not in r.err


def test_pieces_without_ranges(hub, fetch):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, no_ranges=True)
    has(fetch(MODEL).folder, files, files)


def test_pieces_that_break(hub, fetch):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    for n in range(12):
        hub.go_wrong("cdn", "GET", "model.safetensors", **({"drop_after": n * 80_000} if n % 3 else {"status": 503}))
    has(fetch(MODEL).folder, files, files)


def incomplete(cache, data=BIG):
    return f"{blobs(cache)}/{sha(data)}.incomplete"


def start(env, *args, **more):
    return subprocess.Popen([PROGRAM, MODEL, *args, *QUICK], env={**env, **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle(hub, fetch, env, cache, how):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, pause=0.03)
    p = start(env)
    path = incomplete(cache)
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > MiB // 4)
    p.send_signal(how)
    out, _ = p.communicate(timeout=20)
    if how == signal.SIGINT:
        assert json.loads(out)["code"] == "cancelled"
    size = os.path.getsize(path)
    assert open(path, "rb").read() == BIG[:size], "it is a beginning, without holes"
    assert not os.path.exists(f"{cache}/models--org--small-model/refs/main")
    hub.faults.clear()
    del hub.seen[:]
    has(fetch(MODEL).folder, files, files)
    assert min(int(s.headers["range"][6:].split("-")[0]) for s in hub.asked("cdn")) == size
    no_unfinished(cache)


def test_the_other_goes_on_with_ours(hub, fetch, env, cache):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, pause=0.03)
    p = start(env)
    wait_for(lambda: os.path.exists(incomplete(cache)) and os.path.getsize(incomplete(cache)) > MiB // 4)
    p.kill()
    p.communicate()
    size = os.path.getsize(incomplete(cache))
    hub.faults.clear()
    del hub.seen[:]
    has(hf.snapshot_download(MODEL, cache_dir=cache, endpoint=hub.endpoint, token=False), files, files)
    assert hub.asked("cdn", "GET")[0].headers["range"] == f"bytes={size}-"


def test_we_go_on_with_theirs(hub, fetch, cache):
    files = {"config.json": b"{}", "model.safetensors": BIG}
    hub.add(MODEL, files)
    os.makedirs(blobs(cache))
    with open(incomplete(cache), "wb") as f:
        f.write(BIG[:3 * MiB])
    has(fetch(MODEL).folder, files, files)
    assert min(int(s.headers["range"][6:].split("-")[0]) for s in hub.asked("cdn")) == 3 * MiB


@pytest.mark.parametrize("left", ["all", "wrong", "too long", "empty"])
def test_odd_leftovers(hub, fetch, cache, left):
    """An unfinished file that is whole already, that is another's, or longer than it may be."""
    hub.add(MODEL, FILES)
    data = FILES["model.safetensors"]
    os.makedirs(blobs(cache))
    with open(incomplete(cache, data), "wb") as f:
        f.write({"all": data, "wrong": b"x" * 1000, "too long": data + b"x", "empty": b""}[left])
    has(fetch(MODEL).folder, FILES, WANTED)
    assert len(hub.asked("cdn")) == {"all": 0, "wrong": 2, "too long": 1, "empty": 1}[left]
    no_unfinished(cache)


def test_empty_files_and_twins(hub, fetch, cache):
    """Two names, one content: one blob."""
    files = {"config.json": b"{}", "tokenizer_config.json": b"{}", "vocab.txt": b"", "merges.txt": b"", "model.safetensors": b""}
    has(fetch_ok(fetch, hub, files), files, files)
    assert len(os.listdir(blobs(cache))) == 3


def test_several_processes(hub, fetch, env, cache):
    files = {"config.json": b"{}", "model.safetensors": BIG, "tokenizer.json": b"t"}
    hub.add(MODEL, files)
    hub.go_wrong("cdn", "GET", "model.safetensors", times=99, pause=0.01)
    ours = [start(env, HF_HUB_DISABLE_PROGRESS_BARS="1") for _ in range(3)]
    code = f"import huggingface_hub as h; print(h.snapshot_download({MODEL!r}, token=False))"
    theirs = subprocess.Popen([hf_python(), "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folders = {json.loads(p.communicate(timeout=60)[0]).get("folder") for p in ours} | {theirs.communicate(timeout=60)[0].strip()}
    assert len(folders) == 1
    has(folders.pop(), files, files)
    sent = [s for s in hub.asked("cdn", "GET") if s.status in (200, 206)]
    assert len(sent) <= 5, "each byte was fetched once"
    no_unfinished(cache)


def test_the_lock_is_the_same(hub, fetch, env, cache):
    """While huggingface_hub holds a file's lock, we wait; and fetch when it has not."""
    from filelock import FileLock
    hub.add(MODEL, FILES)
    path = f"{cache}/.locks/models--org--small-model/{sha(FILES['model.safetensors'])}.lock"
    os.makedirs(os.path.dirname(path))
    with FileLock(path):
        p = start(env)
        wait_for(lambda: os.path.exists(f"{blobs(cache)}/{git_name(FILES['vocab.txt'])}"))
        time.sleep(0.5)
        assert p.poll() is None and not hub.asked("cdn")
    out, log = p.communicate(timeout=20)
    has(json.loads(out)["folder"], FILES, WANTED)
    assert "another process fetches it" in log


# --- disks ---

def faulty(env, cache, at, how, log=""):
    more = {"LD_PRELOAD": FAULTS, "FAULTS_DIR": cache, "FAULTS_AT": str(at), "FAULTS_HOW": how, "FAULTS_LOG": log}
    return subprocess.run([PROGRAM, MODEL, *QUICK], capture_output=True, text=True, timeout=60, env={**env, **more})


@pytest.mark.parametrize("how", ["full", "kill"])
def test_every_step_on_disk(hub, fetch, env, cache, tmp_path, how):
    """The disk is full from the n-th step on, or the process dies at it: the next run finishes, and no bad file is seen."""
    if not os.path.exists(FAULTS):
        pytest.skip("winml_faults is not built")
    files = {"config.json": b"{}", "model.safetensors": noise(2 * MiB, 9)}
    hub.add(MODEL, files)
    log = str(tmp_path / "log")
    open(log, "w").close()
    assert faulty(env, cache, 0, "", log).returncode == 0
    steps = len(open(log).readlines())
    assert steps > 10
    for at in range(1, steps + 1):
        subprocess.run(["rm", "-rf", cache], check=True)
        r = faulty(env, cache, at, how)
        if how == "full" and r.returncode:
            assert "Insufficient disk space" in r.stdout, (at, r.stdout)
        for f in below(cache):
            if "/snapshots/" in f:
                assert open(f"{cache}/{f}", "rb").read() == files[os.path.basename(f)], (at, f)
        has(fetch(MODEL).folder, files, files)
        no_unfinished(cache)


def test_read_only_cache(hub, fetch, cache):
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    folder = fetch_ok(fetch, hub, FILES)
    subprocess.run(["chmod", "-R", "a-w", cache], check=True)
    try:
        assert fetch(MODEL).folder == folder
    finally:
        subprocess.run(["chmod", "-R", "u+w", cache], check=True)
