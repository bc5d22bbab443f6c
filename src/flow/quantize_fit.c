/* The tools for accuracy (quant/fit.h) at their place between the steps of a method.
 *
 * Errors are compared level by level: a layer's mean error holds what the layers before it did wrong, so those are corrected
 * first, and the model is quantised anew for the next level. All at once was measured to do more harm than good (each layer
 * corrects its predecessors' errors a second time); comparing each layer on the quantised inputs alone, in one run, helps less. */
#include "flow/channels.h"
#include "flow/quantize_internal.h"
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

static bool is_dead(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    return true;
}

/* Cuts off what the values do not need; inputs stay, so that samples stay the same. */
static void keep_only(struct wml_graph *g, const struct wml_channels *c, size_t n)
{
    struct wml_node *previous;
    while (g->outputs.len) wml_graph_remove_output(g, g->outputs.len - 1);
    for (size_t i = 0; i < n; i++) wml_graph_add_output(g, c[i].value);
    for (struct wml_node *node = g->last; node; node = previous) {
        previous = node->prev;
        if (is_dead(node)) wml_node_remove(node);
    }
}

/* Takes what the model says when it is quantised off the sums of c. */
static bool compare(struct fit_run *f, struct wml_channels *c, size_t n, struct wml_err *err)
{
    struct wml_model *m = f->r->model, *copy = wml_onnx_clone(m, err);
    struct wml_quant_result unheard = {0};
    struct wml_quant_run run = *f->run;
    struct wml_channels *q = WML_NEW_ARRAY(&m->arena, struct wml_channels, n);
    if (!copy) return false;
    run.model = copy;
    run.result = &unheard;
    memcpy(q, c, n * sizeof *q);
    bool ok = f->step->method->apply(&run, err);
    if (ok) {
        find_values(copy, q, n);
        keep_only(copy->graph, q, n);
        wml_model_drop_unused(copy);
        ok = wml_channels_measure(f->r->cx, copy, q, n, f->samples, err);
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (q[i].count != c[i].count) c[i].count = 0;
        for (size_t k = 0; k < c[i].n; k++) c[i].sum[k] -= q[i].sum[k];
    }
    wml_model_free(copy);
    return ok;
}

/* How many of the values lie behind each other up to each of them, itself included: in its mark. Returns the most. */
static uint64_t find_levels(struct wml_graph *g, const struct wml_channels *c, size_t n)
{
    uint64_t most = 0;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    for (size_t i = 0; i < n; i++) c[i].value->mark = 1;
    for (struct wml_node *node = g->first; node; node = node->next) {
        uint64_t level = 0;
        for (size_t i = 0; i < node->n_in; i++)
            if (node->in[i] && node->in[i]->graph == g) level = WML_MAX(level, node->in[i]->mark);
        for (size_t i = 0; i < node->n_out; i++) {
            if (node->out[i]) node->out[i]->mark += level;
            if (node->out[i]) most = WML_MAX(most, node->out[i]->mark);
        }
    }
    return most;
}

static bool by_levels(struct fit_run *f, const struct wml_fit *fit, struct wml_channels *c, size_t n, size_t *count, struct wml_err *err)
{
    struct wml_arena *arena = &f->r->model->arena;
    uint64_t levels = find_levels(f->r->model->graph, c, n), *level = WML_NEW_ARRAY(arena, uint64_t, n);
    struct wml_channels *some = WML_NEW_ARRAY(arena, struct wml_channels, n);
    for (size_t i = 0; i < n; i++) level[i] = c[i].value->mark;
    for (uint64_t now = 1; now <= levels; now++) {
        size_t k = 0, done = 0;
        for (size_t i = 0; i < n; i++)
            if (level[i] == now) some[k++] = c[i];
        wml_note_progress(f->r->cx, "Accuracy", fit->name, now - 1, levels, "levels");
        if (!compare(f, some, k, err) || !fit->apply(f->run, some, k, &done, err)) return false;
        *count += done;
    }
    return true;
}

static bool run_one(struct fit_run *f, const struct wml_fit *fit, struct wml_err *err)
{
    struct wml_fit_values want = {0};
    struct wml_quantize_run *r = f->r;
    size_t count = 0;
    wml_note_progress(r->cx, "Accuracy", fit->name, 0, 0, NULL);
    bool ok = !fit->wanted || fit->wanted(f->run, &want, err), asks = want.v.len > 0;
    ok = ok && (!asks || wml_channels_measure(r->cx, r->model, want.v.at, want.v.len, f->samples, err));
    if (ok && (asks || !fit->wanted))
        ok = (fit->needs == WML_FIT_ERRORS ? by_levels(f, fit, want.v.at, want.v.len, &count, err)
                                           : fit->apply(f->run, want.v.at, want.v.len, &count, err));
    if (!ok) return wml_wrap(err, "%s", fit->name);
    struct wml_quant_count row = {fit->name, fit->what, count};
    WML_PUSH_IN(&r->model->arena, &f->run->result->fit, row);
    if (!count) wml_quantize_warn(r, "%s: the model has nothing for it", fit->name);
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
