/* The tools for accuracy (quant/fit.h) at their place between the steps of a method.
 *
 * Errors are compared level by level: a layer's mean error holds what the layers before it did wrong, so those are corrected
 * first. All at once was measured to do more harm than good (each layer corrects its predecessors' errors a second time);
 * comparing each layer on the quantised inputs alone, in one run, helps less. */
#include <math.h>

#include "flow/channels.h"
#include "flow/levels.h"
#include "flow/quantize/internal.h"
#include "flow/ranges.h"
#include "graph/edit.h"
#include "onnx/onnx.h"

struct fit_run {
    struct wml_quantize_run *r;
    struct wml_quantize_step *step;
    struct wml_quant_run *run;
    const struct wml_samples_spec *samples;
};

/* The same values in a copy of the model, found by their nodes, whose names are unique: values change theirs. */
static void find_values(struct wml_model *copy, struct wml_channels *c, size_t n)
{
    struct wml_map by_name = {0};
    for (struct wml_node *node = copy->graph->first; node; node = node->next) wml_map_put(&by_name, node->name, node);
    for (size_t i = 0; i < n; i++) {
        struct wml_node *node = wml_map_get(&by_name, c[i].value->def->name);
        c[i].value = node->out[c[i].value->def_slot];
    }
    wml_map_release(&by_name);
}

/* The model as it is, quantised, and its channels in it; *q in its arena. */
static bool quantised(struct fit_run *f, const struct wml_channels *c, size_t n, struct wml_model **out, struct wml_channels **q, struct wml_err *err)
{
    struct wml_model *copy = wml_onnx_clone(f->r->model, err);
    struct wml_quant_result unheard = {0};
    struct wml_quant_run run = *f->run;
    run.model = copy;
    run.result = &unheard;
    if (!copy || !f->step->method->apply(&run, err)) {
        wml_model_free(copy);
        return false;
    }
    *q = WML_NEW_ARRAY(&copy->arena, struct wml_channels, n);
    memcpy(*q, c, n * sizeof **q);
    find_values(copy, *q, n);
    wml_channels_start(copy, *q, n);
    *out = copy;
    return true;
}

/* Takes what the quantised model says off the sums of c, corrects the layers by that, and hands the corrections on. */
static bool one_level(struct fit_run *f, const struct wml_fit *fit, struct wml_levels *l, size_t level, struct wml_channels *c, size_t n,
                      const struct wml_channels *q, size_t *count, struct wml_err *err)
{
    struct wml_channels *some = WML_NEW_ARRAY(&f->r->model->arena, struct wml_channels, n);
    size_t k = 0, done = 0;
    bool ok = wml_levels_measure(l, level, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (wml_levels_of(l, i) != level || q[i].count != c[i].count || c[i].count <= 0) continue;
        bool finite = true;
        double *error = WML_NEW_ARRAY(&f->r->model->arena, double, c[i].n);
        for (size_t j = 0; j < c[i].n; j++) {
            c[i].sum[j] -= q[i].sum[j];
            error[j] = c[i].sum[j] / c[i].count;
            finite = finite && isfinite(error[j]);
        }
        if (!finite) continue;
        some[k++] = c[i];
        ok = wml_levels_correct(l, i, error, err);
    }
    ok = ok && fit->apply(f->run, some, k, &done, err);
    *count += done;
    return ok;
}

static bool by_levels(struct fit_run *f, const struct wml_fit *fit, struct wml_channels *c, size_t n, size_t *count, struct wml_err *err)
{
    struct wml_levels *l = NULL;
    struct wml_model *m;
    struct wml_channels *q;
    struct wml_samples_spec samples = *f->samples;
    wml_model_ranges(f->r->model, &f->r->arena, &samples.feed);
    bool ok = quantised(f, c, n, &m, &q, err) && wml_levels_open(f->r->cx, m, q, n, &samples, &l, err);
    for (size_t level = 1; ok && level <= wml_levels_count(l); level++) {
        wml_note_progress(f->r->cx, fit->doing, NULL, level - 1, wml_levels_count(l), "levels");
        ok = one_level(f, fit, l, level, c, n, q, count, err);
    }
    wml_levels_close(l);
    return ok;
}

static bool run_one(struct fit_run *f, const struct wml_fit *fit, struct wml_err *err)
{
    struct wml_fit_values want = {0};
    struct wml_quantize_run *r = f->r;
    size_t count = 0;
    bool ok = !fit->wanted || fit->wanted(f->run, &want, err), asks = want.v.len > 0;
    ok = ok && (!asks || wml_channels_measure(r->cx, r->model, want.v.at, want.v.len, f->samples, err));
    wml_note_progress(r->cx, fit->doing, NULL, 0, 0, NULL);
    if (ok && (asks || !fit->wanted))
        ok = (fit->needs == WML_FIT_ERRORS ? by_levels(f, fit, want.v.at, want.v.len, &count, err)
                                           : fit->apply(f->run, want.v.at, want.v.len, &count, err));
    if (!ok) return wml_wrap(err, "%s", fit->name);
    struct wml_quant_count row = {fit->name, fit->what, count};
    WML_PUSH_IN(&r->model->arena, &f->run->result->fit, row);
    if (!count) wml_quantize_warn(r, "%s: the model has nothing for it", fit->option);
    return true;
}

bool wml_quantize_fit(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, const struct wml_samples_spec *samples,
                      bool ranges, struct wml_err *err)
{
    struct fit_run f = {.r = r, .step = s, .run = run, .samples = samples};
    const struct wml_fit *fit;
    for (size_t i = 0; (fit = wml_fit_at(i)); i++)
        if (fit->asked(run->opts) && ranges == (fit->needs == WML_FIT_ERRORS) && !run_one(&f, fit, err)) return false;
    return true;
}
