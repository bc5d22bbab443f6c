/* Values whose last axis is one half written twice: proof by walking up to concat(f, f) or to a constant, and the
 * half by making the same way again with half the width. */
#include "passes/doubled.h"

#include <string.h>

enum { MAX_DEPTH = 16, MAX_RANK = 8 };

static int64_t last_size(const struct wml_value *v)
{
    int64_t rank = wml_value_rank(v);
    return rank > 0 ? wml_value_axis(v, (size_t)rank - 1).size : -1;
}

static bool constant_is_doubled(struct wml_pass_run *r, const struct wml_value *v)
{
    struct wml_tensor *t = wml_constant_of(v);
    struct wml_span bytes;
    int64_t last = last_size(v);
    if (!t || last < 2 || last % 2 || !wml_dtype_info(t->dtype) || wml_dtype_info(t->dtype)->bits % 8 || t->dtype == WML_STRING) return false;
    if (!wml_tensor_bytes(r->model, t, &bytes, NULL)) return false;
    size_t row = (size_t)last * wml_dtype_info(t->dtype)->bits / 8;
    for (size_t at = 0; at + row <= bytes.len; at += row)
        if (memcmp(bytes.ptr + at, bytes.ptr + at + row / 2, row / 2) != 0) return false;
    return true;
}

/* The operands that carry the last axis: bit i for input i. 0: the operator is not one of those looked through. */
static unsigned carriers(struct wml_pass_run *r, const struct wml_node *n)
{
    static const char *const unary[] = {"Cos", "Sin", "Cast", "Identity", "Neg"}, *const binary[] = {"Mul", "Add", "Sub", "Div"};
    int64_t rank = n->out[0] ? wml_value_rank(n->out[0]) : -1, data = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    const int64_t *axes;
    size_t len;
    unsigned found = 0;
    if (rank < 1 || data < 0) return 0;
    for (size_t i = 0; i < WML_COUNT(unary); i++)
        if (wml_node_is(n, unary[i])) return 1;
    for (size_t i = 0; i < WML_COUNT(binary); i++)
        if (wml_node_is(n, binary[i]) && n->n_in == 2)
            for (unsigned k = 0; k < 2; k++)
                if (wml_value_rank(n->in[k]) != 0 && last_size(n->in[k]) != 1) found |= 1u << k;
    if (found) return found;
    if (wml_node_is(n, "Gather")) { /* rows */
        int64_t axis = wml_attr_int(n, "axis", 0);
        return data >= 2 && axis != -1 && axis != data - 1;
    }
    if (wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Squeeze") || wml_node_is(n, "Slice")) {
        bool grows = wml_node_is(n, "Unsqueeze"), slices = wml_node_is(n, "Slice");
        int64_t *v;
        if (slices && n->n_in > 3) {
            if (!wml_constant_of(wml_node_in(n, 3)) || !wml_constant_ints(r, n->in[3], &v, &len)) return 0;
            axes = v;
        } else if (slices) axes = wml_attr_ints(n, "axes", &len);
        else if (!wml_axes_of(r, n, &axes, &len)) return 0;
        if (!axes) return 0;
        for (size_t i = 0; i < len; i++)
            if ((axes[i] < 0 ? axes[i] + (grows ? rank : data) : axes[i]) == (grows ? rank : data) - 1) return 0;
        return 1;
    }
    return 0;
}

static bool is_concat_of_two(const struct wml_node *n)
{
    int64_t axis = wml_attr_int(n, "axis", 0), rank = n->out[0] ? wml_value_rank(n->out[0]) : -1;
    return wml_node_is(n, "Concat") && n->n_in == 2 && n->in[0] == n->in[1] && (axis == -1 || (rank > 0 && axis == rank - 1));
}

static bool is_doubled(struct wml_pass_run *r, struct wml_value *v, unsigned depth)
{
    int64_t last = last_size(v);
    struct wml_node *n = v->def;
    if (wml_value_rank(v) > MAX_RANK) return false;
    if (wml_constant_of(v)) return constant_is_doubled(r, v);
    if (!n || n->out[0] != v || last < 2 || last % 2 || depth == MAX_DEPTH) return false;
    if (is_concat_of_two(n)) return true;
    unsigned which = carriers(r, n);
    for (unsigned i = 0; i < 2; i++)
        if (which >> i & 1 && (last_size(n->in[i]) != last || !is_doubled(r, n->in[i], depth + 1))) return false;
    return which != 0;
}

bool wml_is_doubled(struct wml_pass_run *r, struct wml_value *v)
{
    return is_doubled(r, v, 0);
}

/* Bytes [offset, offset + n) of the first halves of the rows. */
static bool first_halves(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    size_t half = *(const size_t *)arg;
    (void)err;
    while (n) {
        size_t in_row = (size_t)(offset % half), take = WML_MIN(half - in_row, n);
        memcpy(out, src.ptr + offset / half * half * 2 + in_row, take);
        out += take, offset += take, n -= take;
    }
    return true;
}

static struct wml_value *half_of_constant(struct wml_pass_run *r, struct wml_value *v)
{
    struct wml_tensor *t = wml_constant_of(v);
    struct wml_span bytes = {0};
    int64_t dims[MAX_RANK];
    size_t rank = t->dims.len, *half = WML_NEW(&r->model->arena, size_t);
    wml_tensor_bytes(r->model, t, &bytes, NULL); /* was read to compare */
    for (size_t i = 0; i < rank; i++) dims[i] = t->dims.at[i];
    dims[rank - 1] /= 2;
    *half = (size_t)dims[rank - 1] * wml_dtype_info(t->dtype)->bits / 8;
    struct wml_derived how = {.source = t, .size = bytes.len / 2, .produce = first_halves, .arg = half};
    return wml_graph_add_init(v->graph, v->name, wml_tensor_derive(r->model, (enum wml_dtype)t->dtype, rank, dims, &how));
}

static struct wml_type *half_type(struct wml_pass_run *r, const struct wml_value *v)
{
    struct wml_axis axis[MAX_RANK];
    int64_t rank = wml_value_rank(v);
    for (int64_t i = 0; i < rank; i++) axis[i] = wml_value_axis(v, (size_t)i);
    axis[rank - 1] = (struct wml_axis){.size = axis[rank - 1].size / 2};
    return wml_type_tensor(r->model, wml_value_elem(v), rank, axis);
}

struct wml_value *wml_half_of(struct wml_pass_run *r, struct wml_value *v)
{
    struct wml_node *n = v->def, *copy;
    struct wml_value *half;
    if (v->mark) return (struct wml_value *)(uintptr_t)v->mark;
    if (wml_constant_of(v)) {
        half = half_of_constant(r, v);
    } else if (is_concat_of_two(n)) {
        half = n->in[0];
    } else {
        unsigned which = carriers(r, n);
        struct wml_value *in[2] = {0};
        for (unsigned i = 0; i < 2; i++)
            if (which >> i & 1) in[i] = wml_half_of(r, n->in[i]);
        copy = wml_node_new(n, "", wml_arena_cstr(r->scratch, n->op_type));
        copy->name = wml_model_unique(r->model, n->name.len ? n->name : n->op_type);
        wml_attrs_copy(copy, n);
        for (size_t i = 0; i < n->n_in; i++) wml_node_set_input(copy, i, i < 2 && in[i] ? in[i] : n->in[i]);
        half = wml_node_add_output(copy, v->name);
        wml_value_set_type(half, half_type(r, v));
    }
    v->mark = (uint64_t)(uintptr_t)half;
    return half;
}

static bool clear_marks(void *arg, struct wml_graph *g)
{
    (void)arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    return true;
}

void wml_doubled_begin(struct wml_pass_run *r)
{
    wml_model_each_graph(r->model, clear_marks, NULL);
}
