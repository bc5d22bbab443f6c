/* The search for the fewest tensors of 16 bits: a list by what was measured, then bisection, where every step is a model that
 * is quantised and run. */
#include "flow/quantize/mixed_internal.h"

#include <math.h>

#include "flow/ranges.h"
#include "flow/watch.h"
#include "graph/edit.h"
#include "onnx/onnx.h"

static const uint64_t IN_MEMORY = UINT64_C(512) << 20;

struct trial { /* one model, with the first `raised` parts in 16 bits */
    size_t raised;
    double sqnr_db;
    struct wml_model *model;
    struct wml_quant_result result;
    struct wml_mixed_count count;
};

static void drop(struct trial *t)
{
    wml_model_free(t->model);
    t->model = NULL;
}

/* A model is run from memory; one whose weights are large from a file. */
static bool open_trial(struct wml_mixed_search *x, struct trial *t, struct wml_session **out, struct wml_err *err)
{
    struct wml_quantize_run *r = x->r;
    struct wml_model *written = NULL;
    if (wml_flow_weight_bytes(t->model) <= IN_MEMORY) return wml_flow_session(r->cx, t->model, NULL, &(struct wml_session_opts){0}, out, err);
    bool ok = wml_staged_write(&r->staged, t->model, ".winml-quantize-", r->cx, err) && wml_onnx_load(r->staged.path, &written, err) &&
              wml_flow_session(r->cx, written, NULL, &(struct wml_session_opts){0}, out, err);
    wml_model_free(written);
    return ok;
}

/* The worst ratio of the outputs that can be judged; those that are 0 in all samples cannot. */
static bool judge(struct wml_mixed_search *x, struct trial *t, struct wml_err *err)
{
    struct wml_accuracy accuracy = {0};
    struct wml_session *session = NULL;
    size_t judged = 0;
    bool ok = (open_trial(x, t, &session, err) || wml_wrap(err, "the result")) && wml_answers_compare(x->answers, session, &accuracy, err);
    wml_session_close(session);
    t->sqnr_db = INFINITY;
    for (size_t i = 0; i < accuracy.row.len; i++) {
        const struct wml_accuracy_row *row = &accuracy.row.at[i];
        bool bad = row->c.not_finite || isnan(row->c.sqnr_db);
        if (!row->comparable || (row->c.aa == 0 && !bad)) continue;
        judged++;
        t->sqnr_db = fmin(t->sqnr_db, bad ? -INFINITY : row->c.sqnr_db);
    }
    wml_accuracy_release(&accuracy);
    if (judged || !ok) return ok;
    wml_fail(err, WML_E_UNSUPPORTED, "no output has float values of the same sizes before and after that are not 0: there is nothing to measure the goal by");
    return wml_hint(err, "leave out --auto-mixed and --target-sqnr; --overrides gives single tensors 16 bits");
}

/* Tools that compare with the quantised model (bias correction), on the types that t has. */
static bool correct(struct wml_mixed_search *x, struct trial *t, struct wml_quant_run *run, struct wml_err *err)
{
    struct wml_quantize_run *r = x->r;
    size_t warnings = r->warning.len;
    r->model = t->model;
    bool ok = wml_quantize_fit(r, x->s, run, &x->samples, true, err);
    r->model = x->base;
    if (t->raised) r->warning.len = warnings; /* said of the plain model */
    return ok;
}

static bool make(struct wml_mixed_search *x, size_t n, bool corrected, struct trial *t, struct wml_err *err)
{
    struct wml_quant_opts opts = x->s->opts;
    struct wml_quant_run run = *x->run;
    *t = (struct trial){.raised = n, .result = x->s->result, .model = wml_onnx_clone(x->base, err)};
    t->result.note.cap = t->result.note.len; /* what is added goes to new memory */
    t->result.fit.cap = t->result.fit.len;
    run.model = t->model;
    run.opts = &opts;
    run.result = &t->result;
    if (!t->model) return false;
    if (n) opts.overrides = wml_mixed_raise(x, t->model, n, &t->count);
    if (corrected && !correct(x, t, &run, err)) return false;
    wml_note_progress(x->r->cx, "Quantization", x->r->staged.name, 0, 0, NULL);
    return x->s->method->apply(&run, err);
}

/* Makes and runs one model. */
static bool run_trial(struct wml_mixed_search *x, size_t n, bool corrected, struct trial *t, struct wml_err *err)
{
    bool ok = make(x, n, corrected, t, err) && judge(x, t, err);
    struct wml_mixed_step step = {n, t->sqnr_db};
    if (ok) WML_PUSH_IN(&x->out->arena, &x->out->step, step);
    else drop(t);
    return ok || (n ? wml_wrap(err, "%zu of %zu tensors raised", n, x->part.len) : false);
}

/* Of two that reach the goal the one with less stays in *best, else the better one. */
static bool probe(struct wml_mixed_search *x, size_t n, struct trial *best, bool *reached, struct wml_err *err)
{
    struct trial t;
    double goal = x->out->goal_db;
    if (!run_trial(x, n, false, &t, err)) return false;
    *reached = t.sqnr_db >= goal;
    bool had = best->model && best->sqnr_db >= goal;
    bool better = !best->model || (*reached ? !had || n < best->raised : !had && t.sqnr_db > best->sqnr_db);
    struct trial *worse = better ? best : &t;
    drop(worse);
    if (better) *best = t;
    return true;
}

/* Corrections are made for the types that were found: they stay when they help. */
static bool correct_best(struct wml_mixed_search *x, struct trial *best, struct wml_err *err)
{
    struct trial t;
    if (!run_trial(x, best->raised, true, &t, err)) return false;
    bool helps = t.sqnr_db > best->sqnr_db;
    drop(helps ? best : &t);
    if (helps) *best = t;
    else wml_quantize_warn(x->r, "the mixed model is better without the corrections of biases (%.2f dB with them): left out", t.sqnr_db);
    return true;
}

/* fails: so many are too few; works: so many do. */
static bool bisect(struct wml_mixed_search *x, size_t fails, size_t works, struct trial *best, struct wml_err *err)
{
    while (works - fails > 1) {
        size_t n = fails + (works - fails) / 2;
        bool reached;
        if (!probe(x, n, best, &reached, err)) return false;
        *(reached ? &works : &fails) = n;
    }
    return true;
}

static bool search(struct wml_mixed_search *x, struct trial *best, struct wml_err *err)
{
    size_t all = x->part.len, fails = 0, n = WML_MAX(x->predicted, (size_t)1), step = WML_MAX(all / 32, (size_t)1);
    bool reached = false, first = true;
    while (fails < all) { /* from where the sum of noises says, upwards in growing steps */
        n = WML_MIN(n, all);
        if (!probe(x, n, best, &reached, err)) return false;
        if (reached) break;
        fails = n;
        n += step;
        step *= 2;
        first = false;
    }
    if (!reached) return true;
    for (step = WML_MAX(all / 32, (size_t)1); first && n > fails + 1; step *= 2) { /* and downwards */
        size_t less = n - 1 > step ? n - step : 1;
        bool still;
        if (!probe(x, less, best, &still, err)) return false;
        if (!still) {
            fails = less;
            break;
        }
        n = less;
    }
    return bisect(x, fails, n, best, err);
}

static void note_weighed(struct wml_mixed_search *x)
{
    struct wml_mixed *out = x->out;
    for (size_t i = 0; i < x->part.len; i++) {
        const struct wml_mixed_part *p = &x->part.at[i];
        struct wml_mixed_raised *row = WML_NEW(&out->arena, struct wml_mixed_raised);
        *row = (struct wml_mixed_raised){.kind = p->constant ? "weight" : "activation", .noise_db = p->score > 0 ? -10 * log10(p->score) : INFINITY};
        row->name = wml_arena_cstr(&out->arena, p->member.at[0].value->name);
        for (size_t k = 0; k < p->member.len; k++) wml_map_put(&out->weighed, wml_arena_str(&out->arena, p->member.at[k].value->name), row);
    }
}

static void note_raised(struct wml_mixed_search *x, const struct trial *best)
{
    for (size_t i = 0; i < best->raised; i++) {
        const struct wml_mixed_raised *row = wml_map_get(&x->out->weighed, x->part.at[i].member.at[0].value->name);
        WML_PUSH_IN(&x->out->arena, &x->out->raised, *row);
    }
}

/* best: the plain model. */
static bool raise_some(struct wml_mixed_search *x, bool corrected, struct trial *best, struct wml_err *err)
{
    x->plain = best->model;
    wml_mixed_find(x);
    x->out->parts = x->part.len;
    if (!x->part.len) return true;
    if (!wml_mixed_weigh(x, err)) return false;
    x->plain = NULL; /* it may go */
    wml_mixed_order(x);
    note_weighed(x);
    if (!search(x, best, err) || (corrected && best->raised && !correct_best(x, best, err))) return false;
    note_raised(x, best);
    return true;
}

static bool find(struct wml_mixed_search *x, struct trial *best, struct wml_err *err)
{
    bool corrected = x->s->opts.bias_correction;
    if (!run_trial(x, 0, corrected, best, err)) return false;
    x->out->plain_db = best->sqnr_db;
    return best->sqnr_db >= x->out->goal_db || raise_some(x, corrected, best, err);
}

bool wml_quantize_mix(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct wml_mixed_search x = {.r = r, .s = s, .run = run, .base = r->model, .arena = &arena, .out = &r->mixed};
    struct trial best = {0};
    x.samples = wml_quantize_samples(r);
    x.samples.cx = NULL; /* what there is to tell, calibration has told */
    wml_model_ranges(x.base, &r->arena, &x.samples.feed);
    r->mixed.asked = true;
    r->mixed.goal_db = r->args->goal_db;
    bool ok = wml_answers_open(r->cx, r->args->model, &x.samples, &x.answers, err) && find(&x, &best, err);
    if (ok) {
        wml_quantize_adopt(r, best.model);
        s->result = best.result;
        r->mixed.sqnr_db = best.sqnr_db;
        r->mixed.reached = best.sqnr_db >= r->mixed.goal_db;
        r->mixed.nodes = best.count.all_nodes;
        r->mixed.wide_nodes = best.count.nodes;
        r->mixed.activations = best.count.activations;
        r->mixed.constants = best.count.constants;
        if (!r->mixed.reached)
            wml_quantize_warn(r, "the goal of %.4g dB was not reached: the best is %.2f dB, with %zu of %zu tensors raised. Try --per-channel, "
                                 "--method mse, --equalize, --bias-correction, more or other samples, or a lower --target-sqnr",
                              r->mixed.goal_db, r->mixed.sqnr_db, best.raised, x.part.len);
    } else {
        drop(&best);
    }
    wml_answers_close(x.answers);
    wml_map_release(&x.by_name);
    wml_arena_release(&arena);
    return ok;
}

void wml_mixed_release(struct wml_mixed *m)
{
    wml_map_release(&m->weighed);
    wml_arena_release(&m->arena);
    *m = (struct wml_mixed){0};
}
