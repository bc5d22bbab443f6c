/* Makes a failing case small: fewer passes, fewer outputs, nodes cut off above (their values are fed instead) and
 * below (their values become the only output), as long as it fails the same way. */
#include "check.h"

#include "graph/graph.h"
#include "onnx/onnx.h"

static bool fails(const struct rc_env *e, const struct rc_case *c, struct rc_result *r)
{
    enum rc_verdict want = r->verdict;
    struct rc_result *again = WML_NEW(e->arena, struct rc_result);
    rc_check(e, c, again);
    if (again->verdict != want) return false;
    *r = *again;
    return true;
}

static void drop_passes(const struct rc_env *e, struct rc_case *c, struct rc_result *r)
{
    /* halves first: most passes have no part in it */
    for (size_t step = wml_n_passes / 2; step > 0; step /= 2)
        for (size_t from = 0; from < wml_n_passes; from += step) {
            enum wml_pass_choice was[256];
            size_t to = WML_MIN(from + step, wml_n_passes), on = 0;
            memcpy(was, c->choice, wml_n_passes * sizeof *was);
            for (size_t i = from; i < to; i++) {
                on += !wml_passes[i]->refused && (was[i] == WML_PASS_ON || (was[i] == WML_PASS_DEFAULT && wml_passes[i]->on));
                c->choice[i] = WML_PASS_OFF;
            }
            if (on && !fails(e, c, r)) memcpy(c->choice, was, wml_n_passes * sizeof *was);
        }
}

static void sweep(struct wml_model *m)
{
    for (bool more = true; more;) {
        more = false;
        for (struct wml_node *n = m->graph->last, *prev; n; n = prev) {
            bool used = false;
            prev = n->prev;
            for (size_t i = 0; i < n->n_out; i++) used = used || (n->out[i] && (n->out[i]->n_uses || n->out[i]->n_outputs));
            if (used) continue;
            wml_node_remove(n);
            more = true;
        }
    }
    wml_model_drop_unused(m);
    for (size_t i = m->graph->inputs.len; i-- > 0;)
        if (!m->graph->inputs.at[i]->n_uses && !m->graph->inputs.at[i]->n_outputs) wml_graph_remove_input(m->graph, i);
}

/* What every value of the top graph is for this feed. */
static bool all_values(const struct rc_env *e, const struct rc_case *c, struct rc_tensors *out)
{
    struct wml_model *m = NULL;
    struct wml_flow_oracle oracle = {.cx = e->cx};
    struct wml_env env = wml_flow_env(&oracle);
    struct wml_err err = {0};
    struct wml_str bytes;
    size_t n = 0;
    bool ok = rc_load(c->bytes, &m, &err) && env.infer_types(env.arg, m, &n, &err);
    if (ok) {
        for (struct wml_value *v = m->graph->first_value; v; v = v->next)
            if (v->def && v->type && v->type->tensor && !v->n_outputs) wml_graph_add_output(m->graph, v);
        ok = rc_encode(e, m, &bytes, &err) && rc_run(e, bytes, &c->feed[0], out, &err);
    }
    wml_model_free(m);
    return ok;
}

static const struct rc_tensor *find(const struct rc_tensors *t, struct wml_str name)
{
    for (size_t i = 0; i < t->n; i++)
        if (wml_str_is(name, t->at[i].name)) return &t->at[i];
    return NULL;
}

/* Value v is fed from now on. */
static bool cut_above(const struct rc_env *e, struct wml_model *m, struct wml_value *v, const struct rc_tensors *known, struct rc_tensors *feed)
{
    const struct rc_tensor *t = find(known, v->name);
    if (!t || !t->is_tensor || !v->n_uses || v->n_outputs) return false;
    struct wml_str name = wml_model_unique(m, WML_STR("fed"));
    struct wml_value *in = wml_graph_add_input(m->graph, name, wml_type_static(m, t->t, t->rank, t->dim));
    struct rc_tensor *at = WML_NEW_ARRAY(e->arena, struct rc_tensor, feed->n + 1);
    memcpy(at, feed->at, feed->n * sizeof *at);
    at[feed->n] = *t;
    at[feed->n].name = wml_arena_cstr(e->arena, name);
    *feed = (struct rc_tensors){at, feed->n + 1};
    wml_value_replace_uses(v, in);
    return true;
}

static bool cut_below(struct wml_model *m, struct wml_value *v)
{
    if (m->graph->outputs.len == 1 && v->n_outputs) return false;
    while (m->graph->outputs.len > 1 || (m->graph->outputs.len && m->graph->outputs.at[0] != v)) {
        size_t i = m->graph->outputs.at[0] == v;
        wml_graph_remove_output(m->graph, i);
    }
    if (!v->n_outputs) {
        if (!v->type) return false;
        wml_graph_add_output(m->graph, v);
    }
    return true;
}

static bool skip_node(struct wml_node *n, size_t input)
{
    struct wml_value *x = wml_node_in(n, input), *y = wml_node_out(n, 0);
    if (!x || !y || y->n_outputs || !y->n_uses || !x->type || !y->type || !wml_type_eq(x->type, y->type)) return false;
    wml_value_replace_uses(y, x);
    return true;
}

enum { WAYS = 6 };

/* One change: way 0 feeds the k-th node's value, 1 ends at it, 2 drops output k, 3 to 5 skip the node. */
static bool change(const struct rc_env *e, struct wml_model *m, size_t k, int way, const struct rc_tensors *known, struct rc_tensors *feed)
{
    struct wml_node *n = m->graph->first;
    if (way == 2) {
        if (k >= m->graph->outputs.len || m->graph->outputs.len < 2) return false;
        wml_graph_remove_output(m->graph, k);
        return true;
    }
    for (size_t i = 0; n && i < k; i++) n = n->next;
    if (!n || !n->n_out || !n->out[0]) return false;
    if (way == 0) return cut_above(e, m, n->out[0], known, feed);
    return way == 1 ? cut_below(m, n->out[0]) : skip_node(n, (size_t)way - 3);
}

static bool try_change(const struct rc_env *e, struct rc_case *c, size_t k, int way, const struct rc_tensors *known, struct rc_result *r)
{
    struct rc_case smaller = *c;
    struct wml_model *m = NULL;
    struct wml_flow_oracle oracle = {.cx = e->cx};
    struct wml_env env = wml_flow_env(&oracle);
    struct wml_err err = {0};
    size_t n = 0, declared = 0;
    bool ok = rc_load(c->bytes, &m, &err);
    /* types are needed to look, but must not get into the smaller case: they steer passes */
    struct wml_value *open[1024];
    for (struct wml_value *v = ok ? m->graph->first_value : NULL; v && declared < WML_COUNT(open); v = v->next)
        if (!v->type && v->def) open[declared++] = v;
    ok = ok && (way < 1 || way == 2 || env.infer_types(env.arg, m, &n, &err)) && change(e, m, k, way, known, &smaller.feed[0]);
    for (size_t i = 0; ok && i < declared; i++)
        if (!open[i]->n_outputs) wml_value_set_type(open[i], NULL);
    if (ok) sweep(m);
    ok = ok && rc_encode(e, m, &smaller.bytes, &err) && fails(e, &smaller, r);
    wml_model_free(m);
    if (ok) *c = smaller;
    return ok;
}

static size_t count_nodes(const struct rc_case *c)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    size_t n = rc_load(c->bytes, &m, &err) ? WML_MAX(m->graph->n_nodes, m->graph->outputs.len) : 0;
    wml_model_free(m);
    return n;
}

void rc_shrink(const struct rc_env *e, struct rc_case *c, struct rc_result *r)
{
    struct rc_tensors known = {0};
    bool more = true;
    if (c->n_feeds > 1) { /* the feed that shows it is enough */
        struct rc_case one = *c;
        one.feed[0] = c->feed[r->feed];
        one.n_feeds = 1;
        if (fails(e, &one, r)) *c = one;
    }
    if (c->opset) { /* the conversion may have no part in it */
        struct rc_case as_it_is = *c;
        as_it_is.opset = 0;
        if (fails(e, &as_it_is, r)) *c = as_it_is;
    }
    drop_passes(e, c, r);
    for (int round = 0; more && round < 6; round++) {
        more = false;
        bool values = all_values(e, c, &known);
        for (int way = WAYS; way-- > 0;)
            for (size_t k = count_nodes(c); k-- > 0;) {
                if (way == 0 && !values) continue;
                more = try_change(e, c, k, way, &known, r) || more;
            }
    }
    drop_passes(e, c, r);
}
