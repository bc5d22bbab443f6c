/* Transposes that keep the order of axes go; two in a row become one. */
#include "passes/match.h"

enum { MAX_RANK = 32 };

/* The permutation; without the attribute it reverses, which needs the rank. */
static bool perm_of(const struct wml_node *n, int64_t *perm, size_t *rank)
{
    size_t len;
    const int64_t *p = wml_attr_ints(n, "perm", &len);
    int64_t known = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    if (!p && known < 0) return false;
    *rank = p ? len : (size_t)known;
    if (*rank > MAX_RANK) return false;
    for (size_t i = 0; i < *rank; i++) perm[i] = p ? p[i] : (int64_t)(*rank - 1 - i);
    for (size_t i = 0; i < *rank; i++)
        if (perm[i] < 0 || (size_t)perm[i] >= *rank) return false;
    return true;
}

static bool keeps_order(const int64_t *perm, size_t rank)
{
    for (size_t i = 0; i < rank; i++)
        if (perm[i] != (int64_t)i) return false;
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    int64_t outer[MAX_RANK], inner[MAX_RANK], both[MAX_RANK];
    size_t rank, inner_rank;
    if (!wml_node_is(n, "Transpose") || !perm_of(n, outer, &rank) || !wml_node_out(n, 0)) return true;
    if (keeps_order(outer, rank)) {
        if (wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
        return true;
    }
    struct wml_node *before = wml_node_producer(n, 0);
    if (!before || !wml_node_is(before, "Transpose") || before->graph != n->graph) return true;
    if (!perm_of(before, inner, &inner_rank) || inner_rank != rank) return true;
    for (size_t i = 0; i < rank; i++) both[i] = inner[outer[i]];
    wml_node_set_input(n, 0, before->in[0]);
    wml_attr_set_ints(n, "perm", rank, both);
    wml_prune(before);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_transpose_elimination = {
    .name = "transpose-elimination", .category = "layout", .on = true, .reference_on = true, .visit = visit,
    .summary = "Remove Transposes that change nothing, join two in a row",
};
