"""A hub of models on the loopback interface, with a second server for large files, and with everything that goes wrong.

    hub = Hub()
    hub.add("org/name", {"config.json": b"{}", "model.safetensors": bytes})     returns the commit
    hub.go_wrong("cdn", "GET", "model.safetensors", status=503)                 once; see Fault
    hub.endpoint, hub.seen                                                      where it is, what it was asked
"""
import hashlib
import json
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def git_name(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_large(name):
    return name.endswith((".safetensors", ".bin", ".onnx", ".model"))


@dataclass
class Fault:
    """What happens to the next `times` requests of a method whose file's name ends so."""
    server: str
    method: str
    name: str
    times: int = 1
    status: int = 0          # answered instead
    headers: dict = field(default_factory=dict)  # of that answer; else added to the right one
    drop_after: int = -1     # bytes of the body, then the connection breaks
    no_ranges: bool = False  # 200 whatever range is asked for
    content: bytes = None    # sent in the place of the right one
    pause: float = 0         # seconds before every 64 KiB
    hang: bool = False       # no answer at all
    after: object = None     # called when the answer is out


@dataclass
class Seen:
    server: str
    method: str
    path: str
    headers: dict
    status: int = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.handle_any()

    def do_GET(self):
        self.handle_any()

    def handle_any(self):
        hub, role = self.server.hub, self.server.role
        self.seen = Seen(role, self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        with hub.lock:
            hub.seen.append(self.seen)
            hub.now += 1
            hub.most = max(hub.most, hub.now)
        try:
            hub.answer(self, role)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with hub.lock:
                hub.now -= 1

    def reply(self, status, headers=(), body=b"", fault=None):
        self.seen.status = status
        self.send_response(status)
        for k, v in dict(headers).items():
            self.send_header(k, v)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        stop = fault.drop_after if fault and fault.drop_after >= 0 else len(body)
        step = 65536 if fault and fault.pause else 8 << 20
        for at in range(0, stop, step):
            if fault and fault.pause:
                time.sleep(fault.pause)
            self.wfile.write(body[at:min(at + step, stop)])
        if stop < len(body):
            self.wfile.flush()
            self.close_connection = True

    def send_file(self, data, headers, fault):
        data = fault.content if fault and fault.content is not None else data
        asked = self.headers.get("Range")
        if not asked or (fault and fault.no_ranges):
            self.reply(200, headers, data, fault)
            return
        first, last = asked.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last or len(data) - 1), len(data) - 1)
        if first >= len(data):
            self.reply(416, {"Content-Range": f"bytes */{len(data)}"})
            return
        self.reply(206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"}, data[first:last + 1], fault)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # many connect at once
    daemon_threads = True


class Hub:
    def __init__(self):
        self.models, self.refs, self.content, self.faults, self.seen = {}, {}, {}, [], []
        self.renamed, self.closed = {}, {}  # old id -> new; id -> "private" or "gated"
        self.token = "hf_right"
        self.cdn_at = "cdn"
        self.lock, self.now, self.most = threading.Lock(), 0, 0
        self.servers = {}
        for role in ("hub", "cdn"):
            server = Server(("127.0.0.1", 0), Handler)
            server.hub, server.role = self, role
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self.servers[role] = server
        self.endpoint = f"http://127.0.0.1:{self.servers['hub'].server_port}"
        self.cdn = f"http://127.0.0.1:{self.servers['cdn'].server_port}"

    def close(self):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def add(self, model, files, revision="main"):
        commit = hashlib.sha1(repr((model, sorted(files.items()))).encode()).hexdigest()
        self.models.setdefault(model, {})[commit] = dict(files)
        self.refs.setdefault(model, {})[revision] = commit
        self.content.update({hashlib.sha256(d).hexdigest(): (n, d) for n, d in files.items() if is_large(n)})
        return commit

    def go_wrong(self, *args, **more):
        self.faults.append(Fault(*args, **more))

    def asked(self, server, method=None, part=""):
        return [s for s in self.seen if s.server == server and method in (None, s.method) and part in s.path]

    def fault(self, role, method, name):
        with self.lock:
            for f in self.faults:
                if f.server == role and f.method == method and f.times > 0 and name.endswith(f.name):
                    f.times -= 1
                    return f
        return None

    def answer(self, request, role):
        url = urllib.parse.urlparse(request.path)
        name = urllib.parse.unquote(url.path)
        if role == "cdn":
            name = self.content.get(name.removeprefix("/blob/"), ("", b""))[0]
        f = self.fault(role, request.command, name)
        if f and f.hang:
            time.sleep(30)
            return
        if f and f.status:
            request.reply(f.status, f.headers, b"<html>an error page</html>", f)
        elif role == "cdn":
            self.answer_cdn(request, url, f)
        else:
            self.answer_hub(request, url, f)
        if f and f.after:
            f.after()

    def answer_cdn(self, request, url, f):
        name, data = self.content.get(url.path.removeprefix("/blob/"), (None, None))
        if name is None or not url.query.startswith("signature="):
            request.reply(403, {"Content-Type": "text/xml"}, b"AccessDenied")
        else:
            request.send_file(data, {"ETag": '"another-than-the-hub-says"', **(f.headers if f else {})}, f)

    def refuse(self, request, status, code, message):
        request.reply(status, {"X-Error-Code": code, "X-Error-Message": message} if code else {"X-Error-Message": message})

    def answer_hub(self, request, url, f):
        parts = url.path.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        parts = parts[2:] if api else parts
        mark = "revision" if api else "resolve"
        if mark not in parts:
            request.reply(404)
            return
        at = parts.index(mark)
        model, revision = "/".join(parts[:at]), urllib.parse.unquote(parts[at + 1])
        name = urllib.parse.unquote("/".join(parts[at + 2:]))
        if model in self.renamed:
            request.reply(307, {"Location": url.path.replace(model, self.renamed[model])})
            return
        given = request.headers.get("Authorization")
        right = given == f"Bearer {self.token}"
        if given and not right:
            self.refuse(request, 401, "", "Invalid credentials in Authorization header")
        elif model not in self.models or (self.closed.get(model) == "private" and not right):
            self.refuse(request, 401 if not right else 404, "RepoNotFound", "Repository not found")
        elif self.closed.get(model) == "gated" and not right and not api:
            self.refuse(request, 401, "GatedRepo", f"Access to model {model} is restricted.")
        else:
            self.answer_model(request, model, revision, name if not api else None, f)

    def answer_model(self, request, model, revision, name, f):
        commit = self.refs[model].get(revision, revision)
        files = self.models[model].get(commit)
        more = f.headers if f else {}
        if files is None:
            self.refuse(request, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif name is None:
            text = {"id": model, "sha": commit, "siblings": [{"rfilename": n} for n in files], "pipeline_tag": "fill-mask"}
            request.send_file(json.dumps(text).encode(), {"Content-Type": "application/json", **more}, f)
        elif name not in files:
            request.reply(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found", "X-Repo-Commit": commit})
        elif is_large(name):
            data = files[name]
            sha = hashlib.sha256(data).hexdigest()
            where = self.cdn if self.cdn_at == "cdn" else self.endpoint
            request.reply(302, {"Location": f"{where}/blob/{sha}?signature=secret", "X-Repo-Commit": commit, "ETag": '"of-the-redirect"',
                                "X-Linked-Etag": f'"{sha}"', "X-Linked-Size": str(len(data)), **more})
        else:
            data = files[name]
            request.send_file(data, {"ETag": f'"{git_name(data)}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes", **more}, f)
