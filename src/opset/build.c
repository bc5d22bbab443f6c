/* Reading constants and making nodes: the hands of the adapters. */
#include "opset/adapt.h"

#include <stdarg.h>
#include <stdio.h>

bool wml_opset_refuse(struct wml_opset_step *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    return false;
}

bool wml_opset_has(struct wml_opset_step *s, const struct wml_node *n, size_t n_in)
{
    bool has = wml_node_out(n, 0) != NULL;
    for (size_t i = 0; i < n_in; i++) has = has && wml_node_in(n, i);
    return has || wml_opset_refuse(s, "inputs or outputs that it must have are missing");
}

/* The integers of a Constant node that does not hold them as a tensor. */
static bool constant_ints(const struct wml_node *n, int64_t **out, size_t *len)
{
    struct wml_attr *many = wml_attr_find(n, "value_ints"), *one = wml_attr_find(n, "value_int");
    if (!many && !one) return false;
    *out = many ? many->ints.at : &one->i;
    *len = many ? many->ints.len : 1;
    return true;
}

bool wml_opset_ints(struct wml_opset_step *s, const struct wml_value *v, int64_t **out, size_t *len)
{
    if (!v) return false;
    if (v->def && wml_node_is(v->def, "Constant") && constant_ints(v->def, out, len)) return true;
    struct wml_tensor *t = wml_value_tensor(v);
    return t && wml_tensor_ints(s->model, t, out, len, NULL);
}

bool wml_opset_number(struct wml_opset_step *s, const struct wml_value *v, double *out)
{
    struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    const struct wml_attr *f = v && v->def && wml_node_is(v->def, "Constant") ? wml_attr_find(v->def, "value_float") : NULL;
    double *x;
    size_t n;
    if (f) *out = (double)f->f;
    if (f) return true;
    if (!t || !wml_tensor_doubles(s->model, t, &x, &n, NULL) || n != 1) return false;
    *out = x[0];
    return true;
}

bool wml_opset_is_empty(const struct wml_value *v)
{
    const struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    uint64_t n;
    return t && wml_tensor_count(t, &n, NULL) && n == 0;
}

static bool in_function(const struct wml_graph *g)
{
    while (g->outer) g = g->outer;
    return g != g->model->graph;
}

static struct wml_str name_from(struct wml_model *m, const struct wml_node *n, const char *part)
{
    if (!n->name.len) return wml_str(part);
    return wml_arena_fmt(&m->arena, "%.*s_%s", WML_ARG(n->name), part);
}

struct wml_value *wml_opset_const(struct wml_opset_step *s, struct wml_node *n, const char *name, struct wml_tensor *t)
{
    struct wml_str full = name_from(s->model, n, name);
    if (!in_function(n->graph)) return wml_graph_add_init(n->graph, full, t);
    struct wml_node *c = wml_node_new(n, "", "Constant");
    c->name = wml_model_unique(s->model, full);
    wml_attr_set_tensor(c, "value", t);
    return wml_node_add_output(c, full);
}

struct wml_value *wml_opset_i64s(struct wml_opset_step *s, struct wml_node *n, const char *name, size_t len, const int64_t *v)
{
    return wml_opset_const(s, n, name, wml_tensor_i64s(s->model, len, v));
}

struct wml_value *wml_opset_i64(struct wml_opset_step *s, struct wml_node *n, const char *name, int64_t v)
{
    return wml_opset_const(s, n, name, wml_tensor_copy(s->model, WML_I64, 0, NULL, &v, sizeof v, NULL));
}

struct wml_value *wml_opset_scalar(struct wml_opset_step *s, struct wml_node *n, const char *name, enum wml_dtype dtype, double v)
{
    unsigned char bytes[16] = {0};
    wml_dtype_store(dtype, bytes, 0, v);
    return wml_opset_const(s, n, name, wml_tensor_copy(s->model, dtype, 0, NULL, bytes, wml_dtype_info(dtype)->bits / 8, NULL));
}

struct wml_value *wml_opset_add(struct wml_opset_step *s, struct wml_node *n, const char *op, size_t n_in,
                                struct wml_value *const *in)
{
    struct wml_node *made = wml_node_new(n, "", op);
    struct wml_str name = name_from(s->model, n, op);
    made->name = wml_model_unique(s->model, name);
    for (size_t i = 0; i < n_in; i++) wml_node_set_input(made, i, in[i]);
    return wml_node_add_output(made, name);
}

struct wml_value *wml_opset_cast(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, enum wml_dtype to)
{
    struct wml_value *out = wml_opset_op(s, n, "Cast", v);
    wml_attr_set_int(out->def, "to", to);
    return out;
}

void wml_opset_give(struct wml_node *n, size_t slot, struct wml_value *v)
{
    struct wml_value *old = wml_node_out(n, slot);
    struct wml_node *maker = v->def;
    size_t from = v->def_slot;
    if (!old) return;
    wml_value_replace_uses(v, old);
    wml_node_drop_output(maker, from);
    wml_node_take_output(maker, from, old);
}

bool wml_opset_become(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v)
{
    struct wml_node *maker = v->def;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return wml_opset_refuse(s, "its output %zu is read, which cannot be written out", i);
    wml_opset_give(n, 0, v);
    maker->name = n->name;
    maker->metadata = n->metadata;
    n->name = WML_STR("");
    wml_node_remove(n);
    return true;
}

struct wml_value *wml_opset_copy(struct wml_opset_step *s, struct wml_node *n, struct wml_value *first)
{
    struct wml_node *made = wml_node_new(n, "", "");
    made->op_type = n->op_type;
    made->name = wml_model_unique(s->model, name_from(s->model, n, "inner"));
    for (size_t i = 0; i < n->n_in; i++) wml_node_set_input(made, i, i ? n->in[i] : first);
    wml_attrs_copy(made, n);
    return wml_node_add_output(made, made->name);
}
