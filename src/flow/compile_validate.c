/* Validation: the compiled model runs once on its target, in a child; the source runs once on the CPU on
 * the same seeded inputs; every output is compared. NaN and infinities that the CPU does not have fail. */
#include <math.h>

#include "base/num.h"
#include "flow/compare.h"
#include "flow/compile_internal.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"
#include "text/npy.h"
#include "worker/feed.h"
#include "worker/target.h"

static void write_request(const char *model, const struct wml_target_spec *spec, const char *outputs,
                          const struct wml_feed_spec *ranges, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    struct wml_feed_spec feed = {.seed = 1, .small = true, .range = ranges->range, .n_ranges = ranges->n_ranges};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_path(&j, model);
    wml_target_spec_put(&j, spec);
    wml_json_key(&j, "feed");
    wml_feed_spec_put(&j, &feed);
    wml_json_key(&j, "outputs");
    wml_json_put_cstr(&j, outputs);
    wml_json_end(&j, '}');
}

static bool infer(struct wml_compile_run *r, const char *model, const struct wml_target_spec *spec,
                  const char *outputs, bool in_process, struct wml_err *err)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply;
    write_request(model, spec, outputs, &r->ranges, &request);
    struct wml_worker_call call = {.job = "infer", .request = wml_buf_view(&request), .dir = in_process ? NULL : r->stage,
                                   .timeout_ms = r->args->timeout_ms, .in_process = in_process};
    bool ok = wml_worker_call(r->cx, &call, &reply, err);
    if (ok && reply.salvaged) {
        struct wml_str how = wml_arena_fmt(&r->arena, "while validating, the child process %s; its result was kept",
                                           reply.ended);
        WML_PUSH(&r->warning, how.ptr);
        wml_log(r->cx, WML_LOG_WARN, "%s", how.ptr);
    }
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
}

static uint64_t count_of(const struct wml_npy *a)
{
    uint64_t n;
    wml_dims_count(a->dim, a->rank, &n);
    return n;
}

static void put_row(struct wml_json *j, struct wml_str name, const struct wml_compare *c)
{
    wml_json_begin(j, '{');
    wml_json_key(j, "name");
    wml_json_put_str(j, name);
    wml_json_key(j, "cosine");
    wml_json_put_num(j, c->cosine);
    wml_json_key(j, "max_abs");
    wml_json_put_num(j, c->max_abs);
    wml_json_key(j, "sqnr_db");
    wml_json_put_num(j, c->sqnr_db);
    wml_json_end(j, '}');
}

/* want: the CPU's outputs, or none when the CPU cannot run the source. */
static bool judge(struct wml_compile_run *r, struct wml_compile_unit *u, const struct wml_npys *got,
                  const struct wml_npys *want, struct wml_err *err)
{
    struct wml_buf rows = {0};
    struct wml_json j = {.out = &rows};
    bool ok = true;
    u->worst_cosine = 1;
    wml_json_begin(&j, '[');
    for (size_t i = 0; ok && i < got->v.len; i++) {
        const struct wml_npy *g = &got->v.at[i], *w = want ? wml_npys_find(want, g->name) : NULL;
        uint64_t n = count_of(g);
        struct wml_compare c;
        if (w && count_of(w) != n) {
            ok = wml_fail(err, WML_E_VERIFY, "output '%.*s' has another shape than on the CPU", WML_ARG(g->name));
            break;
        }
        wml_compare((int)(w ? w : g)->dtype, (w ? w : g)->data.ptr, (int)g->dtype, g->data.ptr, n, &c);
        if (!w) {
            for (uint64_t k = 0; k < n && wml_dtype_is_float((int)g->dtype); k++)
                if (!isfinite(wml_dtype_load((int)g->dtype, g->data.ptr, (size_t)k))) c.mismatched++;
        } else {
            put_row(&j, g->name, &c);
        }
        if (c.mismatched)
            ok = wml_fail(err, WML_E_VERIFY, "output '%.*s' holds %llu NaN or infinite values", WML_ARG(g->name),
                          (unsigned long long)c.mismatched);
        else if (w && c.cosine < r->args->min_cosine)
            ok = wml_fail(err, WML_E_VERIFY, "output '%.*s' differs from the CPU result: cosine %.4f, max abs %.3g",
                          WML_ARG(g->name), c.cosine, c.max_abs);
        if (w && c.cosine < u->worst_cosine) u->worst_cosine = c.cosine;
    }
    wml_json_end(&j, ']');
    struct wml_err ignored = {0};
    wml_json_parse(wml_buf_view(&rows), &u->validation, &ignored);
    wml_buf_release(&rows);
    return ok;
}

bool wml_compile_validate(struct wml_compile_run *r, struct wml_compile_unit *u, struct wml_err *err)
{
    struct wml_target_spec cpu = {.ep = "cpu", .device = "cpu"};
    struct wml_npys got = {0}, want = {0};
    struct wml_buf on_target = {0}, on_cpu = {0};
    struct wml_err cpu_err = {0};
    bool ok = false;
    wml_path_join(&on_target, wml_str(r->stage), WML_STR("target.npz"));
    wml_path_join(&on_cpu, wml_str(r->stage), WML_STR("cpu.npz"));
    wml_note_progress(r->cx, "Validating", u->name, 0, 0, NULL);
    if (!infer(r, u->staged, &r->args->target, wml_buf_text(&on_target), !r->args->isolate, err)) goto done;
    if (!wml_npy_load(wml_buf_text(&on_target), &got, err)) goto done;
    u->compared = infer(r, u->model, &cpu, wml_buf_text(&on_cpu), true, &cpu_err) &&
                  wml_npy_load(wml_buf_text(&on_cpu), &want, &cpu_err);
    if (!u->compared)
        u->validation_note = wml_arena_fmt(&r->arena, "runs on the target; not compared, since the CPU cannot run "
                                           "the source: %s", cpu_err.msg).ptr;
    ok = u->validated = judge(r, u, &got, u->compared ? &want : NULL, err);
done:
    if (!ok) {
        wml_wrap(err, "validation of the compiled model failed and nothing was written (--no-validate keeps it)");
        wml_hint(err, "--no-validate keeps the compiled model as it is; -v shows what the EP said");
    }
    wml_npys_release(&got);
    wml_npys_release(&want);
    wml_file_remove(wml_buf_text(&on_target));
    wml_file_remove(wml_buf_text(&on_cpu));
    wml_buf_release(&on_target);
    wml_buf_release(&on_cpu);
    return ok;
}
