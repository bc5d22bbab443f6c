/* nn/ops.c - operators that compute: element by element, products, reductions. */
#include "nn/ops.h"

/* The sizes of two values broadcast to one. */
static struct wml_axis broadcast_axis(struct wml_axis x, struct wml_axis y)
{
    if (x.size == 1) return y;
    if (y.size == 1) return x;
    if (x.size >= 0) return x;
    if (y.size >= 0) return y;
    return wml_str_eq(x.symbol, y.symbol) ? x : (struct wml_axis){.size = -1};
}

static bool fits(struct wml_axis x, struct wml_axis y)
{
    return x.size < 0 || y.size < 0 || x.size == 1 || y.size == 1 || x.size == y.size;
}

static bool all_fit(const struct wml_nn_shape *x, const struct wml_nn_shape *y)
{
    for (size_t i = 1; i <= x->rank && i <= y->rank; i++)
        if (!fits(x->at[x->rank - i], y->at[y->rank - i])) return false;
    return true;
}

static struct wml_nn_shape broadcast(const struct wml_nn_shape *x, size_t nx, const struct wml_nn_shape *y, size_t ny)
{
    struct wml_nn_shape out = {.rank = nx > ny ? nx : ny};
    for (size_t i = 0; i < out.rank; i++) { /* from the last axis */
        const struct wml_axis one = {.size = 1};
        const struct wml_axis a = i < nx ? x->at[nx - 1 - i] : one, c = i < ny ? y->at[ny - 1 - i] : one;
        out.at[out.rank - 1 - i] = broadcast_axis(a, c);
    }
    return out;
}

static struct wml_value *one(struct wml_nn *b, const char *op, size_t n, struct wml_value *const *in, enum wml_dtype dtype,
                             const struct wml_nn_shape *shape)
{
    return wml_nn_out(b, wml_nn_node(b, "", op, n, in), dtype, shape);
}

struct wml_value *wml_nn_unary(struct wml_nn *b, const char *op, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    return one(b, op, 1, &x, wml_value_elem(x), &s);
}

static struct wml_value *two(struct wml_nn *b, const char *op, struct wml_value *x, struct wml_value *y, enum wml_dtype dtype)
{
    const struct wml_nn_shape sx = wml_nn_shape(x), sy = wml_nn_shape(y), s = broadcast(&sx, sx.rank, &sy, sy.rank);
    if (!all_fit(&sx, &sy)) return wml_nn_misfit(b, op, &sx, &sy);
    return one(b, op, WML_VALUES(x, y), dtype, &s);
}

struct wml_value *wml_nn_binary(struct wml_nn *b, const char *op, struct wml_value *x, struct wml_value *y)
{
    return b->failed || !x || !y ? NULL : two(b, op, x, y, wml_value_elem(x));
}

struct wml_value *wml_nn_compare(struct wml_nn *b, const char *op, struct wml_value *x, struct wml_value *y)
{
    return b->failed || !x || !y ? NULL : two(b, op, x, y, WML_BOOL);
}

struct wml_value *wml_nn_add(struct wml_nn *b, struct wml_value *x, struct wml_value *y) { return wml_nn_binary(b, "Add", x, y); }
struct wml_value *wml_nn_sub(struct wml_nn *b, struct wml_value *x, struct wml_value *y) { return wml_nn_binary(b, "Sub", x, y); }
struct wml_value *wml_nn_mul(struct wml_nn *b, struct wml_value *x, struct wml_value *y) { return wml_nn_binary(b, "Mul", x, y); }
struct wml_value *wml_nn_div(struct wml_nn *b, struct wml_value *x, struct wml_value *y) { return wml_nn_binary(b, "Div", x, y); }

struct wml_value *wml_nn_scale(struct wml_nn *b, struct wml_value *x, double by)
{
    return by == 1.0 || !x ? x : wml_nn_mul(b, x, wml_nn_number(b, wml_value_elem(x), by));
}

struct wml_value *wml_nn_shift(struct wml_nn *b, struct wml_value *x, double by)
{
    return wml_nn_add(b, x, wml_nn_float(b, by));
}

struct wml_value *wml_nn_clip(struct wml_nn *b, struct wml_value *x, double low, double high)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    return one(b, "Clip", WML_VALUES(x, wml_nn_float(b, low), wml_nn_float(b, high)), WML_F32, &s);
}

struct wml_value *wml_nn_where(struct wml_nn *b, struct wml_value *c, struct wml_value *x, struct wml_value *y)
{
    if (b->failed || !c || !x || !y) return NULL;
    const struct wml_nn_shape sc = wml_nn_shape(c), sx = wml_nn_shape(x), sy = wml_nn_shape(y);
    const struct wml_nn_shape xy = broadcast(&sx, sx.rank, &sy, sy.rank), s = broadcast(&sc, sc.rank, &xy, xy.rank);
    return one(b, "Where", WML_VALUES(c, x, y), wml_value_elem(x), &s);
}

struct wml_value *wml_nn_cast(struct wml_nn *b, struct wml_value *x, enum wml_dtype to)
{
    if (b->failed || !x || wml_value_elem(x) == to) return x;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "Cast", 1, &x);
    wml_attr_set_int(n, "to", to);
    return wml_nn_out(b, n, to, &s);
}

struct wml_value *wml_nn_matmul(struct wml_nn *b, struct wml_value *x, struct wml_value *y)
{
    if (b->failed || !x || !y) return NULL;
    const struct wml_nn_shape sx = wml_nn_shape(x), sy = wml_nn_shape(y);
    if (sx.rank < 2 || sy.rank < 2) return wml_nn_fail(b, WML_E_INTERNAL, "MatMul of %zu and %zu axes", sx.rank, sy.rank);
    struct wml_nn_shape s = broadcast(&sx, sx.rank - 2, &sy, sy.rank - 2);
    for (size_t i = 3; i <= sx.rank && i <= sy.rank; i++)
        if (!fits(sx.at[sx.rank - i], sy.at[sy.rank - i])) return wml_nn_misfit(b, "MatMul", &sx, &sy);
    s.at[s.rank++] = sx.at[sx.rank - 2];
    s.at[s.rank++] = sy.at[sy.rank - 1];
    const int64_t k = sx.at[sx.rank - 1].size, k2 = sy.at[sy.rank - 2].size;
    if (k >= 0 && k2 >= 0 && k != k2) return wml_nn_misfit(b, "MatMul", &sx, &sy);
    return one(b, "MatMul", WML_VALUES(x, y), wml_value_elem(x), &s);
}

struct wml_value *wml_nn_gemm(struct wml_nn *b, struct wml_value *x, struct wml_value *y, struct wml_value *bias, bool trans_y)
{
    if (b->failed || !x || !y) return NULL;
    const struct wml_nn_shape s = {2, {wml_nn_axis(x, 0), wml_nn_axis(y, trans_y ? 0 : 1)}}, sx = wml_nn_shape(x), sy = wml_nn_shape(y);
    const int64_t k = sx.at[1].size, k2 = sy.at[trans_y ? 1 : 0].size;
    if (sx.rank != 2 || sy.rank != 2 || (k >= 0 && k2 >= 0 && k != k2)) return wml_nn_misfit(b, "Gemm", &sx, &sy);
    struct wml_node *n = wml_nn_node(b, "", "Gemm", bias ? 3 : 2, (struct wml_value *[]){x, y, bias});
    if (trans_y) wml_attr_set_int(n, "transB", 1);
    return wml_nn_out(b, n, wml_value_elem(x), &s);
}

struct wml_value *wml_nn_softmax(struct wml_nn *b, struct wml_value *x, int axis)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "Softmax", 1, &x);
    wml_attr_set_int(n, "axis", axis);
    return wml_nn_out(b, n, wml_value_elem(x), &s);
}

static struct wml_nn_shape without(struct wml_nn_shape s, size_t n, const int64_t *axes, bool keep)
{
    bool gone[WML_NN_MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++) {
        const int64_t at = axes[i] < 0 ? axes[i] + (int64_t)s.rank : axes[i];
        if (at >= 0 && (size_t)at < s.rank) gone[at] = true;
    }
    struct wml_nn_shape out = {0};
    for (size_t i = 0; i < s.rank; i++) {
        if (!gone[i]) out.at[out.rank++] = s.at[i];
        else if (keep) out.at[out.rank++] = (struct wml_axis){.size = 1};
    }
    return out;
}

struct wml_value *wml_nn_reduce(struct wml_nn *b, const char *op, struct wml_value *x, size_t n, const int64_t *axes, bool keep)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = without(wml_nn_shape(x), n, axes, keep);
    const bool listed = b->opset >= 18 || strcmp(op, "ReduceSum") == 0; /* axes are an input since 18, of the sum since 13 */
    struct wml_node *node = wml_nn_node(b, "", op, 1, &x);
    if (listed) wml_node_set_input(node, 1, wml_nn_ints(b, n, axes));
    else wml_attr_set_ints(node, "axes", n, axes);
    wml_attr_set_int(node, "keepdims", keep);
    return wml_nn_out(b, node, wml_value_elem(x), &s);
}

struct wml_value *wml_nn_argmax(struct wml_nn *b, struct wml_value *x, int axis, bool keep)
{
    if (b->failed || !x) return NULL;
    const int64_t at = axis;
    const struct wml_nn_shape s = without(wml_nn_shape(x), 1, &at, keep);
    struct wml_node *n = wml_nn_node(b, "", "ArgMax", 1, &x);
    wml_attr_set_int(n, "axis", axis);
    wml_attr_set_int(n, "keepdims", keep);
    return wml_nn_out(b, n, WML_I64, &s);
}

struct wml_value *wml_nn_largest(struct wml_nn *b, struct wml_value *x, int64_t k)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[s.rank - 1] = (struct wml_axis){.size = k};
    struct wml_node *n = wml_nn_node(b, "", "TopK", 2, (struct wml_value *[]){x, wml_nn_ints(b, 1, &k)});
    wml_nn_out(b, n, wml_value_elem(x), &s);
    return wml_nn_out(b, n, WML_I64, &s);
}

struct wml_value *wml_nn_cumsum(struct wml_nn *b, struct wml_value *x, int axis)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    return one(b, "CumSum", WML_VALUES(x, wml_nn_int(b, WML_I64, axis)), wml_value_elem(x), &s);
}
