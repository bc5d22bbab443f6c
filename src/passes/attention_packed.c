/* Q, K and V as thirds of one value, taken by Split, Slices or Gathers. */
#include "passes/attention_packed.h"

#include "passes/slice_info.h"

/* v is third `index` of the result along its axis. */
static struct wml_value *third_of(struct wml_pass_run *r, const struct wml_value *v, size_t *axis, size_t *index)
{
    const struct wml_node *n = v->def;
    struct wml_slice s;
    double at;
    if (n && wml_node_is(n, "Squeeze")) n = wml_node_in(n, 0) ? n->in[0]->def : NULL;
    struct wml_value *whole = n ? wml_node_in(n, 0) : NULL;
    int64_t rank = whole ? wml_value_rank(whole) : -1, where;
    if (rank < 1) return NULL;
    if (wml_node_is(n, "Gather")) {
        where = wml_attr_int(n, "axis", 0);
        const struct wml_tensor *t = wml_constant_of(wml_node_in(n, 1));
        if (!t || t->dims.len || !wml_constant_scalar(r, n->in[1], &at) || n != v->def) return NULL;
        *index = (size_t)(at < 0 ? at + 3 : at);
    } else if (wml_node_is(n, "Split") && n->n_out == 3) {
        where = wml_attr_int(n, "axis", 0);
        const struct wml_value *part = n == v->def ? v : v->def->in[0];
        *index = part->def_slot;
    } else if (wml_slice_of(r, n, &s) && s.n == 1 && s.step[0] == 1 && s.size[0] == 3 * s.count[0] && s.start[0] % s.count[0] == 0) {
        where = (int64_t)s.axis[0];
        *index = (size_t)(s.start[0] / s.count[0]);
    } else return NULL;
    if (where < 0) where += rank;
    if (where < 0 || where >= rank) return NULL;
    *axis = (size_t)where;
    return whole;
}

/* The parts are thirds 0, 1, 2 of one value, along the same axis. */
static struct wml_value *thirds(struct wml_pass_run *r, struct wml_value *const *part, size_t *axis)
{
    struct wml_value *whole = NULL;
    for (size_t i = 0; i < 3; i++) {
        size_t at = 0, index = 0;
        struct wml_value *w = part[i] ? third_of(r, part[i], &at, &index) : NULL;
        if (!w || index != i || (whole && (w != whole || at != *axis))) return NULL;
        whole = w;
        *axis = at;
    }
    return whole;
}

static bool is_apart(const struct wml_node *n)
{
    static const int64_t perm[] = {2, 0, 3, 1, 4};
    size_t len = 0;
    const int64_t *p = n && wml_node_is(n, "Transpose") ? wml_attr_ints(n, "perm", &len) : NULL;
    return p && len == 5 && !memcmp(p, perm, sizeof perm);
}

/* [batch, length, 3, heads, size] from [batch, length, 3 * heads * size]. */
static struct wml_value *unsplit(const struct wml_attention *a, const struct wml_value *v)
{
    const struct wml_node *n = v->def;
    if (wml_value_rank(v) != 5 || wml_value_axis(v, 2).size != 3 || wml_value_axis(v, 3).size != a->q.heads) return NULL;
    if (!n || !wml_reshape_keeps_two(a->r, n, NULL) || wml_value_rank(n->in[0]) != 3) return NULL;
    return wml_value_only_user(n->in[0]) && !n->in[0]->pinned ? n->in[0] : NULL;
}

/* Nothing reads the parts but their products, nothing the whole but the parts: by one node or by three. */
static bool is_closed(const struct wml_attention *a, struct wml_value *const *part, const struct wml_value *whole)
{
    const struct wml_node *end[] = {a->scores, a->scores, a->context};
    if (whole->n_outputs || whole->pinned || (whole->n_uses != 1 && whole->n_uses != 3)) return false;
    for (size_t i = 0; i < 3; i++)
        if (!wml_leads_only_to(part[i], end[i])) return false;
    return true;
}

struct wml_value *wml_attention_packed(const struct wml_attention *a, double *factor)
{
    struct wml_value *flat[] = {a->q.flat, a->k.flat, a->v.flat};
    struct wml_value *split[] = {a->q.bsnh, a->k.bsnh, a->v.bsnh}, *whole[] = {a->q.bnsh, a->k.bnsh, a->v.bnsh}, *v;
    size_t axis = 0;
    if (a->q.size != a->v.size || a->q.heads != a->k.heads || a->q.heads != a->v.heads) return NULL;
    *factor = a->q.flat_factor * a->k.flat_factor;
    if ((v = thirds(a->r, flat, &axis)) && axis == 2 && wml_value_rank(v) == 3 && is_closed(a, flat, v)) return v;
    *factor = a->q.bsnh_factor * a->k.bsnh_factor;
    if ((v = thirds(a->r, split, &axis)) && axis == 2 && is_closed(a, split, v)) return unsplit(a, v);
    *factor = a->q.bnsh_factor * a->k.bnsh_factor;
    if ((v = thirds(a->r, whole, &axis)) && axis == 0 && is_apart(v->def) && is_closed(a, whole, v)) return unsplit(a, v->def->in[0]);
    return NULL;
}

void wml_attention_unpack(struct wml_attention *a, struct wml_value *flat, double factor)
{
    struct wml_heads *h[] = {&a->q, &a->k, &a->v};
    struct wml_model *m = a->r->model;
    int64_t size = a->q.heads * a->q.size, sizes[] = {size, size, size};
    struct wml_node *n = wml_node_new(a->join, "", "Split");
    n->name = wml_model_unique(m, WML_STR("attention_split"));
    wml_node_set_input(n, 0, flat);
    wml_attr_set_int(n, "axis", 2);
    if (wml_model_opset(m, "") >= 13) wml_node_set_input(n, 1, wml_graph_add_init(n->graph, WML_STR("attention_sizes"), wml_tensor_i64s(m, 3, sizes)));
    else wml_attr_set_ints(n, "split", 3, sizes);
    struct wml_axis axis[] = {wml_value_axis(flat, 0), wml_value_axis(flat, 1), {size, WML_NO_STR}};
    for (size_t i = 0; i < 3; i++) {
        h[i]->flat = wml_node_add_output(n, WML_STR("attention_part"));
        h[i]->flat_factor = i ? 1 : factor;
        wml_value_set_type(h[i]->flat, wml_type_tensor(m, wml_value_elem(flat), 3, axis));
    }
}
