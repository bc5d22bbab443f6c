/* Reshape, Transpose, Reshape through rank 6 and above -> the same three with neighbouring axes merged, where
 * they stay neighbours: many NPUs stop at rank 5 or 4. */
#include "passes/pattern.h"

enum { MAX_RANK = 16, HIGH = 6 };

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *shape = wml_match_value(m, "s");
    const struct wml_node *t = wml_match_node(m, "t");
    int64_t *dims, merged[MAX_RANK], known = 1, total = 0, new_perm[MAX_RANK];
    size_t rank, len, group_of[MAX_RANK], n = 0, start[MAX_RANK];
    const int64_t *perm = wml_attr_ints(t, "perm", &len);
    if (!wml_constant_ints(m->r, shape, &dims, &rank) || rank < HIGH || rank > MAX_RANK || !perm || len != rank)
        return wml_match_refuse(m, "no constant shape of rank 6 and more with a permutation");
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] == 0) return wml_match_refuse(m, "a size is copied from the input");
        if (dims[i] > 0) known *= dims[i];
    }
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            if (!wml_value_count(x, &total) || total % known) return wml_match_refuse(m, "an open size");
            dims[i] = total / known;
        }
    /* Runs of output axes that are neighbours in the input: each becomes one axis. */
    for (size_t i = 0; i < rank; i++) {
        if (i && perm[i] == perm[i - 1] + 1) continue;
        start[n++] = i;
    }
    if (n == rank) return wml_match_refuse(m, "no axes that stay neighbours");
    for (size_t k = 0; k < n; k++) { /* group k of the output starts at input axis perm[start[k]] */
        size_t at = 0;
        for (size_t j = 0; j < n; j++) at += perm[start[j]] < perm[start[k]];
        group_of[k] = at;
        size_t end = k + 1 < n ? start[k + 1] : rank;
        merged[at] = 1;
        for (size_t i = start[k]; i < end; i++) merged[at] *= dims[perm[i]];
    }
    for (size_t k = 0; k < n; k++) new_perm[k] = (int64_t)group_of[k];
    struct wml_value *in[2] = {x, wml_match_ints(m, "shape", n, merged)};
    struct wml_value *low = wml_match_add(m, "Reshape", "low_rank", 2, in);
    struct wml_value *y = wml_match_add(m, "Transpose", "low_rank_transposed", 1, &low);
    wml_attr_set_ints(y->def, "perm", n, new_perm);
    in[0] = y;
    in[1] = wml_match_value(m, "o");
    struct wml_node *last = wml_match_replace(m, "", "Reshape", 2, in);
    if (wml_attr_int(m->root, "allowzero", 0)) wml_attr_set_int(last, "allowzero", 1);
    return true;
}

static bool no_copied_sizes(struct wml_match *m)
{
    int64_t *dims;
    size_t rank;
    if (!wml_constant_ints(m->r, wml_match_value(m, "o"), &dims, &rank)) return false;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] == 0) return wml_match_refuse(m, "the last Reshape copies sizes of the high rank");
    return rewrite(m);
}

static const struct wml_rule rules[] = {{"Reshape(t:Transpose(Reshape(x, $s)), $o)", no_copied_sizes, 0, 5}};

const struct wml_pass wml_pass_highdimRTR_lowdimRTR = {
    .name = "highdimRTR-lowdimRTR", .category = "rewrite", .pipe = "rewrite", .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Do Reshape, Transpose, Reshape through rank 6 and above in a lower rank",
};
