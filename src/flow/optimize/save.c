/* Saving: into a private folder beside the output, verified there as a file, then renamed. A result that
 * differs never appears under the final name. */
#include <inttypes.h>

#include "flow/optimize/internal.h"
#include "flow/output.h"
#include "flow/ranges.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

/* Without --verify: models up to this size, whose source loads and runs once in this time. */
static const uint64_t VERIFY_AUTO_MAX = UINT64_C(1) << 30, VERIFY_AUTO_MS = 3000;

static void no_verify(struct wml_optimize_run *r, struct wml_str why)
{
    r->verify_note = wml_arena_cstr(&r->arena, why);
}

/* A note, unless the verification was asked for: then it is delivered or refused. */
static bool cannot_verify(struct wml_optimize_run *r, struct wml_str why, enum wml_code code, struct wml_err *err)
{
    no_verify(r, why);
    if (r->args->verify != WML_VERIFY_ON) return true;
    wml_fail(err, code, "%.*s; nothing was written", WML_ARG(why));
    return wml_hint(err, "without --verify and --input-data it is written unverified");
}

bool wml_optimize_compare(struct wml_optimize_run *r, struct wml_model *after, struct wml_err *err)
{
    const struct wml_optimize_args *a = r->args;
    struct wml_feed_spec feed = {.seed = 1, .data = a->verify_data, .shape = a->shape, .n_shapes = a->n_shapes,
                                 .dim = r->dim, .n_dims = r->n_dims, .small = true};
    struct wml_model *before = NULL;
    struct wml_err again = {0};
    uint64_t limit_ms = a->verify == WML_VERIFY_ON ? 0 : VERIFY_AUTO_MS;
    size_t n_seeds = a->verify_data ? 1 : a->verify == WML_VERIFY_ON ? 3 : 2;
    bool ok = wml_onnx_load(a->model, &before, err);
    if (ok) wml_model_ranges(before, &r->arena, &feed);
    if (ok) wml_model_unique_node_names(before);
    wml_verify_release(&r->verify);
    ok = ok && wml_verify_models(r->cx, before, after, &feed, n_seeds, limit_ms, &r->verify, err);
    if (!ok && r->verify.failed == WML_VERIFY_SOURCE_RUN && err->code != WML_E_TIMEOUT && err->code != WML_E_CANCELLED && !a->verify_data) {
        /* Some models need more than one element along open dimensions. */
        feed.small = false;
        ok = wml_verify_models(r->cx, before, after, &feed, n_seeds, limit_ms, &r->verify, &again);
        if (ok || r->verify.failed == WML_VERIFY_RESULT) *err = again;
    }
    wml_model_free(before);
    return ok;
}

/* A pass made operators that the CPU EP has not: the name of the pass, or NULL. */
static const char *not_for_cpu(const struct wml_optimize_run *r)
{
    for (size_t i = 0; i < wml_n_passes; i++)
        if (wml_passes[i]->only_for && r->result[i].applied) return wml_passes[i]->name;
    return NULL;
}

/* The source runs where sizes are left to the defaults: the typed ones are what it cannot run with. */
static bool runs_unfixed(struct wml_optimize_run *r)
{
    struct wml_feed_spec feed = {.seed = 1, .small = true};
    struct wml_model *m = NULL;
    struct wml_verify v = {0};
    bool ok = wml_onnx_load(r->args->model, &m, NULL);
    if (ok) wml_model_ranges(m, &r->arena, &feed);
    if (ok) wml_model_unique_node_names(m);
    bool ran = ok && wml_verify_models(r->cx, m, m, &feed, 1, 0, &v, NULL);
    if (ok && !ran) {
        feed.small = false;
        wml_verify_release(&v);
        ran = wml_verify_models(r->cx, m, m, &feed, 1, 0, &v, NULL);
    }
    wml_verify_release(&v);
    wml_model_free(m);
    return ran;
}

/* What ONNX Runtime said, without whose fault it is. */
static const char *bare(const struct wml_err *why)
{
    static const char front[] = "the source: ";
    return why->msg + (wml_str_starts(wml_str(why->msg), front) ? strlen(front) : 0);
}

static bool bad_shapes(struct wml_optimize_run *r, const struct wml_err *why, struct wml_err *err)
{
    if ((!r->args->n_shapes && !r->args->n_dims) || r->args->verify_data || !runs_unfixed(r)) return false;
    wml_fail(err, WML_E_USAGE, "with the sizes of --input-shape and --input-dim: %.600s; nothing was written", bare(why));
    wml_hint(err, "the model runs with other sizes; --no-verify writes it anyway");
    return true;
}

static bool differs(struct wml_optimize_run *r, struct wml_err *err)
{
    static const struct wml_verify_row none = {.name = "?"};
    const struct wml_verify_row *bad = &none;
    for (size_t i = 0; i < r->verify.row.len && bad == &none; i++)
        if (!r->verify.row.at[i].same) bad = &r->verify.row.at[i];
    const struct wml_compare *c = &bad->c;
    r->differs = true;
    if (!bad->comparable)
        wml_fail(err, WML_E_VERIFY, "the optimized model gives other answers: output '%s' has another type or size; nothing was "
                 "written", bad->name);
    else if (c->mismatched)
        wml_fail(err, WML_E_VERIFY, "the optimized model gives other answers: output '%s' has %" PRIu64 " of %" PRIu64 " values that "
                 "are infinite or no number on one side only; nothing was written", bad->name, c->mismatched, c->n);
    else
        wml_fail(err, WML_E_VERIFY, "the optimized model gives other answers: output '%s' has cosine %.6f, max abs %.3g; nothing was "
                 "written", bad->name, c->cosine, c->max_abs);
    return wml_hint(err, "find the pass with --disable-NAME (see --list-capabilities); --no-verify writes it anyway");
}

/* One of the two could not be run. */
static bool no_answers(struct wml_optimize_run *r, const struct wml_err *why, struct wml_err *err)
{
    enum wml_verify_failed what = r->verify.failed;
    const char *how = "the CPU cannot run the source";
    if (what == WML_VERIFY_NONE || what == WML_VERIFY_RESULT) {
        *err = *why;
        r->differs = true;
        wml_wrap(err, "the optimized model does not run on the CPU, nothing was written");
        return wml_hint(err, "--no-verify writes it anyway");
    }
    if (what == WML_VERIFY_SOURCE_RUN && why->code == WML_E_TIMEOUT) {
        no_verify(r, wml_arena_fmt(&r->arena, "not verified: %.200s; ask with --verify", why->msg));
        return true;
    }
    if (what != WML_VERIFY_RUNTIME && bad_shapes(r, why, err)) return false;
    if (what == WML_VERIFY_RUNTIME) how = "ONNX Runtime is not there";
    if (what == WML_VERIFY_SOURCE_LOAD) {
        how = "ONNX Runtime does not load the source";
        r->load_error = wml_arena_cstr(&r->arena, wml_str(bare(why)));
    }
    return cannot_verify(r, wml_arena_fmt(&r->arena, "not verified: %s (%.300s)", how, bare(why)), why->code, err);
}

/* The file at `path` against the source. True also when it could not be run and was not insisted on. */
static bool verify_file(struct wml_optimize_run *r, const char *path, struct wml_err *err)
{
    struct wml_model *after = NULL;
    struct wml_err why = {0};
    if (not_for_cpu(r)) {
        struct wml_str text = wml_arena_fmt(&r->arena, "not verified: %s makes operators that the CPU EP has not", not_for_cpu(r));
        return cannot_verify(r, text, WML_E_VERIFY, err);
    }
    wml_note_progress(r->cx, "Verifying", r->staged.name, 0, 0, NULL);
    wml_verify_release(&r->verify);
    bool ran = wml_onnx_load(path, &after, &why) && wml_model_check(after, &why) && wml_optimize_compare(r, after, &why);
    wml_model_free(after);
    if (ran && r->verify.passed) return r->verified = true;
    if (ran) return differs(r, err);
    if (why.code == WML_E_CANCELLED) {
        *err = why;
        return false;
    }
    return no_answers(r, &why, err);
}

static bool wants_verify(struct wml_optimize_run *r)
{
    if (r->args->verify == WML_VERIFY_OFF) no_verify(r, WML_STR("not verified: switched off"));
    else if (r->args->verify == WML_VERIFY_AUTO && r->staged.bytes_before > VERIFY_AUTO_MAX)
        no_verify(r, WML_STR("not verified: a model above 1 GiB takes long to run; ask with --verify"));
    else if (r->lossy) no_verify(r, wml_arena_fmt(&r->arena, "not verified: %s changes answers by design", r->lossy));
    else return true;
    return false;
}

/* References hold paths relative to the output, so such a file is written in its place; it is small. */
static bool save_reference(struct wml_optimize_run *r, struct wml_err *err)
{
    struct wml_staged *s = &r->staged;
    struct wml_onnx_save_opts opts = {.weights = WML_WEIGHTS_REFERENCE, .cx = r->cx};
    struct wml_str prefix = wml_arena_fmt(&r->arena, ".%.180s.winml-new-", s->name);
    struct wml_str data = wml_arena_fmt(&r->arena, "%s.data", s->name);
    struct wml_buf path = {0};
    opts.data_name = data.ptr;
    wml_file_temp(s->dir, prefix.ptr, &path);
    const char *file = wml_buf_text(&path);
    bool ok = wml_onnx_save(r->model, file, &opts, &s->saved, err) && (!wants_verify(r) || verify_file(r, file, err)) &&
              wml_file_rename(file, s->output, err);
    s->bytes_after = s->saved.model_bytes + s->saved.data_bytes;
    if (!ok) {
        wml_file_remove(file);
        wml_output_unstage(err, file, s->output);
    }
    wml_buf_release(&path);
    return ok;
}

bool wml_optimize_save(struct wml_optimize_run *r, struct wml_err *err)
{
    struct wml_staged *s = &r->staged;
    wml_note_progress(r->cx, "Saving", s->name, 0, 0, NULL);
    if (r->args->reference_weights) return save_reference(r, err);
    return wml_staged_write(s, r->model, ".winml-optimize-", r->cx, err) && (!wants_verify(r) || verify_file(r, s->path, err)) &&
           wml_staged_publish(s, err);
}
