/* nn/move.c - operators that move elements: shapes, pieces, rows. */
#include <inttypes.h>
#include "base/num.h"
#include "nn/ops.h"

static size_t place(const struct wml_nn_shape *s, int axis)
{
    return axis < 0 ? s->rank - (size_t)-axis : (size_t)axis;
}

static struct wml_value *moved(struct wml_nn *b, const char *op, size_t n, struct wml_value *const *in,
                               const struct wml_nn_shape *shape)
{
    return wml_nn_out(b, wml_nn_node(b, "", op, n, in), wml_value_elem(in[0]), shape);
}

struct wml_value *wml_nn_transpose(struct wml_nn *b, struct wml_value *x, const char *perm)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_nn_shape out = {.rank = s.rank};
    int64_t order[WML_NN_MAX_RANK] = {0};
    if (strlen(perm) != s.rank) return wml_nn_fail(b, WML_E_INTERNAL, "Transpose %s of %zu axes", perm, s.rank);
    for (size_t i = 0; i < s.rank; i++) {
        order[i] = perm[i] - '0';
        out.at[i] = s.at[order[i]];
    }
    struct wml_node *n = wml_nn_node(b, "", "Transpose", 1, &x);
    wml_attr_set_ints(n, "perm", s.rank, order);
    return wml_nn_out(b, n, wml_value_elem(x), &out);
}

/* What -1 stands for, when everything else is known, or open sizes are kept on both sides. */
static struct wml_axis left_over(const struct wml_nn_shape *from, const struct wml_nn_shape *to, const bool *kept, size_t open)
{
    int64_t have = 1, taken = 1;
    struct wml_axis only = {.size = -1};
    size_t symbols = 0;
    for (size_t i = 0; i < from->rank; i++) {
        if (i < to->rank && kept[i]) continue;
        if (from->at[i].size >= 0) have *= from->at[i].size;
        else only = from->at[i], symbols++;
    }
    for (size_t i = 0; i < to->rank; i++)
        if (i != open && !(i < from->rank && kept[i])) taken *= to->at[i].size;
    if (!symbols) return (struct wml_axis){.size = taken ? have / taken : 0};
    return symbols == 1 && have == taken ? only : (struct wml_axis){.size = -1};
}

/* As many elements, as far as that is known: open sizes may cancel out, so nothing is said of them. */
static bool same_count(const struct wml_nn_shape *x, const struct wml_nn_shape *y)
{
    size_t nx = 1, ny = 1;
    for (size_t i = 0; i < x->rank; i++)
        if (x->at[i].size < 0 || !wml_mul_size(nx, (size_t)x->at[i].size, &nx)) return x->at[i].size < 0;
    for (size_t i = 0; i < y->rank; i++)
        if (y->at[i].size < 0 || !wml_mul_size(ny, (size_t)y->at[i].size, &ny)) return y->at[i].size < 0;
    return nx == ny;
}

struct wml_value *wml_nn_reshape(struct wml_nn *b, struct wml_value *x, size_t rank, const int64_t *dims)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_nn_shape out = {.rank = rank};
    bool kept[WML_NN_MAX_RANK] = {false};
    int64_t say[WML_NN_MAX_RANK] = {0};
    size_t open = rank;
    for (size_t i = 0; i < rank; i++) {
        kept[i] = dims[i] == 0 && i < s.rank;
        if (dims[i] < 0) open = i;
        out.at[i] = kept[i] ? s.at[i] : (struct wml_axis){.size = dims[i]};
        say[i] = kept[i] && s.at[i].size >= 0 ? s.at[i].size : dims[i];
    }
    if (open < rank) {
        out.at[open] = left_over(&s, &out, kept, open);
        if (out.at[open].size >= 0) say[open] = out.at[open].size;
    }
    if (!same_count(&s, &out)) return wml_nn_misfit(b, "Reshape", &s, &out);
    return moved(b, "Reshape", WML_VALUES(x, wml_nn_ints(b, rank, say)), &out);
}

static bool all_known(const struct wml_nn_shape *s, int64_t *dims)
{
    bool known = true;
    for (size_t i = 0; i < s->rank; i++) {
        dims[i] = s->at[i].size;
        known &= dims[i] >= 0;
    }
    return known;
}

/* Sizes as one list: a constant when all are known. */
static struct wml_value *sizes(struct wml_nn *b, size_t rank, struct wml_value *const *dims, const struct wml_nn_shape *shape)
{
    int64_t known[WML_NN_MAX_RANK];
    return all_known(shape, known) ? wml_nn_ints(b, rank, known) : wml_nn_concat(b, 0, rank, dims);
}

struct wml_value *wml_nn_reshape_to(struct wml_nn *b, struct wml_value *x, size_t rank, struct wml_value *const *dims,
                                    const struct wml_nn_shape *shape)
{
    if (b->failed || !x) return NULL;
    return moved(b, "Reshape", WML_VALUES(x, sizes(b, rank, dims, shape)), shape);
}

struct wml_value *wml_nn_expand(struct wml_nn *b, struct wml_value *x, size_t rank, struct wml_value *const *dims,
                                const struct wml_nn_shape *shape)
{
    if (b->failed || !x) return NULL;
    return moved(b, "Expand", WML_VALUES(x, sizes(b, rank, dims, shape)), shape);
}

struct wml_value *wml_nn_repeat(struct wml_nn *b, struct wml_value *x, int axis, struct wml_value *like, int like_axis)
{
    if (b->failed || !x || !like) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    const size_t at = place(&s, axis);
    const struct wml_axis size = wml_nn_axis(like, like_axis);
    if (size.size == 1) return x;
    s.at[at] = size;
    struct wml_value *dims[WML_NN_MAX_RANK];
    const int64_t keep = 1; /* Expand leaves an axis alone where it is asked for 1 */
    for (size_t i = 0; i < s.rank; i++) dims[i] = i == at ? wml_nn_extent(b, like, like_axis) : wml_nn_ints(b, 1, &keep);
    return wml_nn_expand(b, x, s.rank, dims, &s);
}

struct wml_value *wml_nn_flatten(struct wml_nn *b, struct wml_value *x, int axis)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    const size_t at = place(&s, axis);
    struct wml_nn_shape out = {2, {{.size = 1}, {.size = 1}}};
    for (size_t i = 0; i < s.rank; i++) {
        struct wml_axis *to = &out.at[i >= at];
        if (to->size == 1) *to = s.at[i];
        else if (s.at[i].size != 1) *to = (struct wml_axis){.size = to->size >= 0 && s.at[i].size >= 0 ? to->size * s.at[i].size : -1};
    }
    struct wml_node *n = wml_nn_node(b, "", "Flatten", 1, &x);
    wml_attr_set_int(n, "axis", (int64_t)at);
    return wml_nn_out(b, n, wml_value_elem(x), &out);
}

struct wml_value *wml_nn_squeeze(struct wml_nn *b, struct wml_value *x, size_t n, const int64_t *axes)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_nn_shape out = {0};
    for (size_t i = 0; i < s.rank; i++) {
        bool gone = false;
        for (size_t k = 0; k < n; k++) gone |= (axes[k] < 0 ? axes[k] + (int64_t)s.rank : axes[k]) == (int64_t)i;
        if (!gone) out.at[out.rank++] = s.at[i];
    }
    return moved(b, "Squeeze", WML_VALUES(x, wml_nn_ints(b, n, axes)), &out);
}

struct wml_value *wml_nn_unsqueeze(struct wml_nn *b, struct wml_value *x, size_t n, const int64_t *axes)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_nn_shape out = {.rank = s.rank + n};
    bool added[WML_NN_MAX_RANK] = {false};
    for (size_t k = 0; k < n; k++) added[axes[k] < 0 ? axes[k] + (int64_t)out.rank : axes[k]] = true;
    for (size_t i = 0, from = 0; i < out.rank; i++) out.at[i] = added[i] ? (struct wml_axis){.size = 1} : s.at[from++];
    return moved(b, "Unsqueeze", WML_VALUES(x, wml_nn_ints(b, n, axes)), &out);
}

struct wml_value *wml_nn_concat(struct wml_nn *b, int axis, size_t n, struct wml_value *const *in)
{
    for (size_t i = 0; i < n; i++)
        if (!in[i]) return NULL;
    if (b->failed || !n) return NULL;
    struct wml_nn_shape s = wml_nn_shape(in[0]);
    const size_t at = place(&s, axis);
    for (size_t i = 1; i < n; i++) {
        const struct wml_nn_shape t = wml_nn_shape(in[i]);
        for (size_t k = 0; k < s.rank; k++) {
            if (t.rank != s.rank || (k != at && s.at[k].size >= 0 && t.at[k].size >= 0 && s.at[k].size != t.at[k].size))
                return wml_nn_misfit(b, "Concat", &s, &t);
            if (k == at) s.at[k] = (struct wml_axis){.size = s.at[k].size >= 0 && t.at[k].size >= 0 ? s.at[k].size + t.at[k].size : -1};
            else if (s.at[k].size < 0) s.at[k] = t.at[k];
        }
    }
    struct wml_node *node = wml_nn_node(b, "", "Concat", n, in);
    wml_attr_set_int(node, "axis", axis);
    return wml_nn_out(b, node, wml_value_elem(in[0]), &s);
}

/* Places of a cut that counts from the front, and the size it leaves. false: it leaves the axis as it is, or fails. */
static bool cut_axis(struct wml_nn *b, struct wml_nn_cut *c, struct wml_axis *axis)
{
    const int64_t size = axis->size;
    const struct wml_nn_cut asked = *c;
    if (size >= 0 && c->step > 0) {
        if (c->from < 0) c->from += size;
        if (c->to < 0) c->to += size;
        if (c->to > size) c->to = size;
        if (c->from < 0 || c->from > c->to) {
            wml_nn_fail(b, WML_E_INTERNAL, "Slice %" PRId64 "..%" PRId64 " of %" PRId64, asked.from, asked.to, size);
            return false;
        }
        if (c->from == 0 && c->to == size && c->step == 1) return false;
        *axis = (struct wml_axis){.size = (c->to - c->from + c->step - 1) / c->step};
    } else if (size < 0 && c->step == 1 && c->from >= 0 && c->to >= c->from && c->to != INT64_MAX && (c->from > 0 || c->to == 1)) {
        *axis = (struct wml_axis){.size = c->to - c->from};
    } else {
        *axis = (struct wml_axis){.size = size >= 0 && c->from == -1 && c->to == INT64_MIN && c->step == -1 ? size : -1};
    }
    return true;
}

struct wml_value *wml_nn_cuts(struct wml_nn *b, struct wml_value *x, size_t n, const struct wml_nn_cut *cut)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    int64_t from[WML_NN_MAX_RANK], to[WML_NN_MAX_RANK], axis[WML_NN_MAX_RANK], step[WML_NN_MAX_RANK];
    size_t k = 0;
    bool stepped = false;
    for (size_t i = 0; i < n; i++) {
        struct wml_nn_cut c = cut[i];
        const size_t at = place(&s, c.axis);
        if (!cut_axis(b, &c, &s.at[at])) continue;
        from[k] = c.from, to[k] = c.to, axis[k] = (int64_t)at, step[k++] = c.step;
        stepped |= c.step != 1;
    }
    if (b->failed) return NULL;
    if (!k) return x;
    struct wml_value *in[] = {x, wml_nn_ints(b, k, from), wml_nn_ints(b, k, to), wml_nn_ints(b, k, axis), stepped ? wml_nn_ints(b, k, step) : NULL};
    return moved(b, "Slice", stepped ? 5 : 4, in, &s);
}

struct wml_value *wml_nn_slice_step(struct wml_nn *b, struct wml_value *x, int axis, int64_t from, int64_t to, int64_t step)
{
    return wml_nn_cuts(b, x, 1, &(struct wml_nn_cut){axis, from, to, step});
}

struct wml_value *wml_nn_slice(struct wml_nn *b, struct wml_value *x, int axis, int64_t from, int64_t to)
{
    return wml_nn_slice_step(b, x, axis, from, to, 1);
}

struct wml_value *wml_nn_crop(struct wml_nn *b, struct wml_value *x, int axis, int64_t rows, int64_t columns)
{
    return wml_nn_cuts(b, x, 2, (const struct wml_nn_cut[]){{axis, 0, rows, 1}, {axis + 1, 0, columns, 1}});
}

struct wml_value *wml_nn_slice_to(struct wml_nn *b, struct wml_value *x, int axis, struct wml_value *len, struct wml_axis size)
{
    if (b->failed || !x || !len) return NULL;
    if (size.size >= 0) return wml_nn_slice(b, x, axis, 0, size.size);
    struct wml_nn_shape s = wml_nn_shape(x);
    const size_t at = place(&s, axis);
    s.at[at] = size;
    const int64_t zero = 0, axes = (int64_t)at;
    return moved(b, "Slice", WML_VALUES(x, wml_nn_ints(b, 1, &zero), len, wml_nn_ints(b, 1, &axes)), &s);
}

void wml_nn_split_sizes(struct wml_nn *b, struct wml_value *x, int axis, size_t n, const int64_t *size, struct wml_value **out)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) out[i] = NULL;
    if (b->failed || !x) return;
    struct wml_nn_shape s = wml_nn_shape(x);
    const size_t at = place(&s, axis);
    for (size_t i = 0; i < n; i++) sum += size[i];
    if (s.at[at].size != sum) {
        wml_nn_fail(b, WML_E_FORMAT, "an axis of %" PRId64 " cannot be split into parts of %" PRId64 " together", s.at[at].size, sum);
        return;
    }
    struct wml_node *node = wml_nn_node(b, "", "Split", 2, (struct wml_value *[]){x, wml_nn_ints(b, n, size)});
    wml_attr_set_int(node, "axis", (int64_t)at);
    for (size_t i = 0; i < n; i++) {
        s.at[at] = (struct wml_axis){.size = size[i]};
        out[i] = wml_nn_out(b, node, wml_value_elem(x), &s);
    }
}

void wml_nn_split(struct wml_nn *b, struct wml_value *x, int axis, size_t n, struct wml_value **out)
{
    for (size_t i = 0; i < n; i++) out[i] = NULL;
    if (b->failed || !x) return;
    const int64_t size = wml_nn_axis(x, axis).size;
    if (size < 0 || size % (int64_t)n) {
        wml_nn_fail(b, WML_E_FORMAT, "an axis of %" PRId64 " cannot be split into %zu", size, n);
        return;
    }
    int64_t part[64];
    for (size_t i = 0; i < n && i < 64; i++) part[i] = size / (int64_t)n;
    wml_nn_split_sizes(b, x, axis, n, part, out);
}

struct wml_value *wml_nn_gather(struct wml_nn *b, struct wml_value *x, struct wml_value *index, int axis)
{
    if (b->failed || !x || !index) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x), si = wml_nn_shape(index);
    const size_t at = place(&s, axis);
    struct wml_nn_shape out = {0};
    for (size_t i = 0; i < s.rank; i++) {
        if (i != at) out.at[out.rank++] = s.at[i];
        for (size_t k = 0; i == at && k < si.rank; k++) out.at[out.rank++] = si.at[k];
    }
    struct wml_node *n = wml_nn_node(b, "", "Gather", 2, (struct wml_value *[]){x, index});
    if (at) wml_attr_set_int(n, "axis", (int64_t)at);
    return wml_nn_out(b, n, wml_value_elem(x), &out);
}

struct wml_value *wml_nn_pick(struct wml_nn *b, struct wml_value *x, int axis, int64_t index)
{
    return wml_nn_gather(b, x, wml_nn_int(b, WML_I64, index), axis);
}

struct wml_value *wml_nn_pick_each(struct wml_nn *b, struct wml_value *x, struct wml_value *index)
{
    if (b->failed || !x || !index) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_nn_shape out = {.rank = s.rank - 1, .at = {s.at[0]}};
    for (size_t i = 2; i < s.rank; i++) out.at[i - 1] = s.at[i];
    index = wml_nn_cast(b, index, WML_I64);
    if (wml_nn_rank(index) == 1) index = wml_nn_unsqueeze(b, index, WML_DIMS(-1));
    struct wml_node *n = wml_nn_node(b, "", "GatherND", 2, (struct wml_value *[]){x, index});
    wml_attr_set_int(n, "batch_dims", 1);
    return wml_nn_out(b, n, wml_value_elem(x), &out);
}

struct wml_value *wml_nn_pick_rows(struct wml_nn *b, struct wml_value *x, struct wml_value *index)
{
    if (b->failed || !x || !index) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[1] = wml_nn_axis(index, 1);
    struct wml_node *n = wml_nn_node(b, "", "GatherND", 2, (struct wml_value *[]){x, wml_nn_unsqueeze(b, index, WML_DIMS(-1))});
    wml_attr_set_int(n, "batch_dims", 1);
    return wml_nn_out(b, n, wml_value_elem(x), &s);
}

struct wml_value *wml_nn_gather_elements(struct wml_nn *b, struct wml_value *x, struct wml_value *index, int axis)
{
    if (b->failed || !x || !index) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(index);
    struct wml_node *n = wml_nn_node(b, "", "GatherElements", 2, (struct wml_value *[]){x, index});
    wml_attr_set_int(n, "axis", axis);
    return wml_nn_out(b, n, wml_value_elem(x), &s);
}

struct wml_value *wml_nn_pad(struct wml_nn *b, struct wml_value *x, const int64_t *pads, double value)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    bool any = false;
    for (size_t i = 0; i < s.rank; i++) {
        const int64_t more = pads[i] + pads[s.rank + i];
        any |= pads[i] || pads[s.rank + i];
        if (more) s.at[i] = (struct wml_axis){.size = s.at[i].size >= 0 ? s.at[i].size + more : -1};
    }
    if (!any) return x;
    const enum wml_dtype type = wml_value_elem(x);
    struct wml_value *with = wml_dtype_is_float(type) ? wml_nn_float(b, value) : wml_nn_int(b, type, (int64_t)value);
    return moved(b, "Pad", WML_VALUES(x, wml_nn_ints(b, 2 * s.rank, pads), with), &s);
}
