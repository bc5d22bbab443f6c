/* MatMul + Add -> Reshape to two axes, Gemm, Reshape back; of rank 2 Gemm alone. */
#include "passes/matmul_linear.h"

enum { MAX_RANK = 8 };

static bool rewrite(struct wml_match *m)
{
    struct wml_linear l;
    int64_t shape[MAX_RANK], flat[2];
    size_t open = 0;
    if (!wml_linear_of(m, &l)) return false;
    if (l.rank > MAX_RANK) return wml_match_refuse(m, "the rank is above %d", MAX_RANK);
    if (l.rank == 2) {
        struct wml_value *in[3] = {l.a, l.b, l.c};
        wml_match_replace(m, "", "Gemm", 3, in);
        return true;
    }
    /* One open size can be told from the others: by -1. */
    for (int64_t i = 0; i + 1 < l.rank; i++) {
        shape[i] = wml_value_axis(l.a, (size_t)i).size;
        if (shape[i] < 0) open++;
    }
    if (open > 1) return wml_match_refuse(m, "more than one size of the input is open");
    shape[l.rank - 1] = l.n;
    flat[0] = -1;
    flat[1] = l.k;
    struct wml_value *in[3] = {l.a, wml_match_ints(m, "shape", 2, flat), NULL};
    in[0] = wml_match_add(m, "Reshape", "gemm_in", 2, in);
    in[1] = l.b;
    in[2] = l.c;
    struct wml_value *out[2] = {wml_match_add(m, "Gemm", "gemm", 3, in), wml_match_ints(m, "shape", (size_t)l.rank, shape)};
    wml_match_replace(m, "", "Reshape", 2, out);
    return true;
}

static const struct wml_rule rules[] = {{WML_LINEAR_PATTERN, rewrite, 0, 7}};

const struct wml_pass wml_pass_matmuladd_reshapegemm = {
    .name = "matmuladd-reshapegemm", .category = "rewrite", .pipe = "rewrite", .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Turn MatMul and Add into Gemm, between Reshapes above rank 2",
};
