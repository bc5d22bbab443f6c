/* Where heads are split and joined: Reshape and Transpose 0,2,1,3, with products by one number between them. */
#include "passes/attention_form.h"

#include <math.h>

bool wml_attention_same_axis(const struct wml_attention *a, const struct wml_value *v, size_t i, size_t j)
{
    const struct wml_value *flat = j == 3 ? a->k.flat : a->q.flat;
    if (wml_same_axis(v, i, a->product, j)) return true;
    return j != 1 && flat && wml_same_axis(v, i, flat, j ? 1 : 0);
}

bool wml_is_transpose(const struct wml_node *n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    size_t len = 0;
    if (!n || !wml_node_is(n, "Transpose") || !wml_node_in(n, 0)) return false;
    const int64_t *perm = wml_attr_ints(n, "perm", &len);
    return perm && len == 4 && perm[0] == a && perm[1] == b && perm[2] == c && perm[3] == d;
}

struct wml_value *wml_scaled_from(struct wml_pass_run *r, struct wml_value *v, double *scale)
{
    const struct wml_node *n = v->def;
    double f;
    if (!n || n->n_in != 2) return NULL;
    if (wml_node_is(n, "Mul"))
        for (size_t i = 0; i < 2; i++)
            if (n->in[i] && n->in[1 - i] && wml_constant_beside(r, n->in[i], n->in[1 - i], &f)) {
                *scale *= f;
                return n->in[1 - i];
            }
    if (wml_node_is(n, "Div") && n->in[0] && wml_constant_beside(r, wml_node_in(n, 1), n->in[0], &f) && f != 0) {
        *scale /= f;
        return n->in[0];
    }
    return NULL;
}

const struct wml_value *wml_leads_of(const struct wml_value *v)
{
    for (size_t i = 0; i < 8 && v->def; i++) {
        const struct wml_node *n = v->def;
        const struct wml_value *a = wml_node_in(n, 0), *b = wml_node_in(n, 1);
        if (!a || !b) break;
        if (wml_node_is(n, "MatMul") && wml_value_rank(b) == 2 && wml_constant_of(b)) v = a;
        else if (!wml_node_is(n, "Add") && !wml_node_is(n, "Mul") && !wml_node_is(n, "Div")) break;
        else if (wml_constant_of(b) && wml_value_rank(b) <= 1) v = a;
        else if (wml_constant_of(a) && wml_value_rank(a) <= 1) v = b;
        else break;
    }
    return v;
}

const struct wml_value *wml_shape_source(struct wml_pass_run *r, const struct wml_value *v, size_t *axis)
{
    const struct wml_node *n = v->def;
    int64_t *at, rank, i;
    size_t len;
    while (n && (wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Reshape") || wml_node_is(n, "Squeeze")) && wml_node_in(n, 0))
        n = n->in[0]->def;
    if (!n || !wml_node_in(n, 0)) return NULL;
    if (wml_node_is(n, "Gather")) {
        const struct wml_node *shape = n->in[0]->def;
        if (!shape || !wml_node_is(shape, "Shape") || wml_attr_find(shape, "start") || wml_attr_find(shape, "end")) return NULL;
        if (!wml_constant_of(wml_node_in(n, 1)) || !wml_constant_ints(r, n->in[1], &at, &len) || len != 1) return NULL;
        i = at[0];
        n = shape;
    } else if (wml_node_is(n, "Shape")) {
        i = wml_attr_int(n, "start", 0);
        rank = wml_value_rank(n->in[0]);
        int64_t end = wml_attr_int(n, "end", rank);
        if (rank < 0 || (end < 0 ? end + rank : end) != (i < 0 ? i + rank : i) + 1) return NULL;
    } else return NULL;
    rank = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    if (i < 0) i += rank;
    if (rank < 0 || i < 0 || i >= rank) return NULL;
    *axis = (size_t)i;
    return n->in[0];
}

/* Element i of the target shape says "as axis i of x", which is the input or like it. */
static bool says_same(struct wml_pass_run *r, const struct wml_node *reshape, const struct wml_value *x, size_t i)
{
    const struct wml_value *shape = wml_node_in(reshape, 1);
    int64_t *dim;
    size_t n, axis;
    if (!shape) return false;
    if (wml_constant_of(shape)) {
        if (!wml_constant_ints(r, shape, &dim, &n) || i >= n) return false;
        return (dim[i] == 0 && !wml_attr_int(reshape, "allowzero", 0)) || (dim[i] > 0 && dim[i] == wml_value_axis(x, i).size);
    }
    const struct wml_node *c = shape->def;
    if (!c || !wml_node_is(c, "Concat") || i >= c->n_in || !c->in[i]) return false;
    for (size_t k = 0; k <= i; k++) /* one number each */
        if (wml_value_rank(c->in[k]) != 1 || wml_value_axis(c->in[k], 0).size != 1) return false;
    const struct wml_value *y = wml_shape_source(r, c->in[i], &axis);
    return y && (wml_same_axis(y, axis, x, i) || (axis == i && (y == x || wml_leads_of(y) == wml_leads_of(x))));
}

bool wml_reshape_keeps_two(struct wml_pass_run *r, const struct wml_node *n, const struct wml_value *like)
{
    const struct wml_value *in = wml_node_in(n, 0), *out = wml_node_out(n, 0);
    if (!wml_node_is(n, "Reshape") || !in || wml_value_rank(in) < 3 || wml_value_rank(out) < 3) return false;
    int64_t rest[2] = {1, 1};
    const struct wml_value *side[2] = {in, out};
    for (size_t s = 0; s < 2; s++)
        for (int64_t i = 2; i < wml_value_rank(side[s]); i++) {
            int64_t size = wml_value_axis(side[s], (size_t)i).size;
            if (size <= 0 || size > INT32_MAX || rest[s] > INT32_MAX) return false;
            rest[s] *= size;
        }
    if (rest[0] != rest[1]) return false;
    /* The product of the first two is the same: one of them is enough. */
    for (size_t i = 0; i < 2; i++) {
        if (wml_same_axis(in, i, out, i) || says_same(r, n, in, i)) return true;
        if (like && (wml_same_axis(like, i, out, i) || says_same(r, n, like, i))) return true;
    }
    return false;
}

static struct wml_value *unscaled(struct wml_pass_run *r, struct wml_value *v, bool scaled, double *factor)
{
    struct wml_value *up;
    while (scaled && (up = wml_scaled_from(r, v, factor))) v = up;
    return v;
}

bool wml_heads_from_split(struct wml_pass_run *r, struct wml_value *v, double factor, bool scaled, struct wml_heads *out)
{
    *out = (struct wml_heads){.bsnh_factor = factor};
    if (wml_value_rank(v) != 4) return false;
    out->bsnh = unscaled(r, v, scaled, &out->bsnh_factor);
    out->heads = wml_value_axis(v, 2).size;
    out->size = wml_value_axis(v, 3).size;
    if (out->heads <= 0 || out->size <= 0) return false;
    const struct wml_node *n = out->bsnh->def;
    if (!n || !wml_reshape_keeps_two(r, n, NULL) || wml_value_rank(n->in[0]) != 3) return true;
    out->flat_factor = out->bsnh_factor;
    out->flat = unscaled(r, n->in[0], scaled, &out->flat_factor);
    return true;
}

bool wml_heads_of(struct wml_pass_run *r, struct wml_value *v, bool scaled, struct wml_heads *out)
{
    double factor = 1;
    v = unscaled(r, v, scaled, &factor);
    if (wml_value_rank(v) == 3 && v->def && wml_node_is(v->def, "Reshape") && wml_node_in(v->def, 0)) {
        const struct wml_value *in = v->def->in[0];
        if (wml_value_rank(in) != 4 || !wml_same_axis(in, 2, v, 1) || !wml_same_axis(in, 3, v, 2)) return false;
        v = unscaled(r, v->def->in[0], scaled, &factor);
    }
    struct wml_heads whole = {.bnsh = v, .bnsh_factor = factor, .heads = -1}, split;
    if (wml_value_rank(v) != 4) return false;
    whole.heads = wml_value_axis(v, 1).size;
    whole.size = wml_value_axis(v, 3).size;
    if (wml_is_transpose(v->def, 0, 2, 1, 3) && wml_heads_from_split(r, v->def->in[0], factor, scaled, &split)) {
        split.bnsh = v;
        split.bnsh_factor = factor;
        whole = split;
    }
    *out = whole;
    return whole.heads > 0 && whole.size > 0;
}

/* A constant vector of n elements, ones in front left out. */
static bool is_row(const struct wml_value *v, int64_t n)
{
    const struct wml_tensor *t = wml_constant_of(v);
    return t && t->dims.len == 1 && t->dims.at[0] == n;
}

static bool is_private(const struct wml_value *v)
{
    return v->n_uses == 1 && !v->n_outputs && !v->pinned;
}

bool wml_projection_of(struct wml_pass_run *r, struct wml_value *v, bool closed, struct wml_projection *out)
{
    const struct wml_node *n = v->def;
    (void)r;
    *out = (struct wml_projection){.product = v};
    if (!n || wml_value_rank(v) < 2 || (closed && !is_private(v))) return false;
    int64_t width = wml_value_axis(v, (size_t)wml_value_rank(v) - 1).size;
    if (wml_node_is(n, "Add") && n->n_in == 2) {
        size_t row = is_row(wml_node_in(n, 0), width) ? 0 : 1;
        if (!is_row(wml_node_in(n, row), width) || !wml_node_in(n, 1 - row)) return false;
        out->bias = n->in[row];
        out->product = n->in[1 - row];
        n = out->product->def;
        if (closed && !is_private(out->product)) return false;
    }
    if (!n || !wml_node_is(n, "MatMul") || !wml_node_in(n, 0)) return false;
    const struct wml_tensor *w = wml_constant_of(wml_node_in(n, 1));
    if (!w || w->dims.len != 2 || w->dims.at[1] != width || w->dtype != (int32_t)wml_value_elem(n->in[0])) return false;
    out->x = n->in[0];
    out->w = n->in[1];
    return true;
}
