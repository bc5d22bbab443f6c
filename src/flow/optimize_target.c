/* What the target thinks of the result: a child loads the saved file on it and tells where the nodes went.
 * Every outcome is a note in the report; the file is there already. */
#include "flow/optimize_internal.h"
#include "worker/target.h"
#include "worker/worker.h"

static void hint_for(struct wml_optimize_run *r)
{
    const struct wml_target_spec *t = &r->args->target;
    struct wml_str target = wml_arena_fmt(&r->arena, "%s%s%s%s", t->ep ? " --ep " : "", t->ep ? t->ep : "",
                                          t->device ? " --device " : "", t->device ? t->device : "");
    r->target_hint = wml_arena_fmt(&r->arena, "the optimized model is written; try `winml compile -m %s%.*s`, or "
                                   "`winml perf -m %s%.*s -v` to see what the EP says", r->output, WML_ARG(target),
                                   r->output, WML_ARG(target)).ptr;
}

void wml_optimize_check_target(struct wml_optimize_run *r)
{
    struct wml_buf request = {0};
    struct wml_json j = {.out = &request};
    struct wml_worker_reply reply;
    struct wml_err err = {0};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_path(&j, r->output);
    wml_target_spec_put(&j, &r->args->target);
    wml_json_end(&j, '}');
    wml_note_progress(r->cx, "Loading on the target", r->name, 0, 0, NULL);
    struct wml_worker_call call = {.job = "load", .request = wml_buf_view(&request), .timeout_ms = r->args->timeout_ms,
                                   .in_process = wml_target_is_plain_cpu(&r->args->target)};
    bool ok = wml_worker_call(r->cx, &call, &reply, &err);
    r->placement = reply.json;
    reply.json = NULL;
    bool absent = !ok && strcmp(reply.phase, "load") != 0;
    r->target_status = ok ? "loads" : absent ? "not verified" : "failed";
    if (!ok) {
        r->target_note = wml_arena_fmt(&r->arena, "%s%s%s", err.msg, err.hint[0] ? "; " : "", err.hint).ptr;
        if (!absent) hint_for(r);
    } else if (reply.salvaged) {
        r->target_note = wml_arena_fmt(&r->arena, "the child process %s, after the answer", reply.ended).ptr;
    }
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
}
