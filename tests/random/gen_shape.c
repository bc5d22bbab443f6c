/* Operators that move elements: views, slices, gathers, joins; and arithmetic on shapes. */
#include "gen.h"

#define ALL (GEN_ANY | GEN_H)

static void shuffle(struct gen *g, size_t n, int64_t *p)
{
    for (size_t i = 0; i < n; i++) p[i] = (int64_t)i;
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)gen_int(g, 0, (int64_t)i - 1);
        int64_t t = p[i - 1];
        p[i - 1] = p[k];
        p[k] = t;
    }
}

static bool make_transpose(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 6);
    int64_t p[GEN_RANK];
    shuffle(g, a.rank, p);
    if (gen_chance(g, 15)) { /* no perm: all axes turned round */
        int64_t dim[GEN_RANK];
        for (size_t i = 0; i < a.rank; i++) dim[i] = a.dim[a.rank - 1 - i];
        gen_out(g, GEN_NODE(g, "Transpose", &a), a.t, a.rank, dim, a.most);
        return true;
    }
    if (gen_chance(g, 30) && a.rank > 1) { /* two axes */
        for (size_t i = 0; i < a.rank; i++) p[i] = (int64_t)i;
        p[a.rank - 1] = (int64_t)a.rank - 2;
        p[a.rank - 2] = (int64_t)a.rank - 1;
    }
    gen_transpose(g, a, p);
    return true;
}

/* Splits and joins sizes at random: another shape of as many elements. */
static size_t regroup(struct gen *g, const struct gen_value *a, int64_t *dim)
{
    size_t rank = 0;
    for (size_t i = 0; i < a->rank; i++) {
        int64_t d = a->dim[i];
        if (rank && gen_chance(g, 35)) dim[rank - 1] *= d;
        else if (d > 3 && d % 2 == 0 && rank + 2 < 6 && gen_chance(g, 30)) {
            dim[rank++] = gen_chance(g, 50) ? 2 : d / 2;
            dim[rank] = d / dim[rank - 1];
            rank++;
        } else dim[rank++] = d;
        if (rank < 5 && gen_chance(g, 12)) dim[rank++] = 1;
        if (rank >= 6) break;
    }
    int64_t have = 1;
    for (size_t i = 0; i < rank; i++) have *= dim[i];
    int64_t all = gen_count(a);
    if (have != all || !rank) {
        dim[0] = all;
        rank = 1;
    }
    return rank;
}

static bool make_reshape(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 0, 6);
    int64_t dim[GEN_RANK];
    size_t rank = regroup(g, &a, dim);
    if (gen_chance(g, 10)) {
        rank = a.rank;
        memcpy(dim, a.dim, sizeof dim);
    }
    gen_reshape(g, a, rank, dim);
    return true;
}

static bool make_flatten(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank), dim[2] = {1, 1};
    for (int64_t i = 0; i < (int64_t)a.rank; i++) dim[i >= axis] *= a.dim[i];
    struct wml_node *n = GEN_NODE(g, "Flatten", &a);
    wml_attr_set_int(n, "axis", axis);
    gen_out(g, n, a.t, 2, dim, a.most);
    return true;
}

static bool make_squeeze(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 6);
    int64_t axes[GEN_RANK], dim[GEN_RANK];
    size_t n = 0, rank = 0, ones = 0;
    for (size_t i = 0; i < a.rank; i++) ones += a.dim[i] == 1;
    bool all = gen_chance(g, 15) && !g->batch;
    for (size_t i = 0; i < a.rank; i++) {
        if (a.dim[i] == 1 && (all || gen_chance(g, 60))) axes[n++] = gen_chance(g, 50) ? (int64_t)i : (int64_t)i - (int64_t)a.rank;
        else dim[rank++] = a.dim[i];
    }
    if (!n || (all && n != ones)) return false;
    gen_out(g, gen_axes_node(g, "Squeeze", &a, all ? 0 : n, axes, 13), a.t, rank, dim, a.most);
    return true;
}

static bool make_unsqueeze(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 0, 4);
    int64_t axes[2], dim[GEN_RANK];
    size_t n = (size_t)gen_int(g, 1, 2), rank = a.rank + n, k = 0;
    axes[0] = gen_int(g, 0, (int64_t)rank - (int64_t)n);
    axes[1] = axes[0] + gen_int(g, 1, (int64_t)rank - 1 - axes[0] > 0 ? (int64_t)rank - 1 - axes[0] : 1);
    for (size_t i = 0; i < rank; i++) {
        bool fresh = (int64_t)i == axes[0] || (n > 1 && (int64_t)i == axes[1]);
        dim[i] = fresh ? 1 : a.dim[k++];
    }
    gen_out(g, gen_axes_node(g, "Unsqueeze", &a, n, axes, 13), a.t, rank, dim, a.most);
    return true;
}

static bool make_concat(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5), b, in[4];
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), dim[GEN_RANK];
    size_t n = (size_t)gen_int(g, 1, 4);
    memcpy(dim, a.dim, sizeof dim);
    in[0] = a;
    for (size_t k = 1; k < n; k++) {
        bool fits = gen_find(g, ALL, a.rank, a.rank, &b) && b.t == a.t;
        for (size_t i = 0; i < a.rank && fits; i++) fits = (int64_t)i == axis || b.dim[i] == a.dim[i];
        if (!fits && gen_chance(g, 50)) {
            int64_t own[GEN_RANK];
            memcpy(own, a.dim, sizeof own);
            own[axis] = gen_int(g, 1, 3);
            b = gen_const(g, a.t, a.rank, own, a.t == WML_BOOL ? 0 : -1, 1);
        } else if (!fits) {
            b = a;
        }
        in[k] = b;
        dim[axis] += b.dim[axis];
    }
    struct wml_node *node = wml_graph_append(g->g, "", "Concat");
    for (size_t k = 0; k < n; k++) wml_node_add_input(node, in[k].v);
    wml_attr_set_int(node, "axis", gen_chance(g, 50) ? axis : axis - (int64_t)a.rank);
    gen_out(g, node, a.t, a.rank, dim, a.most + 2);
    return true;
}

static bool make_split(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), part[4] = {0}, left = a.dim[axis], dim[GEN_RANK];
    size_t n = 0;
    if (left < 2) return false;
    while (left && n < 3) {
        part[n] = gen_int(g, 1, left);
        left -= part[n++];
    }
    part[n - 1] += left;
    bool even = a.dim[axis] % 2 == 0 && gen_chance(g, 40);
    if (even) {
        n = 2;
        part[0] = part[1] = a.dim[axis] / 2;
    }
    struct wml_node *node;
    if (even && gen_chance(g, 60)) node = GEN_NODE(g, "Split", &a);
    else if (g->opset >= 13) {
        struct gen_value s = gen_ints(g, n, part);
        node = GEN_NODE(g, "Split", &a, &s);
    } else {
        node = GEN_NODE(g, "Split", &a);
        wml_attr_set_ints(node, "split", n, part);
    }
    if (node->n_in == 1 && g->opset >= 18) wml_attr_set_int(node, "num_outputs", (int64_t)n);
    wml_attr_set_int(node, "axis", axis);
    memcpy(dim, a.dim, sizeof dim);
    for (size_t i = 0; i < n; i++) {
        dim[axis] = part[i];
        gen_out(g, node, a.t, a.rank, dim, a.most);
    }
    return true;
}

static struct gen_value slice(struct gen *g, struct gen_value a, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    int64_t dim[GEN_RANK], d = a.dim[axis];
    memcpy(dim, a.dim, sizeof dim);
    dim[axis] = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    if (dim[axis] < 0) dim[axis] = 0;
    bool open = step > 0 && end == d && gen_chance(g, 50), back = start > 0 && gen_chance(g, 25);
    int64_t s = back ? start - d : start, e = open ? INT64_C(9223372036854775807) : end;
    if (step < 0 && end == -1) e = -d - 1;
    struct gen_value vs = gen_ints(g, 1, &s), ve = gen_ints(g, 1, &(int64_t){open ? INT64_C(1) << 40 : e}), va = {0}, vt = {0};
    if (axis || gen_chance(g, 70) || step != 1) va = gen_ints(g, 1, &axis);
    if (step != 1 || gen_chance(g, 30)) vt = gen_ints(g, 1, &step);
    return gen_out(g, GEN_NODE(g, "Slice", &a, &vs, &ve, &va, &vt), a.t, a.rank, dim, a.most);
}

static bool make_slice(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), d = a.dim[axis];
    if (!d) return false;
    int64_t way = gen_int(g, 0, 9);
    if (way == 0) slice(g, a, axis, 0, d, 1);                           /* everything */
    else if (way == 1) slice(g, a, axis, d - 1, -1, -1);                /* backwards */
    else if (way == 2) slice(g, a, axis, 0, d, 2);
    else if (way < 6) { /* tiles of the axis */
        int64_t cut = gen_int(g, 0, d), from = gen_chance(g, 85) ? cut : gen_int(g, 0, d);
        slice(g, a, axis, 0, cut, 1);
        slice(g, a, axis, from, d, 1);
    } else {
        int64_t start = gen_int(g, 0, d - 1);
        slice(g, a, axis, start, gen_int(g, start, d), 1);
    }
    return true;
}

static bool make_gather(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), d = a.dim[axis], dim[GEN_RANK];
    if (!d) return false;
    size_t ir = (size_t)gen_int(g, 0, 2), rank = 0;
    int64_t idim[2] = {gen_int(g, 1, 3), gen_int(g, 1, 3)};
    double x[9];
    bool run = gen_chance(g, 40);
    int64_t first = gen_int(g, 0, d - 1);
    for (int64_t i = 0; i < 9; i++) x[i] = (double)(run && first + i < d ? first + i : gen_int(g, 0, d - 1) - (gen_chance(g, 15) ? d : 0));
    struct gen_value index = gen_fill(g, gen_chance(g, 80) ? WML_I64 : WML_I32, ir, idim, x);
    for (size_t i = 0; i < a.rank; i++) {
        if ((int64_t)i != axis) dim[rank++] = a.dim[i];
        else
            for (size_t k = 0; k < ir; k++) dim[rank++] = idim[k];
    }
    if (rank > 6) return false;
    struct wml_node *n = GEN_NODE(g, "Gather", &a, &index);
    if (axis || gen_chance(g, 60)) wml_attr_set_int(n, "axis", axis);
    gen_out(g, n, a.t, rank, dim, a.most);
    return true;
}

static bool make_gather_elements(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F | GEN_I, 1, 4);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1);
    if (!gen_count(&a)) return false;
    struct gen_value index = gen_const(g, WML_I64, a.rank, a.dim, 0, (double)a.dim[axis] - 1);
    struct wml_node *n = GEN_NODE(g, "GatherElements", &a, &index);
    wml_attr_set_int(n, "axis", axis);
    gen_like(g, n, &a, a.most);
    return true;
}

static bool make_gather_nd(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F | GEN_I, 1, 4);
    int64_t n = gen_int(g, 1, 3), idim[2] = {n, 1}, dim[GEN_RANK] = {n};
    if (!gen_count(&a)) return false;
    double x[3];
    bool keep = gen_chance(g, 50) && a.dim[0] <= 3;
    if (keep) idim[0] = dim[0] = n = a.dim[0];
    for (int64_t i = 0; i < n; i++) x[i] = (double)(keep ? i : gen_int(g, 0, a.dim[0] - 1));
    for (size_t i = 1; i < a.rank; i++) dim[i] = a.dim[i];
    struct gen_value index = gen_fill(g, WML_I64, 2, idim, x);
    gen_out(g, GEN_NODE(g, "GatherND", &a, &index), a.t, a.rank, dim, a.most);
    return true;
}

static bool make_scatter_nd(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4);
    if (!gen_count(&a)) return false;
    int64_t idim[2] = {1, 1}, dim[GEN_RANK];
    memcpy(dim, a.dim, sizeof dim);
    dim[0] = 1;
    struct gen_value index = gen_const(g, WML_I64, 2, idim, 0, (double)a.dim[0] - 1), u = gen_const(g, a.t, a.rank, dim, -1, 1);
    gen_like(g, GEN_NODE(g, "ScatterND", &a, &index, &u), &a, a.most + 1);
    return true;
}

static bool make_expand(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 0, 4);
    int64_t dim[GEN_RANK], spelt[GEN_RANK];
    size_t more = (size_t)gen_int(g, 0, 1), rank = a.rank + more;
    bool same = gen_chance(g, 30);
    if (same) rank = a.rank, more = 0;
    for (size_t i = 0; i < rank; i++) {
        int64_t d = i < more ? 1 : a.dim[i - more];
        dim[i] = d == 1 && !same ? gen_int(g, 1, 3) : d;
        spelt[i] = dim[i] == d && gen_chance(g, 30) ? 1 : dim[i];
    }
    struct gen_value y = a, s = gen_ints(g, rank, spelt);
    y.rank = rank;
    memcpy(y.dim, dim, sizeof dim);
    if (gen_count(&y) > 4096) return false;
    gen_out(g, GEN_NODE(g, "Expand", &a, &s), a.t, rank, dim, a.most);
    return true;
}

static bool make_tile(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_ANY, 1, 4);
    int64_t times[GEN_RANK], dim[GEN_RANK];
    bool none = gen_chance(g, 35);
    for (size_t i = 0; i < a.rank; i++) {
        times[i] = none ? 1 : gen_int(g, 1, 2);
        dim[i] = a.dim[i] * times[i];
    }
    if (gen_count(&a) > 512) return false;
    struct gen_value s = gen_ints(g, a.rank, times);
    gen_out(g, GEN_NODE(g, "Tile", &a, &s), a.t, a.rank, dim, a.most);
    return true;
}

static bool make_pad(struct gen *g)
{
    static const char *const mode[] = {"constant", "constant", "constant", "edge", "reflect"};
    struct gen_value a = gen_pick(g, GEN_F, 1, 4), v = {0};
    int64_t pads[2 * GEN_RANK], dim[GEN_RANK];
    const char *m = mode[gen_int(g, 0, 4)];
    bool none = gen_chance(g, 15);
    for (size_t i = 0; i < a.rank; i++) {
        int64_t most = m[0] == 'r' && a.dim[i] < 2 ? 0 : 1;
        if (none || (a.rank > 2 && i < 2 && gen_chance(g, 85))) most = 0;
        pads[i] = gen_int(g, 0, most);
        pads[i + a.rank] = gen_int(g, 0, most);
        dim[i] = a.dim[i] + pads[i] + pads[i + a.rank];
    }
    struct gen_value p = gen_ints(g, 2 * a.rank, pads);
    if (gen_chance(g, 50)) v = gen_fill(g, WML_F32, 0, NULL, &(double){gen_chance(g, 70) ? 0 : 1.5});
    struct wml_node *n = GEN_NODE(g, "Pad", &a, &p, &v);
    if (m[0] != 'c' || gen_chance(g, 50)) wml_attr_set_str(n, "mode", wml_str(m));
    gen_out(g, n, a.t, a.rank, dim, a.most + 1.5);
    return true;
}

static bool make_shape(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 1, 5);
    int64_t n = (int64_t)a.rank;
    struct wml_node *node = GEN_NODE(g, gen_chance(g, 85) ? "Shape" : "Size", &a);
    bool size = wml_node_is(node, "Size");
    if (!size && g->opset >= 15 && gen_chance(g, 30)) {
        int64_t start = gen_int(g, 0, n - 1);
        wml_attr_set_int(node, "start", start);
        n -= start;
    }
    gen_out(g, node, WML_I64, !size, &n, 100);
    return true;
}

/* Reshape or Expand by a shape that is computed from another value's. */
static bool make_computed_shape(struct gen *g)
{
    struct gen_value a = gen_pick(g, ALL, 2, 4), b = a, part[2], x;
    int64_t n = (int64_t)a.rank, two = 2, dim[2];
    struct gen_value s = gen_out(g, GEN_NODE(g, "Shape", &b), WML_I64, 1, &n, 100);
    x = gen_fill(g, WML_I64, 0, NULL, &(double){0});
    struct wml_node *take = GEN_NODE(g, "Gather", &s, &x);
    wml_attr_set_int(take, "axis", 0);
    struct gen_value first = gen_out(g, take, WML_I64, 0, NULL, 100);
    part[0] = gen_out(g, gen_axes_node(g, "Unsqueeze", &first, 1, (const int64_t[]){0}, 13), WML_I64, 1, (const int64_t[]){1}, 100);
    part[1] = gen_ints(g, 1, (const int64_t[]){-1});
    struct wml_node *join = GEN_NODE(g, "Concat", &part[0], &part[1]);
    wml_attr_set_int(join, "axis", 0);
    struct gen_value shape = gen_out(g, join, WML_I64, 1, &two, 1e9); /* -1: not to be read as a number */
    if (!gen_count(&a)) return false;
    dim[0] = a.dim[0];
    dim[1] = gen_count(&a) / a.dim[0];
    gen_out(g, GEN_NODE(g, "Reshape", &a, &shape), a.t, 2, dim, a.most);
    return true;
}

static bool make_constant_of_shape(struct gen *g)
{
    int64_t dim[4], one = 1;
    size_t rank = (size_t)gen_int(g, 0, 3);
    for (size_t i = 0; i < rank; i++) dim[i] = gen_dim(g);
    struct gen_value s = gen_ints(g, rank, dim);
    struct wml_node *n = GEN_NODE(g, "ConstantOfShape", &s);
    enum wml_dtype t = WML_F32;
    if (gen_chance(g, 70)) {
        float x = (float)gen_real(g, -1, 2);
        int64_t k = gen_int(g, 0, 2);
        t = gen_chance(g, 60) ? WML_F32 : WML_I64;
        wml_attr_set_tensor(n, "value", wml_tensor_copy(g->m, t, 1, &one, t == WML_F32 ? (void *)&x : (void *)&k, t == WML_F32 ? 4 : 8, NULL));
    }
    gen_out(g, n, t, rank, dim, 2);
    return true;
}

static bool make_range(struct gen *g)
{
    enum wml_dtype t = gen_chance(g, 60) ? WML_I64 : WML_F32;
    int64_t n = gen_int(g, 1, 6);
    struct gen_value a = gen_fill(g, t, 0, NULL, &(double){0}), b = gen_fill(g, t, 0, NULL, &(double){(double)n}),
                     c = gen_fill(g, t, 0, NULL, &(double){1});
    gen_out(g, GEN_NODE(g, "Range", &a, &b, &c), t, 1, &n, 6);
    return true;
}

static bool make_depth(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 4, 4);
    int64_t dim[4] = {a.dim[0]};
    bool to_space = gen_chance(g, 50);
    if (to_space ? a.dim[1] % 4 : a.dim[2] % 2 || a.dim[3] % 2) return false;
    dim[1] = to_space ? a.dim[1] / 4 : a.dim[1] * 4;
    dim[2] = to_space ? a.dim[2] * 2 : a.dim[2] / 2;
    dim[3] = to_space ? a.dim[3] * 2 : a.dim[3] / 2;
    struct wml_node *n = GEN_NODE(g, to_space ? "DepthToSpace" : "SpaceToDepth", &a);
    wml_attr_set_int(n, "blocksize", 2);
    if (to_space && gen_chance(g, 50)) wml_attr_set_str(n, "mode", WML_STR("CRD"));
    gen_out(g, n, a.t, 4, dim, a.most);
    return true;
}

static bool make_one_hot(struct gen *g)
{
    struct gen_value a, depth = gen_fill(g, WML_I64, 0, NULL, &(double){4}), v;
    if (!gen_find(g, GEN_I, 0, 3, &a)) return false;
    v = gen_fill(g, WML_F32, 1, (const int64_t[]){2}, (const double[]){0, 1});
    int64_t dim[GEN_RANK];
    memcpy(dim, a.dim, sizeof dim);
    dim[a.rank] = 4;
    gen_out(g, GEN_NODE(g, "OneHot", &a, &depth, &v), WML_F32, a.rank + 1, dim, 1);
    return true;
}

static bool make_top_k(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 4);
    int64_t last = (int64_t)a.rank - 1, dim[GEN_RANK];
    if (!gen_count(&a)) return false; /* ORT divides by zero */
    memcpy(dim, a.dim, sizeof dim);
    dim[last] = gen_int(g, 1, a.dim[last]);
    struct gen_value k = gen_ints(g, 1, &dim[last]);
    struct wml_node *n = GEN_NODE(g, "TopK", &a, &k);
    gen_out(g, n, a.t, a.rank, dim, a.most);
    gen_out(g, n, WML_I64, a.rank, dim, 10);
    return true;
}

static bool make_trilu(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4);
    struct wml_node *n = GEN_NODE(g, "Trilu", &a);
    if (gen_chance(g, 50)) wml_attr_set_int(n, "upper", 0);
    gen_like(g, n, &a, a.most);
    return true;
}

const struct gen_op gen_shape_ops[] = {
    {"transpose", make_transpose, 18, 0}, {"reshape", make_reshape, 16, 0}, {"flatten", make_flatten, 4, 0},
    {"squeeze", make_squeeze, 5, 0}, {"unsqueeze", make_unsqueeze, 7, 0}, {"concat", make_concat, 9, 0},
    {"split", make_split, 6, 0}, {"slice", make_slice, 11, 0}, {"gather", make_gather, 9, 0},
    {"gather elements", make_gather_elements, 2, 0}, {"gather nd", make_gather_nd, 3, 0}, {"scatter nd", make_scatter_nd, 2, 0},
    {"expand", make_expand, 6, 0}, {"tile", make_tile, 4, 0}, {"pad", make_pad, 6, 0}, {"shape", make_shape, 6, 0},
    {"computed shape", make_computed_shape, 5, 0}, {"constant of shape", make_constant_of_shape, 3, 0}, {"range", make_range, 2, 0},
    {"depth", make_depth, 2, 0}, {"one hot", make_one_hot, 1, 0}, {"top k", make_top_k, 2, 0}, {"trilu", make_trilu, 1, 14},
};
const size_t n_gen_shape_ops = WML_COUNT(gen_shape_ops);
