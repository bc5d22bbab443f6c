/* Attention and RotaryEmbedding of opset 23 written out for the opsets before: heads split and repeated, past joined, masks
 * as numbers that are added, rows with nothing to attend to as zeros. Sizes may stay open, but for heads. */
#include "opset/adapt.h"

#include <math.h>

struct attention {
    struct wml_value *q, *k, *v, *bias; /* of rank 4: batch, heads, sequence, size */
    struct wml_value *past;             /* length of it; NULL: none */
    enum wml_dtype type;
    int64_t q_heads, kv_heads, size;
    bool flat; /* given as rank 3 */
};

static const int64_t swap_heads[] = {0, 2, 1, 3}, swap_last[] = {0, 1, 3, 2};

static struct wml_value *transposed(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, const int64_t *perm)
{
    struct wml_value *out = wml_opset_op(s, n, "Transpose", v);
    wml_attr_set_ints(out->def, "perm", 4, perm);
    return out;
}

static struct wml_value *joined(struct wml_opset_step *s, struct wml_node *n, struct wml_value *a, struct wml_value *b, int64_t axis)
{
    struct wml_value *out = wml_opset_op(s, n, "Concat", a, b);
    wml_attr_set_int(out->def, "axis", axis);
    return out;
}

static struct wml_value *with_heads(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t heads)
{
    int64_t split[] = {0, 0, heads, -1};
    if (wml_value_rank(v) == 4) return v;
    return transposed(s, n, wml_opset_op(s, n, "Reshape", v, wml_opset_i64s(s, n, "heads", 4, split)), swap_heads);
}

static bool open_attention(struct wml_opset_step *s, struct wml_node *n, struct attention *a)
{
    if (!wml_opset_has(s, n, 3)) return false;
    int64_t rank = wml_value_rank(n->in[0]);
    a->flat = rank == 3;
    a->type = wml_opset_elem(n->in[0]);
    for (size_t i = 0; i < 3; i++)
        if ((rank != 3 && rank != 4) || wml_value_rank(n->in[i]) != rank) return wml_opset_refuse(s, "ranks of its inputs are not known");
    if (!wml_dtype_is_float(a->type)) return wml_opset_refuse(s, "the type of '%.*s' is not known", WML_ARG(n->in[0]->name));
    a->q_heads = a->flat ? wml_attr_int(n, "q_num_heads", 0) : wml_value_axis(n->in[0], 1).size;
    a->kv_heads = a->flat ? wml_attr_int(n, "kv_num_heads", 0) : wml_value_axis(n->in[1], 1).size;
    if (a->kv_heads < 1 || a->q_heads < 1 || a->q_heads % a->kv_heads) return wml_opset_refuse(s, "numbers of heads are not known or do not fit");
    a->size = wml_value_axis(n->in[0], (size_t)rank - 1).size;
    if (a->flat && a->size > 0) a->size /= a->q_heads;
    if (a->size < 1 && wml_attr_float(n, "scale", 0) == 0) return wml_opset_refuse(s, "it has no scale, and the size of a head is not known");
    a->q = with_heads(s, n, n->in[0], a->q_heads);
    a->k = with_heads(s, n, n->in[1], a->kv_heads);
    a->v = with_heads(s, n, n->in[2], a->kv_heads);
    return true;
}

/* An output beside the first, where it is read: v lives on under its name. */
static struct wml_value *also_output(struct wml_opset_step *s, struct wml_node *n, size_t slot, struct wml_value *v)
{
    struct wml_value *out = wml_node_out(n, slot);
    if (!out) return v;
    wml_opset_give(n, slot, wml_opset_op(s, n, "Identity", v));
    return v;
}

static struct wml_value *axis_size(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t axis)
{
    return wml_opset_op(s, n, "Gather", wml_opset_op(s, n, "Shape", v), wml_opset_i64(s, n, "axis", axis));
}

static void join_past(struct wml_opset_step *s, struct wml_node *n, struct attention *a)
{
    struct wml_value *key = wml_node_in(n, 4), *value = wml_node_in(n, 5);
    if (key && value) {
        a->past = axis_size(s, n, key, 2);
        a->k = joined(s, n, key, a->k, 2);
        a->v = joined(s, n, value, a->v, 2);
    }
    a->k = also_output(s, n, 1, a->k);
    a->v = also_output(s, n, 2, a->v);
}

/* Each head serves several of Q. */
static struct wml_value *repeated(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t times, int64_t heads)
{
    int64_t two = 2, wide[] = {1, 1, times, 1, 1};
    struct wml_value *first = wml_opset_op(s, n, "Shape", v), *last = wml_opset_op(s, n, "Shape", v);
    wml_attr_set_int(first->def, "end", 1);
    wml_attr_set_int(last->def, "start", 2);
    struct wml_value *shape = wml_opset_op(s, n, "Concat", first, wml_opset_i64s(s, n, "heads", 1, &heads), last);
    wml_attr_set_int(shape->def, "axis", 0);
    v = wml_opset_op(s, n, "Unsqueeze", v, wml_opset_i64s(s, n, "axes", 1, &two));
    v = wml_opset_op(s, n, "Expand", v, wml_opset_i64s(s, n, "wide", 5, wide));
    return wml_opset_op(s, n, "Reshape", v, shape);
}

/* 0 where a bool holds, else minus infinity. */
static struct wml_value *as_bias(struct wml_opset_step *s, struct wml_node *n, struct wml_value *keep, enum wml_dtype t)
{
    return wml_opset_op(s, n, "Where", keep, wml_opset_scalar(s, n, "kept", t, 0), wml_opset_scalar(s, n, "masked", t, -(double)INFINITY));
}

static struct wml_value *causal(struct wml_opset_step *s, struct wml_node *n, const struct attention *a)
{
    int64_t one = 1;
    struct wml_value *rows = wml_opset_count_axis(s, n, a->q, 2), *cols = wml_opset_count_axis(s, n, a->k, 2);
    if (a->past) rows = wml_opset_op(s, n, "Add", rows, a->past);
    rows = wml_opset_op(s, n, "Unsqueeze", rows, wml_opset_i64s(s, n, "axes", 1, &one));
    return as_bias(s, n, wml_opset_op(s, n, "GreaterOrEqual", rows, cols), a->type);
}

static bool find_bias(struct wml_opset_step *s, struct wml_node *n, struct attention *a)
{
    struct wml_value *mask = wml_node_in(n, 3);
    enum wml_dtype t = wml_opset_elem(mask);
    if (mask && t != WML_BOOL && t != a->type) return wml_opset_refuse(s, "its mask is neither bool nor known to be of the type of its data");
    if (mask) a->bias = t == WML_BOOL ? as_bias(s, n, mask, a->type) : mask;
    if (wml_attr_int(n, "is_causal", 0) != 1) return true;
    struct wml_value *triangle = causal(s, n, a);
    a->bias = a->bias ? wml_opset_op(s, n, "Add", a->bias, triangle) : triangle;
    return true;
}

static struct wml_value *softmax(struct wml_opset_step *s, struct wml_node *n, const struct attention *a, struct wml_value *x)
{
    enum wml_dtype inner = (enum wml_dtype)wml_attr_int(n, "softmax_precision", a->type);
    int64_t last = -1;
    struct wml_value *p = wml_opset_op(s, n, "Softmax", inner == a->type ? x : wml_opset_cast(s, n, x, inner));
    wml_attr_set_int(p->def, "axis", -1);
    if (inner != a->type) p = wml_opset_cast(s, n, p, a->type);
    if (!wml_node_in(n, 3)) return p;
    struct wml_value *most = wml_opset_op(s, n, "ReduceMax", a->bias, wml_opset_i64s(s, n, "axes", 1, &last));
    struct wml_value *none = wml_opset_op(s, n, "Equal", most, wml_opset_scalar(s, n, "masked", a->type, -(double)INFINITY));
    return wml_opset_op(s, n, "Where", none, wml_opset_scalar(s, n, "nothing", a->type, 0), p);
}

static struct wml_value *scores(struct wml_opset_step *s, struct wml_node *n, const struct attention *a)
{
    double scale = (double)wml_attr_float(n, "scale", 0), cap = (double)wml_attr_float(n, "softcap", 0);
    int64_t mode = wml_attr_int(n, "qk_matmul_output_mode", 0);
    struct wml_value *root = wml_opset_scalar(s, n, "scale", a->type, sqrt(scale != 0 ? scale : 1 / sqrt((double)a->size)));
    struct wml_value *k = transposed(s, n, wml_opset_op(s, n, "Mul", a->k, root), swap_last);
    struct wml_value *x = wml_opset_op(s, n, "MatMul", wml_opset_op(s, n, "Mul", a->q, root), k);
    if (mode == 0) x = also_output(s, n, 3, x);
    if (cap != 0) {
        struct wml_value *c = wml_opset_scalar(s, n, "softcap", a->type, cap);
        x = wml_opset_op(s, n, "Mul", wml_opset_op(s, n, "Tanh", wml_opset_op(s, n, "Div", x, c)), c);
    }
    if (mode == 1) x = also_output(s, n, 3, x);
    if (a->bias) x = wml_opset_op(s, n, "Add", x, a->bias);
    if (mode == 2) x = also_output(s, n, 3, x);
    x = softmax(s, n, a, x);
    return mode == 3 ? also_output(s, n, 3, x) : x;
}

bool wml_opset_attention_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct attention a = {0};
    int64_t flat[] = {0, 0, -1};
    if (wml_attr_float(n, "scale", 0) < 0) return wml_opset_refuse(s, "its scale is negative");
    if (!open_attention(s, n, &a)) return false;
    join_past(s, n, &a);
    if (!find_bias(s, n, &a)) return false;
    if (a.q_heads != a.kv_heads) {
        a.k = repeated(s, n, a.k, a.q_heads / a.kv_heads, a.q_heads);
        a.v = repeated(s, n, a.v, a.q_heads / a.kv_heads, a.q_heads);
    }
    struct wml_value *y = wml_opset_op(s, n, "MatMul", scores(s, n, &a), a.v);
    if (a.flat) y = wml_opset_op(s, n, "Reshape", transposed(s, n, y, swap_heads), wml_opset_i64s(s, n, "flat", 3, flat));
    return wml_opset_become(s, n, y);
}

static struct wml_value *part(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t from, int64_t to, int64_t step)
{
    int64_t last = -1;
    return wml_opset_op(s, n, "Slice", v, wml_opset_i64s(s, n, "from", 1, &from), wml_opset_i64s(s, n, "to", 1, &to),
                        wml_opset_i64s(s, n, "axes", 1, &last), wml_opset_i64s(s, n, "step", 1, &step));
}

/* A row of the table for every position, to be spread over the heads. */
static struct wml_value *angles(struct wml_opset_step *s, struct wml_node *n, size_t slot, int64_t axis)
{
    struct wml_value *table = n->in[slot], *at = wml_node_in(n, 3);
    if (at) table = wml_opset_op(s, n, "Gather", table, at);
    return wml_opset_op(s, n, "Unsqueeze", table, wml_opset_i64s(s, n, "axes", 1, &axis));
}

/* Each second number beside its partner. */
static struct wml_value *woven(struct wml_opset_step *s, struct wml_node *n, struct wml_value *a, struct wml_value *b)
{
    int64_t last = -1, shape[] = {0, 0, 0, -1};
    struct wml_value *at = wml_opset_i64s(s, n, "axes", 1, &last);
    struct wml_value *pairs = joined(s, n, wml_opset_op(s, n, "Unsqueeze", a, at), wml_opset_op(s, n, "Unsqueeze", b, at), -1);
    return wml_opset_op(s, n, "Reshape", pairs, wml_opset_i64s(s, n, "pairs", 4, shape));
}

bool wml_opset_rotary_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (!wml_opset_has(s, n, 3)) return false;
    int64_t rank = wml_value_rank(n->in[0]), heads = wml_attr_int(n, "num_heads", 0), width = wml_attr_int(n, "rotary_embedding_dim", 0);
    int64_t table_rank = wml_value_rank(n->in[1]), split[] = {0, 0, heads, -1}, flat[] = {0, 0, -1};
    int64_t half = table_rank > 0 ? wml_value_axis(n->in[1], (size_t)table_rank - 1).size : width / 2;
    bool weave = wml_attr_int(n, "interleaved", 0);
    if ((rank != 3 && rank != 4) || (rank == 3 && heads < 1)) return wml_opset_refuse(s, "the rank of '%.*s' or its heads are not known", WML_ARG(n->in[0]->name));
    if (half < 1 || half > 1 << 20) return wml_opset_refuse(s, "the width of its tables is not known");
    struct wml_value *x = n->in[0];
    if (rank == 3) x = wml_opset_op(s, n, "Reshape", x, wml_opset_i64s(s, n, "heads", 4, split));
    struct wml_value *cosine = angles(s, n, 1, rank == 3 ? 2 : 1), *sine = angles(s, n, 2, rank == 3 ? 2 : 1);
    struct wml_value *a = part(s, n, x, 0, weave ? 2 * half : half, weave ? 2 : 1), *b = part(s, n, x, weave ? 1 : half, 2 * half, weave ? 2 : 1);
    struct wml_value *real = wml_opset_op(s, n, "Sub", wml_opset_op(s, n, "Mul", cosine, a), wml_opset_op(s, n, "Mul", sine, b));
    struct wml_value *imag = wml_opset_op(s, n, "Add", wml_opset_op(s, n, "Mul", sine, a), wml_opset_op(s, n, "Mul", cosine, b));
    struct wml_value *y = weave ? woven(s, n, real, imag) : joined(s, n, real, imag, -1);
    if (width) y = joined(s, n, y, part(s, n, x, 2 * half, INT64_MAX, 1), -1);
    if (rank == 3) y = wml_opset_op(s, n, "Reshape", y, wml_opset_i64s(s, n, "flat", 3, flat));
    return wml_opset_become(s, n, y);
}
