/* Slice: bounds are attributes below opset 10, inputs from there; both are clamped as the operator says. */
#include "passes/slice_info.h"

struct bounds {
    const int64_t *start, *end, *axes, *steps; /* axes, steps NULL: the default */
    size_t n;
};

static bool input(struct wml_pass_run *r, const struct wml_node *n, size_t slot, size_t want, const int64_t **out)
{
    int64_t *v;
    size_t len;
    const struct wml_value *in = wml_node_in(n, slot);
    *out = NULL;
    if (!in) return true;
    if (!wml_constant_of(in) || !wml_constant_ints(r, in, &v, &len) || len != want) return false;
    *out = v;
    return true;
}

static bool bounds_of(struct wml_pass_run *r, const struct wml_node *n, struct bounds *b)
{
    int64_t *v;
    size_t len;
    if (n->n_in == 1) {
        b->start = wml_attr_ints(n, "starts", &b->n);
        b->end = wml_attr_ints(n, "ends", &len);
        if (!b->start || !b->end || len != b->n) return false;
        b->axes = wml_attr_ints(n, "axes", &len);
        return !b->axes || len == b->n;
    }
    if (!wml_node_in(n, 1) || !wml_constant_of(n->in[1]) || !wml_constant_ints(r, n->in[1], &v, &b->n)) return false;
    b->start = v;
    return input(r, n, 2, b->n, &b->end) && b->end && input(r, n, 3, b->n, &b->axes) && input(r, n, 4, b->n, &b->steps);
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

bool wml_slice_of(struct wml_pass_run *r, const struct wml_node *n, struct wml_slice *out)
{
    struct bounds b = {0};
    int64_t rank = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    uint32_t seen = 0;
    *out = (struct wml_slice){0};
    if (!wml_node_is(n, "Slice") || rank < 0 || rank > WML_SLICE_AXES || !bounds_of(r, n, &b) || b.n > (size_t)rank) return false;
    for (size_t i = 0; i < b.n; i++) {
        int64_t axis = b.axes ? b.axes[i] : (int64_t)i, step = b.steps ? b.steps[i] : 1;
        if (axis < 0) axis += rank;
        if (axis < 0 || axis >= rank || !step || step == INT64_MIN || (seen >> axis & 1)) return false;
        seen |= 1u << axis;
        int64_t size = wml_value_axis(n->in[0], (size_t)axis).size, start = b.start[i], end = b.end[i], count;
        if (size < 0) return false;
        start = start < 0 ? start + size : start;
        end = end < -size ? -1 : end < 0 ? end + size : end;
        if (step > 0) {
            start = clamp(start, 0, size);
            end = clamp(end, 0, size);
            count = end > start ? (end - start + step - 1) / step : 0;
        } else {
            start = clamp(start, 0, size - 1);
            end = clamp(end, -1, size - 1);
            count = start > end ? (start - end - step - 1) / -step : 0;
        }
        size_t at = out->n++;
        for (; at && out->axis[at - 1] > (size_t)axis; at--) {
            out->axis[at] = out->axis[at - 1];
            out->start[at] = out->start[at - 1];
            out->count[at] = out->count[at - 1];
            out->step[at] = out->step[at - 1];
            out->size[at] = out->size[at - 1];
        }
        out->axis[at] = (size_t)axis;
        out->start[at] = start;
        out->count[at] = count;
        out->step[at] = step;
        out->size[at] = size;
    }
    return true;
}

bool wml_slice_is_whole(const struct wml_slice *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->start[i] != 0 || s->count[i] != s->size[i] || (s->step[i] != 1 && s->size[i] > 1)) return false;
    return true;
}

/* One step up: what this Slice or Split was made from, and where v starts in it. */
static bool cut_from(struct wml_pass_run *r, const struct wml_value *v, size_t axis, struct wml_value **of, int64_t *start)
{
    const struct wml_node *n = v->def;
    struct wml_slice s;
    *start = 0;
    if (!n) return false;
    *of = wml_node_in(n, 0);
    if (wml_slice_of(r, n, &s)) {
        if (s.n != 1 || s.axis[0] != axis || s.step[0] != 1) return false;
        *start = s.start[0];
        return true;
    }
    int64_t along = wml_attr_int(n, "axis", 0);
    if (!wml_node_is(n, "Split") || (along < 0 ? along + wml_value_rank(v) : along) != (int64_t)axis) return false;
    for (size_t i = 0; i < v->def_slot; i++) {
        if (!n->out[i] || wml_value_rank(n->out[i]) <= (int64_t)axis || wml_value_axis(n->out[i], axis).size < 0) return false;
        *start += wml_value_axis(n->out[i], axis).size;
    }
    return true;
}

bool wml_piece_of(struct wml_pass_run *r, struct wml_value *v, size_t axis, struct wml_piece *out)
{
    int64_t start;
    struct wml_value *of;
    if (wml_value_rank(v) <= (int64_t)axis || wml_value_axis(v, axis).size < 0) return false;
    *out = (struct wml_piece){v, 0, wml_value_axis(v, axis).size};
    while (cut_from(r, out->of, axis, &of, &start)) {
        out->of = of;
        out->start += start;
    }
    return true;
}
