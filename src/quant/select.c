/* Which nodes the user's options let a method touch, and what is left over afterwards. */
#include "quant/select.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "text/words.h"

bool wml_patterns_match(const struct wml_patterns *p, struct wml_str s)
{
    for (size_t i = 0; i < p->len; i++)
        if (wml_str_eq(p->at[i], s) || wml_glob_match(p->at[i], s)) return true;
    return false;
}

static bool is_left(const struct wml_quant_opts *o, struct wml_str name)
{
    for (size_t i = 0; i < o->leave.len; i++)
        if (wml_str_eq(o->leave.at[i], name)) return true;
    return false;
}

bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n)
{
    return (!o->op_types.len || wml_patterns_match(&o->op_types, n->op_type)) && 
           !(n->name.len && (wml_patterns_match(&o->exclude, n->name) || is_left(o, n->name)));
}

static bool drop_constants(void *arg, struct wml_graph *g)
{
    (void)arg;
    for (struct wml_node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (wml_node_is(n, "Constant") && n->n_out == 1 && n->out[0] && wml_value_is_unused(n->out[0])) wml_node_remove(n);
    }
    return true;
}

void wml_quant_drop_constants(struct wml_model *m)
{
    wml_model_each_graph(m, drop_constants, NULL);
    wml_model_drop_unused(m);
}

bool wml_quant_infer(struct wml_quant_run *r, struct wml_err *err)
{
    struct wml_err why = {0};
    size_t n;
    if (!r->env->infer_types || r->env->infer_types(r->env->arg, r->model, &n, &why)) return true;
    if (why.code == WML_E_CANCELLED) {
        *err = why;
        return false;
    }
    wml_quant_note(r, WML_STR("types"), "those in the file were used, since ONNX Runtime could not be asked: %.300s", why.msg);
    return true;
}

/* Nodes make it of constants alone. */
static bool is_computed(const struct wml_value *v, unsigned depth)
{
    const struct wml_node *n = v ? v->def : NULL;
    if (v && (v->sparse || (v->init && wml_value_is_constant(v)))) return true;
    if (!n || depth > 8 || wml_node_subgraph(n, 0)) return false;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !is_computed(n->in[i], depth + 1)) return false;
    return n->n_in > 0 || wml_node_is(n, "Constant");
}

struct unfit { const struct wml_quant_run *run; const struct wml_node *computed, *replaceable; };

static bool find_unfit(void *arg, struct wml_node *n)
{
    struct unfit *u = arg;
    const size_t slot = wml_node_is(n, "Gather") ? 0 : 1;
    const bool one = wml_node_is(n, "MatMul") || wml_node_is(n, "Gemm") || wml_node_is(n, "Conv") || wml_node_is(n, "Gather");
    const struct wml_value *w = one ? wml_node_in(n, slot) : NULL;
    if (!w || !wml_quant_selects(u->run->opts, n) || wml_value_elem(w) != WML_F32) return true;
    if (!u->computed && w->def && !wml_node_is(w->def, "Constant") && is_computed(w, 0)) u->computed = n;
    if (!u->replaceable && w->init && w->n_inputs) u->replaceable = n;
    return true;
}

void wml_quant_hint_nothing(const struct wml_quant_run *r, const char *otherwise, struct wml_err *err)
{
    struct unfit u = {.run = r};
    wml_graph_walk(r->model->graph, find_unfit, &u);
    if (u.computed)
        wml_hint(err, "the weight of %s is computed by %.*s: `winml optimize` puts the result in its place, then quantize that",
                 wml_node_label(u.computed), WML_ARG(wml_node_in(u.computed, wml_node_is(u.computed, "Gather") ? 0 : 1)->def->op_type));
    else if (u.replaceable)
        wml_hint(err, "the weight of %s is an input with a default, which callers may replace: it stays as it is", wml_node_label(u.replaceable));
    else if (r->result->note.len)
        wml_hint(err, "%.*s: %.*s", WML_ARG(r->result->note.at[0].subject), WML_ARG(r->result->note.at[0].text));
    else wml_hint(err, "%s", otherwise);
}
