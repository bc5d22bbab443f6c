/* One case: original, optimised, compared. */
#include "check.h"

#include <math.h>

#include "base/num.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "onnx/onnx.h"
#include "opset/opset.h"
#include "os/sys.h"
#include "../unit/graph_index.h"

enum { NOISES = 8, MOST_NOISES = 32 }; /* the second where the first is about to condemn */

static void fill(struct wml_rng *rng, const struct gen_input *in, bool wild, struct rc_tensor *t)
{
    static const double strange[] = {0, -0.0, 1e12, -1e12, 1e-38};
    uint64_t n, bytes = 0;
    wml_dims_count(t->dim, t->rank, &n);
    wml_dtype_bytes((int)t->t, n, &bytes);
    t->bytes = (size_t)bytes;
    for (uint64_t i = 0; i < n; i++) {
        double x = wml_dtype_is_float((int)t->t) ? in->low + (in->high - in->low) * wml_rng_unit(rng)
                                                 : (double)wml_rng_range(rng, (int64_t)in->low, (int64_t)in->high + 1);
        if (wild && wml_rng_range(rng, 0, 12) == 0) x = strange[wml_rng_range(rng, 0, WML_COUNT(strange))];
        wml_dtype_store((int)t->t, t->data, (size_t)i, x);
    }
}

/* The first feed has the sizes the graph was made with and leaves defaults alone; the second has neither. */
void rc_feeds(const struct gen *g, struct wml_arena *a, struct rc_case *c)
{
    struct wml_rng rng = {g->rng.state ^ 0x5DEECE66Du};
    c->n_feeds = RC_FEEDS;
    for (size_t k = 0; k < RC_FEEDS; k++) {
        struct rc_tensors *f = &c->feed[k];
        f->at = WML_NEW_ARRAY(a, struct rc_tensor, g->n_inputs + 1);
        for (size_t i = 0; i < g->n_inputs; i++) {
            const struct gen_input *in = &g->input[i];
            if (in->optional && !k) continue;
            struct rc_tensor *t = &f->at[f->n++];
            *t = (struct rc_tensor){.name = wml_arena_cstr(a, wml_str(in->name)), .t = in->t, .rank = in->rank, .is_tensor = true};
            t->dim = WML_NEW_ARRAY(a, int64_t, in->rank + 1);
            size_t room = 16;
            for (size_t d = 0; d < in->rank; d++) {
                t->dim[d] = in->batch[d] && k ? g->batch + 1 : in->dim[d];
                room *= (size_t)t->dim[d] + 1;
            }
            t->data = wml_arena_zalloc(a, room);
            fill(&rng, in, in->wild && k, t);
        }
    }
}

static void bad(struct rc_result *r, enum rc_verdict v, const char *what, const char *why)
{
    if (r->why[0] && why == r->why) {
        char copy[1024];
        snprintf(copy, sizeof copy, "%.1000s", why);
        snprintf(r->why, sizeof r->why, "%s: %s", what, copy);
    } else snprintf(r->why, sizeof r->why, "%s: %.1000s", what, why);
    r->verdict = v;
}

/* What cannot be converted stays as it was. */
static bool convert(const struct rc_env *e, const struct rc_case *c, const struct wml_env *env, struct wml_model **m, struct rc_result *r,
                    struct wml_err *err)
{
    size_t n = 0;
    struct wml_err why = {0};
    if (!c->opset || c->opset == wml_model_opset(*m, "")) return true;
    struct wml_flow_oracle *oracle = env->arg;
    bool ok = env->infer_types(env->arg, *m, &n, &why) && wml_opset_convert(*m, c->opset, &n, &why);
    oracle->open = oracle->nodes = 0;
    r->unsure = ok && n > 0;
    r->converted = ok;
    (void)e;
    if (ok) return true;
    wml_model_free(*m);
    *m = NULL;
    return rc_load(c->bytes, m, err);
}

bool rc_optimise(const struct rc_env *e, const struct rc_case *c, struct wml_str *after, struct rc_result *r, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_flow_oracle oracle = {.cx = e->cx};
    struct wml_env env = wml_flow_env(&oracle);
    env.ort_level = c->level;
    struct wml_passes_opts opts = {.env = &env, .choice = c->choice, .cx = e->cx, .now_ns = wml_now_ns};
    r->pass = WML_NEW_ARRAY(e->arena, struct wml_pass_result, wml_n_passes);
    bool ok = rc_load(c->bytes, &m, err) && wml_model_check(m, err);
    ok = ok && convert(e, c, &env, &m, r, err);
    if (ok) {
        r->nodes_before = m->graph->n_nodes;
        ok = wml_passes_run(&m, &opts, r->pass, err);
    }
    if (ok) {
        check_index(m); /* ends the process */
        struct wml_buf text = {0};
        r->nodes_after = m->graph->n_nodes;
        wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_TYPES, &text);
        r->after = wml_arena_str(e->arena, wml_buf_view(&text));
        wml_buf_release(&text);
        ok = wml_model_check(m, err) && rc_encode(e, m, after, err);
    }
    wml_model_free(m);
    return ok;
}

/* The largest and the smallest of numbers with NaN among them depend on where in a vector register each comes to lie. */
static bool looks_for_extremes(struct wml_str text)
{
    static const char *const op[] = {"ReduceMax", "ReduceMin", "MaxPool", "Max(", "Min(", "TopK", "ArgMax", "ArgMin"};
    bool found = false;
    for (size_t i = 0; i < WML_COUNT(op); i++) found = found || wml_str_has(text, op[i]);
    return found;
}

/* Differences that noise makes as well are rounding. */
static void judge(const struct rc_env *e, const struct rc_case *c, size_t feed, const struct rc_tensors *a, const struct rc_tensors *b,
                  struct rc_result *r)
{
    struct rc_tensors noise[MOST_NOISES];
    struct wml_err err = {0};
    size_t n = 0;
    /* its kernel takes the variance as a difference of squares: twice the digits are lost, and below zero it is NaN */
    struct rc_loose loose = {.may_fail = wml_str_has(r->after, "SkipLayerNormalization"), .nan_is_chance = looks_for_extremes(r->after)};
    float size = loose.may_fail ? 1e-3f : 1e-6f;
    bool same = false;
    for (uint64_t k = 0; k < MOST_NOISES && !same; k++) {
        struct wml_str noisy;
        err = (struct wml_err){0};
        struct rc_noise kind = {size, k % 4 == 3, 1000 * (k + 1)};
        if (rc_noisy(e, c->bytes, kind, &noisy, &err) && rc_run(e, noisy, &c->feed[feed], &noise[n], &err)) n++;
        if (k + 1 >= NOISES) same = n && rc_equal(a, b, noise, n, &loose, r->why, sizeof r->why);
    }
    r->feed = feed;
    if (same) r->verdict = RC_ROUNDING;
    else bad(r, RC_DIFFERS, n ? "another answer" : "another answer, and no run with noise", n ? r->why : err.msg[0] ? err.msg : r->why);
}

static const char *failed_pass(const struct rc_result *r)
{
    for (size_t i = 0; i < wml_n_passes; i++)
        if (r->pass[i].status == WML_PASS_FAILED) return wml_passes[i]->name;
    return NULL;
}

static void mark(const struct rc_env *e, char what)
{
    if (e->phase) e->phase(e->arg, what);
}

/* Both sides are open; runs: the feeds that the original takes. */
static void compare(const struct rc_env *e, const struct rc_case *c, struct wml_session *a, struct wml_session *b, const bool *runs,
                    const struct rc_tensors *before, struct rc_result *r)
{
    struct rc_tensors after = {0};
    struct wml_err err = {0};
    char why[512];
    if (!rc_same_interface(a, b, why, sizeof why)) {
        bad(r, RC_BROKEN, "the interface", why);
        return;
    }
    for (size_t k = 0; k < c->n_feeds; k++) {
        if (!runs[k]) continue;
        r->feed = k;
        if (!rc_run_open(e, b, &c->feed[k], &after, &err)) {
            bad(r, RC_BROKEN, "the result does not run", err.msg);
            return;
        }
        if (c->lossy || rc_equal(&before[k], &after, NULL, 0, &(struct rc_loose){0}, r->why, sizeof r->why)) continue;
        judge(e, c, k, &before[k], &after, r);
        if (r->verdict >= RC_DIFFERS) return;
    }
}

static bool same_again(const struct rc_env *e, const struct rc_case *c, struct wml_str bytes)
{
    struct rc_result ignored = {0};
    struct wml_err err = {0};
    struct wml_str again;
    return rc_optimise(e, c, &again, &ignored, &err) && wml_str_eq(bytes, again);
}

/* What was wrong before may be wrong after. */
static void excuse(const struct rc_env *e, const struct rc_case *c, const bool *runs, struct rc_result *r)
{
    char why[256];
    for (size_t k = 0; k < c->n_feeds; k++) {
        if (!runs[k] || rc_is_true(e, c, k, why, sizeof why)) continue;
        bad(r, RC_REFUSED, "contradicts itself", why);
        return;
    }
}

void rc_check(const struct rc_env *e, const struct rc_case *c, struct rc_result *r)
{
    struct rc_tensors before[RC_FEEDS];
    struct wml_err err = {0}, refusal = {0};
    struct wml_session *a = NULL, *b = NULL;
    struct wml_str bytes;
    bool runs[RC_FEEDS] = {0};
    *r = (struct rc_result){.verdict = RC_SAME};
    mark(e, 'g');
    bool open = rc_open(e, c->bytes, &a, &refusal);
    for (size_t k = 0; open && k < c->n_feeds; k++) runs[k] = rc_run_open(e, a, &c->feed[k], &before[k], k ? &err : &refusal);
    mark(e, 'p');
    err = (struct wml_err){0};
    bool done = rc_optimise(e, c, &bytes, r, &err);
    const char *pass = failed_pass(r);
    bool stable = !done || !c->twice || same_again(e, c, bytes);
    mark(e, 'r');
    if (!stable) bad(r, RC_BROKEN, "a second time", "other bytes came out");
    else if (!done) bad(r, RC_BROKEN, "the passes failed", err.msg);
    else if (!runs[0]) bad(r, RC_REFUSED, "refused", refusal.msg);
    else if (pass) bad(r, RC_BROKEN, pass, r->pass[wml_pass_find(wml_str(pass))].reason);
    else if (!rc_open(e, bytes, &b, &err) && r->converted && (r->unsure || strstr(err.msg, "no kernel")))
        bad(r, RC_REFUSED, "in another opset", err.msg); /* ORT may not have it there; where types are not known winml asks */
    else if (!b && strstr(err.msg, "no kernel for operator Swish")) bad(r, RC_REFUSED, "ORT 1.29", err.msg);
    else if (!b) bad(r, RC_BROKEN, "the result is refused", err.msg);
    else compare(e, c, a, b, runs, before, r);
    if (r->verdict >= RC_DIFFERS && runs[0]) excuse(e, c, runs, r);
    wml_session_close(a);
    wml_session_close(b);
}

void rc_choice_text(const enum wml_pass_choice *choice, struct wml_buf *out)
{
    for (size_t i = 0; i < wml_n_passes; i++) {
        bool on = !wml_passes[i]->refused && (choice[i] == WML_PASS_ON || (choice[i] == WML_PASS_DEFAULT && wml_passes[i]->on));
        if (on) wml_buf_fmt(out, " %s", wml_passes[i]->name);
    }
}
