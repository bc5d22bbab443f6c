/* The float model and the quantised one, output by output. One after the other, so that the weights of only one are in memory:
 * the answers of the first are kept, in rounds of as many samples as need little room. Samples go side by side; what is
 * summed up is, in their order. Sums run over all samples, so that one of small values counts little. */
#include "flow/accuracy_internal.h"

#include "base/num.h"
#include "flow/oracle.h"
#include "flow/watch.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/crew.h"
#include "os/sys.h"
#include "os/thread.h"

static const uint64_t ROUND_BYTES = UINT64_C(64) << 20;

struct run {
    struct wml_ctx *cx;
    const char *before, *after;
    const struct wml_samples_spec *spec;
    uint64_t start, budget_ms;
    struct wml_samples *samples;
    size_t n, n_outputs;
    unsigned workers;
    struct wml_accuracy *out;
    /* one round */
    struct wml_session *session;
    size_t from;
    struct wml_tensor_view *answer; /* of `before`, on the heap: by sample of the round, by output */
    struct wml_accuracy_row *row;   /* the same of both models */
    struct wml_mutex *lock;         /* of what follows */
    size_t end;                     /* number of the samples that are done, of the round */
    uint64_t bytes;                 /* of the answers */
    size_t begun;                   /* runs, for progress */
    size_t failed;                  /* the first sample that could not be done, SIZE_MAX: none; out->failed says why */
};

/* Sizes that stay open are for wml_flow_workers to judge. */
static void count_workers(struct run *r, struct wml_model *m)
{
    struct wml_flow_oracle oracle = {.cx = r->cx};
    struct wml_err open = {0};
    size_t n_set;
    (void)wml_flow_env(&oracle).infer_types(&oracle, m, &n_set, &open);
    wml_flow_oracle_release(&oracle);
    r->workers = wml_flow_workers(m, r->spec->count);
}

/* Few runs are not worth prepared copies of the weights: they stay in the file's map. */
static bool open_before(struct run *r, struct wml_err *err)
{
    static const struct wml_pair config[] = {{"session.disable_prepacking", "1"}};
    struct wml_model *m = NULL;
    if (!wml_onnx_load(r->before, &m, err)) return false;
    count_workers(r, m);
    struct wml_session_opts opts = {.threads = wml_cpu_count() - r->workers + 1, .no_memory_plan = true, .config = config, .n_config = 1};
    bool ok = wml_flow_session(r->cx, m, NULL, &opts, &r->session, err);
    wml_model_free(m);
    return ok;
}

/* The file itself: what was written is tried, not what was meant. */
static bool open_after(struct run *r, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_ort *ort;
    struct wml_model_source source = {.path = r->after};
    size_t n;
    if (!wml_onnx_load(r->after, &m, err)) return false;
    count_workers(r, m);
    wml_model_free(m);
    struct wml_session_opts opts = {.threads = wml_cpu_count() - r->workers + 1, .no_memory_plan = true};
    if (!wml_ort_open(r->cx, &ort, err) || !wml_session_open(ort, &source, &opts, &r->session, err)) return false;
    wml_session_outputs(r->session, &n);
    return n == r->n_outputs || wml_fail(err, WML_E_VERIFY, "the result has %zu outputs, the source %zu", n, r->n_outputs);
}

static bool open_samples(struct run *r, struct wml_err *err)
{
    size_t n_inputs = 0;
    const struct wml_io *input = wml_session_inputs(r->session, &n_inputs), *output = wml_session_outputs(r->session, &r->n_outputs);
    wml_accuracy_start(r->out, output, r->n_outputs);
    if (!wml_samples_open(r->spec, input, n_inputs, &r->samples, err)) return wml_accuracy_fail(r->out, WML_ACCURACY_SAMPLES, err);
    r->n = wml_samples_count(r->samples);
    return true;
}

/* Of several that fail at once, the first sample is told. */
static bool fail(struct run *r, size_t i, enum wml_accuracy_failed what, struct wml_err *err)
{
    struct wml_accuracy told = {0};
    wml_accuracy_fail(&told, what, err);
    wml_mutex_lock(r->lock);
    if (i <= r->failed) {
        r->failed = i;
        r->out->failed = what;
    }
    wml_mutex_unlock(r->lock);
    return false;
}

/* Whether sample i of the round shall run; if not, the round ends before it. */
static bool enter(struct run *r, size_t i, bool first)
{
    wml_mutex_lock(r->lock);
    uint64_t budget = r->budget_ms * 1000000 / (first ? 2 : 1); /* the second half is for the result */
    bool late = budget && wml_now_ns() - r->start > budget, full = first && r->bytes > ROUND_BYTES;
    if (i + r->from && (late || (i && full))) r->end = WML_MIN(r->end, i);
    bool go = i < r->end;
    if (go) wml_note_progress(r->cx, "Comparing", NULL, r->begun++, 2 * r->n, "runs");
    wml_mutex_unlock(r->lock);
    return go;
}

static bool run_one(struct run *r, size_t i, enum wml_accuracy_failed side, uint64_t limit_ms, struct wml_run **run, struct wml_err *err)
{
    struct wml_feed feed = {0}, fits = {0};
    bool made = wml_check_cancel(r->cx, err) && wml_samples_make(r->samples, r->from + i, &feed, err);
    bool ok = made && wml_accuracy_convert(r->session, &feed, &fits, err) &&
              wml_run_new(r->session, fits.view.at, fits.view.len, run, err) && wml_run_watched(*run, limit_ms, err);
    wml_feed_release(&fits);
    wml_feed_release(&feed);
    return ok || fail(r, i, made ? side : WML_ACCURACY_SAMPLES, err);
}

static bool answer(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    struct run *r = arg;
    struct wml_run *run = NULL;
    (void)worker;
    if (!enter(r, i, true)) return true;
    bool ok = run_one(r, i, WML_ACCURACY_SOURCE_RUN, r->from + i < r->workers ? r->budget_ms : 0, &run, err);
    for (size_t k = 0; ok && k < r->n_outputs; k++) {
        struct wml_tensor_view v;
        ok = wml_run_output(run, k, &v, err);
        if (!ok) break;
        r->answer[i * r->n_outputs + k] = wml_view_copy(&v);
        wml_mutex_lock(r->lock);
        r->bytes += v.bytes;
        wml_mutex_unlock(r->lock);
    }
    wml_run_free(run);
    return ok;
}

static bool check(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    struct run *r = arg;
    struct wml_run *run = NULL;
    (void)worker;
    if (!enter(r, i, false)) return true;
    bool ok = run_one(r, i, WML_ACCURACY_RESULT, 0, &run, err);
    for (size_t k = 0; ok && k < r->n_outputs; k++) {
        struct wml_tensor_view v;
        ok = wml_run_output(run, k, &v, err);
        if (ok) wml_accuracy_add(&r->row[i * r->n_outputs + k], &r->answer[i * r->n_outputs + k], &v);
    }
    wml_run_free(run);
    return ok;
}

static void sum_up(struct run *r)
{
    for (size_t i = 0; i < r->end; i++)
        for (size_t k = 0; k < r->n_outputs; k++) {
            struct wml_accuracy_row *all = &r->out->row.at[k];
            const struct wml_accuracy_row *one = &r->row[i * r->n_outputs + k];
            all->comparable = all->comparable && one->comparable;
            if (all->comparable) wml_compare_add(&all->c, &one->c);
        }
    r->out->samples += r->end;
}

static bool run_round(struct run *r, struct wml_err *err)
{
    size_t n = r->n - r->from, cells = n * r->n_outputs;
    r->answer = wml_xcalloc(cells + 1, sizeof *r->answer);
    r->row = wml_xcalloc(cells + 1, sizeof *r->row);
    for (size_t i = 0; i < cells; i++) r->row[i] = (struct wml_accuracy_row){.comparable = true, .c = {.equal = true}};
    r->bytes = 0;
    r->end = n;
    bool ok = wml_crew_run(r->workers, n, answer, r, err);
    wml_session_close(r->session);
    r->session = NULL;
    ok = ok && (open_after(r, err) || wml_accuracy_fail(r->out, WML_ACCURACY_RESULT, err)) && wml_crew_run(r->workers, r->end, check, r, err);
    wml_session_close(r->session);
    r->session = NULL;
    if (ok) sum_up(r);
    for (size_t i = 0; i < cells; i++) wml_view_free(&r->answer[i]);
    free(r->answer);
    free(r->row);
    return ok;
}

static bool run_rounds(struct run *r, struct wml_err *err)
{
    if (!open_before(r, err)) return wml_accuracy_fail(r->out, WML_ACCURACY_SOURCE_LOAD, err);
    if (!open_samples(r, err)) return false;
    for (; r->from < r->n; r->from += r->end) {
        if (!r->session && !open_before(r, err)) return wml_accuracy_fail(r->out, WML_ACCURACY_SOURCE_LOAD, err);
        if (!run_round(r, err)) return false;
        if (!r->end || (r->budget_ms && wml_now_ns() - r->start > r->budget_ms * 1000000)) break;
    }
    return true;
}

bool wml_accuracy_measure(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples,
                          uint64_t budget_ms, struct wml_accuracy *out, struct wml_err *err)
{
    struct run r = {.cx = cx, .before = before, .after = after, .spec = samples, .start = wml_now_ns(), .budget_ms = budget_ms, .out = out,
                    .lock = wml_mutex_new(), .failed = SIZE_MAX};
    *out = (struct wml_accuracy){0};
    bool ok = run_rounds(&r, err);
    wml_session_close(r.session);
    wml_samples_close(r.samples);
    wml_mutex_free(r.lock);
    if (!ok) wml_accuracy_give_up(out);
    return ok;
}
