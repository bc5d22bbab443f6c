/* Mul and Add of per-channel constants behind a Conv go into its weights although views (Reshape, Squeeze,
 * Unsqueeze that keep batch and channels) or a Split or Slice of the channels stand between. One node at a time: a
 * chain is taken from its front. */
#include "passes/conv_affine.h"
#include "passes/slice_info.h"

#include <math.h>

enum { MAX_DEPTH = 64 };

struct route { /* from a value back to the Conv that it comes from */
    struct wml_conv conv;
    int64_t first, count; /* the channels it carries */
};

static bool is_view(const struct wml_node *n)
{
    return wml_node_is(n, "Reshape") || wml_node_is(n, "Squeeze") || wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Identity");
}

/* Batch and channels stay axes 0 and 1. */
static bool keeps_channels(const struct wml_node *n)
{
    const struct wml_value *x = n->in[0], *y = n->out[0];
    if (wml_value_rank(x) < 2 || wml_value_rank(y) < 2) return false;
    for (size_t i = 0; i < 2; i++)
        if (wml_value_axis(x, i).size < 0 || wml_value_axis(x, i).size != wml_value_axis(y, i).size) return false;
    return true;
}

/* The channels that output `slot` of a Split takes. */
static bool part_of_split(struct wml_pass_run *r, const struct wml_node *n, const struct wml_value *v, int64_t *first, int64_t *count)
{
    int64_t axis = wml_attr_int(n, "axis", 0), at = 0;
    (void)r;
    if (axis < 0) axis += wml_value_rank(n->in[0]);
    if (axis != 1) return false;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i] || wml_value_rank(n->out[i]) < 2) return false;
        int64_t size = wml_value_axis(n->out[i], 1).size;
        if (size < 0) return false;
        if (n->out[i] == v) {
            *first = at;
            *count = size;
            return true;
        }
        at += size;
    }
    return false;
}

/* Every reader of the value is a Slice of channels, and none but `mine` takes one of these channels. */
static bool is_alone(struct wml_pass_run *r, const struct wml_value *v, const struct wml_node *mine, int64_t first, int64_t count)
{
    if (v->n_outputs || v->pinned) return false;
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        struct wml_slice s;
        if (u->node == mine) continue;
        if (!wml_slice_of(r, u->node, &s) || s.n != 1 || s.axis[0] != 1 || s.step[0] != 1) return false;
        if (s.start[0] < first + count && first < s.start[0] + s.count[0]) return false;
    }
    return true;
}

static bool find(struct wml_pass_run *r, struct wml_node *reader, size_t slot, struct route *out)
{
    bool cut = false;
    out->first = 0;
    for (size_t depth = 0; depth < MAX_DEPTH; depth++) {
        struct wml_value *v = wml_node_in(reader, slot);
        struct wml_node *n = v ? v->def : NULL;
        struct wml_slice s;
        if (!n || n->graph != reader->graph) return false;
        bool slice = reader->mark && wml_node_is(reader, "Slice");
        if (!slice && (wml_value_only_user(v) != reader || v->pinned)) return false;
        if (wml_conv_is(n, &out->conv)) {
            if (!cut) out->count = (int64_t)out->conv.channels;
            return !slice || is_alone(r, v, reader, out->first, out->count);
        }
        if (slice) return false;
        if (is_view(n) && keeps_channels(n)) {
            reader = n;
        } else if (!cut && wml_node_is(n, "Split") && part_of_split(r, n, v, &out->first, &out->count)) {
            cut = true;
            reader = n;
        } else if (!cut && wml_slice_of(r, n, &s) && s.n == 1 && s.axis[0] == 1 && s.step[0] == 1) {
            cut = true;
            out->first = s.start[0];
            out->count = s.count[0];
            reader = n;
            n->mark = 1;
        } else {
            return false;
        }
        slot = 0;
    }
    return false;
}

/* One number per channel of the route from a constant that varies along axis 1 of y at most. */
static double *channel_values(struct wml_pass_run *r, const struct route *w, const struct wml_value *c, const struct wml_value *y)
{
    struct wml_tensor *t = wml_constant_of(c);
    int64_t rank = wml_value_rank(y);
    size_t n;
    double *in, *out;
    if (!t || t->dtype != w->conv.w->dtype || rank < (int64_t)t->dims.len) return NULL;
    for (size_t i = 0; i < t->dims.len; i++) {
        bool channel = rank - (int64_t)t->dims.len + (int64_t)i == 1 && t->dims.at[i] == w->count;
        if (t->dims.at[i] != 1 && !channel) return NULL;
    }
    if (!wml_tensor_doubles(r->model, t, &in, &n, NULL) || (n != 1 && n != (size_t)w->count)) return NULL;
    out = WML_NEW_ARRAY(r->scratch, double, (size_t)w->count);
    for (size_t i = 0; i < (size_t)w->count; i++) {
        out[i] = in[n == 1 ? 0 : i];
        if (!isfinite(out[i])) return NULL;
    }
    return out;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    bool mul = wml_node_is(n, "Mul");
    if ((!mul && !wml_node_is(n, "Add")) || !wml_node_out(n, 0)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct route w;
        struct wml_value *x = wml_node_in(n, slot);
        const double *v;
        if (!x || !wml_constant_of(wml_node_in(n, 1 - slot)) || !wml_can_bypass(n, x)) continue;
        if (!wml_same_type(x, n->out[0]) || !find(r, n, slot, &w)) continue;
        if (w.first + w.count > (int64_t)w.conv.channels || !(v = channel_values(r, &w, n->in[1 - slot], x))) continue;
        double *a = WML_NEW_ARRAY(r->scratch, double, w.conv.channels);
        for (size_t i = 0; i < w.conv.channels; i++) a[i] = mul ? 1 : 0;
        for (size_t i = 0; i < (size_t)w.count; i++) a[(size_t)w.first + i] = v[i];
        if (!wml_conv_rescale(r, &w.conv, mul ? a : NULL, mul ? NULL : a)) continue;
        struct wml_str op = n->op_type, name = n->name;
        if (wml_bypass(n, x)) wml_pass_applied(r, op, name);
        return true;
    }
    return true;
}

static bool clear_marks(struct wml_pass_run *r, struct wml_node *n)
{
    (void)r;
    n->mark = 0;
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 7) return wml_pass_skip(r, "operands broadcast by an attribute below opset 7");
    return wml_pass_each(r, clear_marks) && wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_conv_channel_affine_folding = {
    .name = "conv-channel-affine-folding", .category = "rewrite", .pipe = "algebraic_rewrite", .on = true, .run = run,
    .summary = "Fold per-channel Mul and Add into the Conv before them, through views and channel Splits",
};
