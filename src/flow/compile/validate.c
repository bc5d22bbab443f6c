/* Validation: the compiled model runs once on its target, in a child; the source runs once on the CPU on
 * the same seeded inputs; every output is compared. NaN and infinities that the CPU does not have fail.
 *
 * Integers can be so coarse that one step of rounding here and there changes the answers of a whole model: every operator
 * is right to a step, and the outputs are far apart nevertheless. A second opinion tells: the CPU computes the source again
 * with ORT's optimisations, which round elsewhere. Where the two CPU answers are as far apart, the target is not to blame. */
#include <math.h>

#include "base/num.h"
#include "flow/compare.h"
#include "flow/compile_steps.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"
#include "text/npy.h"
#include "worker/feed.h"
#include "worker/target.h"

/* Beyond this share of the noise that the CPU's own rounding makes, the target is to blame: twice its amplitude. */
static const double NOISE_MAX = 4;

static void write_request(const char *model, const struct wml_target_spec *spec, const char *outputs, enum wml_opt_level level,
                          const struct wml_feed_spec *ranges, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    struct wml_feed_spec feed = {.seed = 1, .small = true, .range = ranges->range, .n_ranges = ranges->n_ranges};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_path(&j, model);
    wml_target_spec_put(&j, spec);
    wml_json_key(&j, "level");
    wml_json_put_cstr(&j, wml_opt_level_name(level));
    wml_json_key(&j, "feed");
    wml_feed_spec_put(&j, &feed);
    wml_json_key(&j, "outputs");
    wml_json_put_cstr(&j, outputs);
    wml_json_end(&j, '}');
}

static bool infer(struct wml_compile_run *r, const char *model, const struct wml_target_spec *spec,
                  const char *outputs, enum wml_opt_level level, bool in_process, struct wml_err *err)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply;
    write_request(model, spec, outputs, level, &r->ranges, &request);
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

struct answers {
    struct wml_npys got, want, again; /* of the target, of the CPU, of the CPU with ORT's optimisations */
    bool compared, asked_again;
};

static const struct wml_npy *second_opinion(struct wml_compile_run *r, const struct wml_compile_unit *u, struct answers *a, struct wml_str name)
{
    struct wml_target_spec cpu = {.ep = "cpu", .device = "cpu"};
    struct wml_buf path = {0};
    struct wml_err ignored = {0};
    wml_path_join(&path, wml_str(r->stage), WML_STR("again.npz"));
    if (!a->asked_again && infer(r, u->model, &cpu, wml_buf_text(&path), WML_LEVEL_ALL, false, &ignored))
        wml_npy_load(wml_buf_text(&path), &a->again, &ignored);
    a->asked_again = true;
    wml_file_remove(wml_buf_text(&path));
    wml_buf_release(&path);
    return wml_npys_find(&a->again, name);
}

/* Whether the CPU itself is no surer of the output than c says of the target: then a note says so. */
static bool is_coarse(struct wml_compile_run *r, struct wml_compile_unit *u, struct answers *a, const struct wml_npy *want, const struct wml_compare *c)
{
    const struct wml_npy *again = second_opinion(r, u, a, want->name);
    struct wml_compare cpu;
    if (!again || count_of(again) != count_of(want)) return false;
    wml_compare((int)want->dtype, want->data.ptr, (int)again->dtype, again->data.ptr, count_of(want), &cpu);
    if (cpu.mismatched || !(cpu.dd > 0) || c->dd > NOISE_MAX * cpu.dd) return false;
    struct wml_str note = wml_arena_fmt(&r->arena, "output '%.*s' has a cosine of %.4f with the CPU result, but so coarse are the integers of this "
                                        "model that the CPU's own fast kernels have %.4f with its plain ones: single steps of rounding change the "
                                        "answers, and the target is not to blame. 16-bit activations help: quantize with -p w8a16 or --auto-mixed",
                                        WML_ARG(want->name), c->cosine, cpu.cosine);
    u->validation_note = note.ptr;
    u->cpu_cosine = cpu.cosine;
    WML_PUSH(&r->warning, note.ptr);
    return true;
}

/* The CPU's outputs are there unless it cannot run the source. */
static bool judge(struct wml_compile_run *r, struct wml_compile_unit *u, struct answers *a, struct wml_err *err)
{
    struct wml_buf rows = {0};
    struct wml_json j = {.out = &rows};
    const struct wml_npys *got = &a->got, *want = a->compared ? &a->want : NULL;
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
        else if (w && c.cosine < r->args->min_cosine && (r->args->min_cosine_typed || !is_coarse(r, u, a, w, &c)))
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
    struct answers a = {0};
    struct wml_buf on_target = {0}, on_cpu = {0};
    struct wml_err cpu_err = {0};
    bool ok = false;
    wml_path_join(&on_target, wml_str(r->stage), WML_STR("target.npz"));
    wml_path_join(&on_cpu, wml_str(r->stage), WML_STR("cpu.npz"));
    wml_note_progress(r->cx, "Validating", u->name, 0, 0, NULL);
    if (!infer(r, u->staged, &r->args->target, wml_buf_text(&on_target), WML_LEVEL_DISABLED, !r->args->isolate, err)) goto done;
    if (!wml_npy_load(wml_buf_text(&on_target), &a.got, err)) goto done;
    a.compared = u->compared = infer(r, u->model, &cpu, wml_buf_text(&on_cpu), WML_LEVEL_DISABLED, true, &cpu_err) &&
                               wml_npy_load(wml_buf_text(&on_cpu), &a.want, &cpu_err);
    if (!u->compared)
        u->validation_note = wml_arena_fmt(&r->arena, "runs on the target; not compared, since the CPU cannot run "
                                           "the source: %s", cpu_err.msg).ptr;
    ok = u->validated = judge(r, u, &a, err);
done:
    if (!ok) {
        wml_wrap(err, "validation of the compiled model failed and nothing was written (--no-validate keeps it)");
        wml_hint(err, "--no-validate keeps the compiled model as it is; -v shows what the EP said");
    }
    wml_npys_release(&a.got);
    wml_npys_release(&a.want);
    wml_npys_release(&a.again);
    wml_file_remove(wml_buf_text(&on_target));
    wml_file_remove(wml_buf_text(&on_cpu));
    wml_buf_release(&on_target);
    wml_buf_release(&on_cpu);
    return ok;
}
