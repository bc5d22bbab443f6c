/* A constant Pad of spatial axes goes into the pads of the Conv or pool behind it. Conv and AveragePool pad with
 * zero (the pool must then count the padding), MaxPool with minus infinity. */
#include "passes/match.h"

#include <float.h>

enum { MAX_SPATIAL = 4 };

struct pad {
    struct wml_node *node;
    int64_t rank, pads[2 * MAX_SPATIAL]; /* as Conv writes them: all begins, all ends */
    double value;
};

static bool pads_of(struct wml_pass_run *r, struct wml_node *n, struct pad *p)
{
    const int64_t *v;
    int64_t *in;
    size_t len;
    *p = (struct pad){.node = n};
    if (!n || !wml_node_is(n, "Pad") || !wml_str_is(wml_attr_str(n, "mode", WML_STR("constant")), "constant")) return false;
    if (n->n_in > 1) {
        if (wml_node_in(n, 3) || !wml_constant_of(n->in[1]) || !wml_constant_ints(r, n->in[1], &in, &len)) return false;
        v = in;
        if (wml_node_in(n, 2) && !wml_constant_scalar(r, n->in[2], &p->value)) return false;
    } else {
        v = wml_attr_ints(n, "pads", &len);
        p->value = (double)wml_attr_float(n, "value", 0);
    }
    if (!v || len % 2 || len < 6 || len > 2 * (MAX_SPATIAL + 2)) return false;
    p->rank = (int64_t)len / 2;
    for (int64_t i = 0; i < p->rank; i++) {
        int64_t begin = v[i], end = v[p->rank + i];
        if (begin < 0 || end < 0 || (i < 2 && (begin || end))) return false;
        if (i < 2) continue;
        p->pads[i - 2] = begin;
        p->pads[p->rank - 2 + i - 2] = end;
    }
    return true;
}

static bool has_pads(const struct wml_node *n)
{
    size_t len;
    const int64_t *v = wml_attr_ints(n, "pads", &len);
    for (size_t i = 0; v && i < len; i++)
        if (v[i]) return true;
    return false;
}

static bool takes(struct wml_pass_run *r, const struct wml_node *n, const struct pad *p)
{
    struct wml_str same = wml_attr_str(n, "auto_pad", WML_STR("NOTSET"));
    if (!wml_str_is(same, "NOTSET") && !wml_str_is(same, "VALID")) return false;
    if (wml_node_is(n, "Conv")) return p->value == 0;
    if (wml_attr_int(n, "ceil_mode", 0) || wml_attr_ints(n, "dilations", &(size_t){0})) return false;
    if (wml_node_is(n, "AveragePool"))
        return p->value == 0 && (!has_pads(n) || wml_attr_int(n, "count_include_pad", 0) == 1);
    (void)r;
    return wml_node_is(n, "MaxPool") && n->n_out == 1 && p->value <= -(double)FLT_MAX;
}

/* Pools must not get a pad as large as their window. */
static bool fits(const struct wml_node *n, const int64_t *pads, size_t spatial)
{
    size_t len;
    const int64_t *kernel = wml_attr_ints(n, "kernel_shape", &len);
    if (wml_node_is(n, "Conv")) return true;
    if (!kernel || len != spatial) return false;
    for (size_t i = 0; i < spatial; i++)
        if (pads[i] >= kernel[i] || pads[spatial + i] >= kernel[i]) return false;
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct pad p;
    size_t len;
    bool pool = wml_node_is(n, "AveragePool") || wml_node_is(n, "MaxPool");
    if ((!pool && !wml_node_is(n, "Conv")) || !pads_of(r, wml_node_producer(n, 0), &p) || p.node->graph != n->graph) return true;
    if (!takes(r, n, &p)) {
        wml_pass_refuse(r, n, "it pads in another way");
        return true;
    }
    if (wml_value_only_user(p.node->out[0]) != n || p.node->out[0]->pinned) return true;
    size_t spatial = (size_t)p.rank - 2;
    const int64_t *old = wml_attr_ints(n, "pads", &len);
    if (old && len != 2 * spatial) return true;
    for (size_t i = 0; i < 2 * spatial; i++) p.pads[i] += old ? old[i] : 0;
    if (!fits(n, p.pads, spatial)) {
        wml_pass_refuse(r, n, "the padding is as large as the window");
        return true;
    }
    wml_attr_set_ints(n, "pads", 2 * spatial, p.pads);
    wml_attr_remove(n, "auto_pad");
    if (wml_node_is(n, "AveragePool")) wml_attr_set_int(n, "count_include_pad", 1);
    wml_node_set_input(n, 0, p.node->in[0]);
    wml_pass_applied(r, p.node->op_type, p.node->name);
    wml_node_remove(p.node);
    return true;
}

const struct wml_pass wml_pass_pad_fusion = {
    .name = "pad-fusion", .category = "misc", .pipe = "ort_graph", .ort_name = "Pad_Fusion", .level = 1, .on = true, .visit = visit,
    .summary = "Put a constant Pad into the pads of the Conv or pool behind it",
};
