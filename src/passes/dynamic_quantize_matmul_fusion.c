/* DynamicQuantizeLinear, MatMulInteger, Cast, Mul by both scales (, Add of a bias) -> com.microsoft::
 * DynamicQuantizeMatMul. */
#include "passes/match.h"

struct parts {
    struct wml_node *dql, *mmi, *cast, *scales, *mul, *add; /* add NULL: no bias */
    struct wml_value *b_scale, *bias;
};

static bool only(const struct wml_value *v, const struct wml_node *reader)
{
    return v && wml_value_only_user(v) == reader && !v->pinned;
}

/* n = cast * (a_scale * b_scale), in any order. */
static bool is_rescale(struct wml_node *n, struct parts *p)
{
    if (!wml_node_is(n, "Mul") || !wml_node_out(n, 0)) return false;
    for (size_t k = 0; k < 2; k++) {
        struct wml_node *cast = wml_node_producer(n, k), *scales = wml_node_producer(n, 1 - k);
        struct wml_node *mmi = cast && wml_node_is(cast, "Cast") ? wml_node_producer(cast, 0) : NULL;
        struct wml_node *dql = mmi && wml_node_is(mmi, "MatMulInteger") ? wml_node_producer(mmi, 0) : NULL;
        if (!dql || !wml_node_is(dql, "DynamicQuantizeLinear") || !scales || !wml_node_is(scales, "Mul")) continue;
        if (wml_attr_int(cast, "to", 0) != WML_F32 || mmi->in[0] != dql->out[0] || wml_node_in(mmi, 2) != wml_node_out(dql, 2)) continue;
        for (size_t i = 0; i < 2; i++)
            if (wml_node_in(scales, i) == wml_node_out(dql, 1)) p->b_scale = wml_node_in(scales, 1 - i);
        p->dql = dql, p->mmi = mmi, p->cast = cast, p->scales = scales, p->mul = n;
        return p->b_scale && wml_constant_of(p->b_scale) && only(cast->out[0], n) && only(scales->out[0], n) &&
               only(mmi->out[0], cast);
    }
    return false;
}

static bool has_bias(struct parts *p)
{
    struct wml_node *add = wml_value_only_user(p->mul->out[0]);
    if (!add || !wml_node_is(add, "Add") || p->mul->out[0]->pinned || add->graph != p->mul->graph) return false;
    p->bias = wml_node_in(add, 0) == p->mul->out[0] ? wml_node_in(add, 1) : wml_node_in(add, 0);
    const struct wml_tensor *t = wml_constant_of(p->bias), *b = wml_constant_of(wml_node_in(p->mmi, 1));
    if (!t || t->dims.len != 1 || !b || t->dims.at[0] != b->dims.at[b->dims.len - 1]) return false;
    p->add = add;
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct parts p = {0};
    if (!is_rescale(n, &p)) return true;
    const struct wml_tensor *w = wml_constant_of(wml_node_in(p.mmi, 1)), *s = wml_constant_of(p.b_scale);
    if (!w || w->dims.len != 2 || s->dims.len > 1) return true;
    struct wml_node *last = has_bias(&p) ? p.add : n, *new = wml_node_new(last, "com.microsoft", "DynamicQuantizeMatMul");
    new->name = last->name;
    last->name = WML_STR("");
    wml_node_set_input(new, 0, p.dql->in[0]);
    wml_node_set_input(new, 1, p.mmi->in[1]);
    wml_node_set_input(new, 2, p.b_scale);
    if (wml_node_in(p.mmi, 3)) wml_node_set_input(new, 3, p.mmi->in[3]);
    if (p.add) wml_node_set_input(new, 4, p.bias);
    wml_node_take_output(new, 0, last->out[0]);
    wml_pass_applied(r, last->op_type, new->name);
    if (p.add) wml_node_remove(p.add);
    wml_node_remove(p.mul); /* the rest is dead when nobody else reads it */
    wml_pass_use_contrib(r);
    return true;
}

const struct wml_pass wml_pass_dynamic_quantize_matmul_fusion = {
    .name = "dynamic-quantize-matmul-fusion", .category = "matmul", .pipe = "ort_graph",
    .ort_name = "DynamicQuantizeMatMulFusion", .level = 2, .makes = WML_MAKES_CONTRIB, .visit = visit,
    .summary = "Turn a dynamically quantised MatMul into one operator of com.microsoft",
};
