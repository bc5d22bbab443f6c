/* How much noise every part makes at the outputs. The plain quantised model gets a switch for each part:
 *
 *     x -> Q -> DQ -> readers    becomes    x -> Q -> DQ -> Where(switch, DQ, x) -> readers
 *
 * so that one session answers for all parts: first all switches are off, then one at a time is on. */
#include "flow/mixed_internal.h"

#include <math.h>

#include "graph/edit.h"
#include "graph/graph.h"

/* Noise is a mean over all elements of the outputs: few samples tell the order. */
enum { SAMPLES = 2 };

struct weigh {
    struct wml_mixed_search *x;
    struct wml_session *session;
    struct wml_samples *samples;
    size_t n_outputs, n_inputs;
    double *signal; /* by output: sum of squares */
    bool *on;       /* the switches */
    size_t done;
};

/* A value of the float model in the plain one; NULL: it is not there any more. */
static struct wml_value *bring(struct wml_mixed_search *x, struct wml_value *v)
{
    if (!v) return NULL;
    if (wml_value_is_constant(v) && v->init) return wml_graph_add_init(x->plain->graph, v->name, wml_tensor_share(x->plain, v->init));
    return wml_graph_find(x->plain->graph, v->name);
}

/* What the Relu or Clip would have given, before dq. NULL: it cannot be had. */
static struct wml_value *cut(struct wml_mixed_search *x, const struct wml_mixed_member *m, struct wml_value *pre)
{
    struct wml_value *arg[3] = {pre, NULL, NULL};
    for (size_t i = 1; i < m->cut->n_in && i < WML_COUNT(arg); i++)
        if (m->cut->in[i] && !(arg[i] = bring(x, m->cut->in[i]))) return NULL;
    struct wml_node *n = wml_node_new(m->dq, "", m->cut == NULL ? "" : wml_node_is(m->cut, "Relu") ? "Relu" : "Clip");
    wml_attrs_copy(n, m->cut);
    for (size_t i = 0; i < m->cut->n_in && i < WML_COUNT(arg); i++) wml_node_set_input(n, i, arg[i]);
    return wml_node_add_output(n, WML_STR("winml_cut"));
}

static void add_switch(struct wml_mixed_search *x, const struct wml_mixed_member *m, struct wml_value *on)
{
    struct wml_value *post = m->dq->out[0], *pre = m->dq->in[0]->init ? bring(x, m->value) : m->dq->in[0]->def->in[0];
    if (m->cut) pre = cut(x, m, pre);
    if (!pre) return; /* it stays quantised in all runs: its noise is none */
    struct wml_node *n = m->dq->next ? wml_node_new(m->dq->next, "", "Where") : wml_graph_append(x->plain->graph, "", "Where");
    wml_node_set_input(n, 0, on);
    wml_node_set_input(n, 2, pre);
    struct wml_value *out = wml_node_add_output(n, WML_STR("winml_switched"));
    if (post->type) wml_value_set_type(out, wml_type_copy(x->plain, post->type));
    wml_value_replace(post, out);
    wml_node_set_input(n, 1, post);
}

static void add_switches(struct wml_mixed_search *x)
{
    for (size_t i = 0; i < x->part.len; i++) {
        struct wml_str name = wml_model_unique(x->plain, wml_arena_fmt(&x->plain->arena, "winml_switch_%zu", i));
        struct wml_value *on = wml_graph_add_input(x->plain->graph, name, wml_type_static(x->plain, WML_BOOL, 0, NULL));
        for (size_t k = 0; k < x->part.at[i].member.len; k++) add_switch(x, &x->part.at[i].member.at[k], on);
    }
}

static bool run_once(struct weigh *w, struct wml_run *run, struct wml_err *err)
{
    wml_note_progress(w->x->r->cx, "Weighing", NULL, w->done++, w->x->out->runs, "runs");
    return wml_check_cancel(w->x->r->cx, err) && wml_run_watched(run, 0, err);
}

static bool is_judged(const struct wml_tensor_view *v)
{
    return v->is_tensor && v->data && wml_dtype_is_float((int)v->dtype);
}

static uint64_t count_of(const struct wml_tensor_view *v)
{
    return v->bytes / (wml_dtype_info((int)v->dtype)->bits / 8);
}

/* The outputs with all switches off, kept. */
static bool keep_outputs(struct weigh *w, struct wml_run *run, struct wml_tensor_view *kept, struct wml_err *err)
{
    for (size_t o = 0; o < w->n_outputs; o++) {
        struct wml_tensor_view v;
        struct wml_compare c;
        if (!wml_run_output(run, o, &v, err)) return false;
        kept[o] = v;
        kept[o].data = NULL;
        if (!is_judged(&v)) continue;
        void *copy = wml_big_alloc(v.bytes, err);
        if (!copy) return false;
        kept[o].data = memcpy(copy, v.data, v.bytes);
        wml_compare((int)v.dtype, v.data, (int)v.dtype, v.data, count_of(&v), &c);
        w->signal[o] += c.aa;
    }
    return true;
}

static bool weigh_part(struct weigh *w, struct wml_run *run, const struct wml_tensor_view *kept, struct wml_mixed_part *p, struct wml_err *err)
{
    for (size_t o = 0; o < w->n_outputs; o++) {
        struct wml_tensor_view v;
        struct wml_compare c;
        if (!wml_run_output(run, o, &v, err)) return false;
        if (!kept[o].data || !is_judged(&v)) continue;
        if (v.bytes != kept[o].bytes) {
            p->noise[o] = INFINITY; /* even the sizes change */
            continue;
        }
        wml_compare((int)v.dtype, kept[o].data, (int)v.dtype, v.data, count_of(&v), &c);
        p->noise[o] += c.mismatched ? INFINITY : c.dd;
    }
    return true;
}

static bool weigh_sample(struct weigh *w, size_t i, struct wml_err *err)
{
    struct wml_mixed_search *x = w->x;
    struct wml_arena arena = {0};
    struct wml_feed feed = {0};
    struct wml_run *run = NULL;
    struct wml_tensor_view *kept = WML_NEW_ARRAY(&arena, struct wml_tensor_view, w->n_outputs + 1);
    bool ok = wml_samples_make(w->samples, i, &feed, err);
    for (size_t k = 0; ok && k < x->part.len; k++) {
        struct wml_tensor_view v = {.dtype = WML_BOOL, .data = &w->on[k], .bytes = sizeof(bool), .is_tensor = true};
        WML_PUSH(&feed.view, v);
    }
    ok = ok && wml_run_new(w->session, feed.view.at, feed.view.len, &run, err) && run_once(w, run, err) && keep_outputs(w, run, kept, err);
    for (size_t k = 0; ok && k < x->part.len; k++) {
        w->on[k] = true;
        ok = run_once(w, run, err) && weigh_part(w, run, kept, &x->part.at[k], err);
        w->on[k] = false;
    }
    wml_run_free(run);
    wml_feed_release(&feed);
    for (size_t o = 0; o < w->n_outputs; o++) free((void *)(uintptr_t)kept[o].data);
    wml_arena_release(&arena);
    return ok;
}

static int noisier(const void *a, const void *b)
{
    const struct wml_mixed_part *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->index < y->index ? -1 : x->index > y->index;
}

static void score(struct weigh *w)
{
    struct wml_mixed_search *x = w->x;
    for (size_t k = 0; k < x->part.len; k++) {
        struct wml_mixed_part *p = &x->part.at[k];
        for (size_t o = 0; o < w->n_outputs; o++) {
            p->noise[o] = w->signal[o] > 0 ? p->noise[o] / w->signal[o] : 0;
            p->score += p->noise[o];
        }
    }
    if (x->part.len) qsort(x->part.at, x->part.len, sizeof *x->part.at, noisier);
    for (size_t i = 0; i < x->constant.len; i++) /* numbers of parts have moved */
        for (size_t k = 0; x->constant.at[i].part && k < x->part.len; k++)
            if (x->part.at[k].index == x->constant.at[i].part - 1) {
                x->constant.at[i].part = k + 1;
                break;
            }
}

static bool open_session(struct weigh *w, struct wml_err *err)
{
    struct wml_session_opts opts = {0};
    struct wml_mixed_search *x = w->x;
    size_t n_in;
    if (!wml_flow_session(x->r->cx, x->plain, NULL, &opts, &w->session, err)) return false;
    const struct wml_io *input = wml_session_inputs(w->session, &n_in);
    wml_session_outputs(w->session, &w->n_outputs);
    return wml_samples_open(&x->samples, input, n_in - x->part.len, &w->samples, err);
}

bool wml_mixed_weigh(struct wml_mixed_search *x, struct wml_err *err)
{
    struct weigh w = {.x = x, .on = WML_NEW_ARRAY(x->arena, bool, x->part.len + 1)};
    add_switches(x);
    bool ok = open_session(&w, err);
    size_t n = ok ? WML_MIN(wml_samples_count(w.samples), (size_t)SAMPLES) : 0;
    w.signal = WML_NEW_ARRAY(x->arena, double, w.n_outputs + 1);
    for (size_t k = 0; k < x->part.len; k++) x->part.at[k].noise = WML_NEW_ARRAY(x->arena, double, w.n_outputs + 1);
    x->out->runs = n * (x->part.len + 1);
    for (size_t i = 0; ok && i < n; i++) ok = weigh_sample(&w, i, err);
    if (ok) score(&w);
    wml_samples_close(w.samples);
    wml_session_close(w.session);
    return ok || wml_wrap(err, "weighing the tensors");
}
