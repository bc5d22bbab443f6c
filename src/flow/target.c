/* Questions to a target, each answered by a child process that loads the vendor's code. */
#include "flow/target.h"

#include "os/path.h"
#include "worker/target.h"
#include "worker/worker.h"

struct wml_json_doc *wml_target_ask(struct wml_ctx *cx, const struct wml_target_spec *target, uint64_t timeout_ms, bool in_process,
                                    struct wml_err *err)
{
    struct wml_buf request = {0};
    struct wml_json j = {.out = &request};
    struct wml_worker_reply reply;
    struct wml_json_doc *doc = NULL;
    wml_json_begin(&j, '{');
    wml_target_spec_put(&j, target);
    wml_json_end(&j, '}');
    struct wml_worker_call call = {.job = "resolve", .request = wml_buf_view(&request), .timeout_ms = timeout_ms, .in_process = in_process};
    if (wml_worker_call(cx, &call, &reply, err)) {
        doc = reply.json;
        reply.json = NULL;
    }
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return doc;
}

const struct wml_ep *wml_target_ask_ep(struct wml_ctx *cx, const struct wml_target_spec *target)
{
    struct wml_err ignored = {0};
    struct wml_json_doc *doc = wml_target_ask(cx, target, WML_TARGET_ASK_MS, false, &ignored);
    const struct wml_ep *ep = wml_ep_find(wml_json_get_str(wml_json_get(wml_json_root(doc), "target"), "ep"));
    wml_json_free(doc);
    return ep;
}

void wml_target_load(struct wml_ctx *cx, const struct wml_target_spec *target, const char *file, uint64_t timeout_ms, struct wml_arena *arena,
                     struct wml_target_load *out)
{
    struct wml_buf request = {0}, path = {0};
    struct wml_json j = {.out = &request};
    struct wml_worker_reply reply;
    struct wml_err err = {0};
    if (!wml_path_absolute(&path, wml_str(file), &err)) wml_buf_cstr(&path, file);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_str(&j, wml_buf_view(&path));
    wml_target_spec_put(&j, target);
    wml_json_end(&j, '}');
    struct wml_worker_call call = {.job = "load", .request = wml_buf_view(&request), .timeout_ms = timeout_ms,
                                   .in_process = wml_target_is_plain_cpu(target)};
    *out = (struct wml_target_load){.ok = wml_worker_call(cx, &call, &reply, &err), .reply = reply.json, .wall_ms = reply.wall_ms};
    reply.json = NULL;
    bool resolved = out->reply && wml_json_is_object(wml_json_get(wml_json_root(out->reply), "target"));
    out->absent = !out->ok && !resolved && strcmp(reply.phase, "load") != 0;
    if (!out->ok) out->note = wml_arena_fmt(arena, "%s%s%s", err.msg, err.hint[0] ? "; " : "", err.hint).ptr;
    else if (reply.salvaged) out->note = wml_arena_fmt(arena, "the child process %s, after the answer", reply.ended).ptr;
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    wml_buf_release(&path);
}

static int64_t count(const struct wml_json_val *placement, struct wml_str ep, bool on)
{
    int64_t n = 0;
    for (size_t i = 0; i < wml_json_len(placement); i++) {
        const struct wml_json_val *e = wml_json_at(placement, i);
        if (wml_str_eq(wml_json_get_str(e, "ep"), ep) == on) n += wml_json_get_int(e, "nodes", 0);
    }
    return n;
}

struct wml_placed_count wml_target_count(const struct wml_json_val *reply)
{
    const struct wml_json_val *placement = wml_json_get(reply, "placement");
    struct wml_str ep = wml_json_get_str(wml_json_get(reply, "target"), "ep");
    if (!wml_json_is_array(placement)) return (struct wml_placed_count){-1, -1};
    return (struct wml_placed_count){count(placement, ep, true), count(placement, ep, false)};
}
