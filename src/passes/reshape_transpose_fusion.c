/* Reshape, Transpose, Reshape that merge axes, move them together and take them apart again -> one Transpose:
 * [b, h, t, d] -> [b * h, t, d] -> [b * h, d, t] -> [b, h, d, t], as exporters write the keys of attention.
 * Above rank 5 the three stay: NPUs like few axes. */
#include "passes/match.h"

enum { MAX_RANK = 5 };

/* Axes of the input that one axis of the merged shape stands for. */
struct group {
    size_t first, n;
};

/* The merged shape: axes that stay, and one that several became. */
static bool groups_of(const struct wml_value *x, const struct wml_value *merged, struct group *g)
{
    if (wml_value_rank(x) <= wml_value_rank(merged)) return false; /* or not known */
    size_t n = (size_t)wml_value_rank(x), m = (size_t)wml_value_rank(merged), left = 0, right = 0;
    while (left < m && wml_same_axis(x, left, merged, left)) left++;
    while (left + right < m && wml_same_axis(x, n - 1 - right, merged, m - 1 - right)) right++;
    if (m - left - right != 1) return false;
    for (size_t j = 0; j < m; j++) {
        if (j < left) g[j] = (struct group){j, 1};
        else if (j == left) g[j] = (struct group){left, n - left - right};
        else g[j] = (struct group){j + n - m, 1};
    }
    return true;
}

/* The order of x's axes in out, by way of the groups; every axis but one must be seen to fit. */
static bool order_of(const struct wml_value *x, const struct wml_value *out, const struct group *g, const int64_t *perm, size_t m, int64_t *order)
{
    size_t n = 0, open = 0;
    for (size_t j = 0; j < m; j++)
        for (size_t k = 0; k < g[perm[j]].n; k++) order[n++] = (int64_t)(g[perm[j]].first + k);
    for (size_t i = 0; i < n; i++) {
        if (wml_same_axis(x, (size_t)order[i], out, i)) continue;
        bool known = wml_value_axis(x, (size_t)order[i]).size >= 0 && wml_value_axis(out, i).size >= 0;
        if (known || open++) return false;
    }
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *last)
{
    struct wml_node *t = wml_node_is(last, "Reshape") ? wml_node_producer(last, 0) : NULL;
    struct wml_node *first = t && wml_node_is(t, "Transpose") ? wml_node_producer(t, 0) : NULL;
    struct group g[MAX_RANK];
    int64_t order[MAX_RANK];
    size_t m = 0;
    if (!first || !wml_node_is(first, "Reshape") || t->graph != last->graph || first->graph != last->graph || !wml_node_in(first, 0)) return true;
    struct wml_value *x = first->in[0], *merged = first->out[0], *out = wml_node_out(last, 0);
    const int64_t *perm = wml_attr_ints(t, "perm", &m);
    if (!out || !perm || wml_value_rank(x) > MAX_RANK || wml_value_rank(x) != wml_value_rank(out) || wml_value_rank(merged) != (int64_t)m) return true;
    if (wml_value_only_user(t->out[0]) != last || t->out[0]->pinned) return true;
    if (m < 2 || !groups_of(x, merged, g) || !order_of(x, out, g, perm, m, order)) return true;
    struct wml_node *n = wml_node_new(last, "", "Transpose");
    n->name = t->name;
    t->name = WML_STR("");
    n->metadata = t->metadata;
    wml_node_set_input(n, 0, x);
    wml_attr_set_ints(n, "perm", (size_t)wml_value_rank(x), order);
    wml_node_take_output(n, 0, out);
    wml_pass_applied(r, last->op_type, last->name);
    wml_prune(last);
    return true;
}

const struct wml_pass wml_pass_reshape_transpose_fusion = {
    .name = "reshape-transpose-fusion", .category = "layout", .on = true, .visit = visit,
    .summary = "Turn Reshape, Transpose, Reshape that merge axes for a while into one Transpose",
};
