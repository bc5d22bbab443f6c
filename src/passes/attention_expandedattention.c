/* ONNX's Attention (opset 23) written out, for targets without it: scale split over Q and K, MatMul, mask, Softmax,
 * MatMul. Only the form without past, causal mask, softcap and grouped heads; a boolean mask is turned into one
 * that is added. */
#include "passes/pattern.h"

#include <math.h>

static bool is_plain(struct wml_match *m, const struct wml_node *n)
{
    if (wml_attr_int(n, "is_causal", 0)) return wml_match_refuse(m, "causal");
    if (wml_attr_float(n, "softcap", 0) != 0) return wml_match_refuse(m, "softcap");
    if (wml_attr_int(n, "qk_matmul_output_mode", 0)) return wml_match_refuse(m, "its inner product is an output");
    for (size_t i = 4; i < n->n_in; i++)
        if (n->in[i]) return wml_match_refuse(m, "past keys or lengths are inputs");
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return wml_match_refuse(m, "present keys are outputs");
    for (size_t i = 0; i < 3; i++)
        if (wml_value_rank(wml_node_in(n, i)) != 4) return wml_match_refuse(m, "not of rank 4");
    for (size_t i = 1; i < 3; i++)
        if (wml_value_axis(n->in[i], 1).size < 0 || wml_value_axis(n->in[i], 1).size != wml_value_axis(n->in[0], 1).size)
            return wml_match_refuse(m, "grouped or open numbers of heads");
    return wml_is_float(n->in[0]) || wml_match_refuse(m, "no float");
}

static bool rewrite(struct wml_match *m)
{
    static const int64_t swap[] = {0, 1, 3, 2};
    const struct wml_node *n = m->root;
    if (!is_plain(m, n)) return false;
    struct wml_value *q = n->in[0], *k = n->in[1], *v = n->in[2], *mask = wml_node_in(n, 3), *pair[2];
    enum wml_dtype dtype = wml_value_elem(q);
    int64_t depth = wml_value_axis(q, 3).size;
    double scale = (double)wml_attr_float(n, "scale", 0);
    if (scale == 0) scale = depth > 0 ? 1 / sqrt((double)depth) : 0;
    if (!(scale > 0)) return wml_match_refuse(m, "no scale, and the size of a head is not known");
    struct wml_value *root = wml_match_scalar(m, "attention_scale", dtype, sqrt(scale));
    k = wml_match_add(m, "Transpose", "attention_kt", 1, &k);
    wml_attr_set_ints(k->def, "perm", 4, swap);
    pair[0] = k, pair[1] = root;
    k = wml_match_add(m, "Mul", "attention_k", 2, pair);
    pair[0] = q;
    q = wml_match_add(m, "Mul", "attention_q", 2, pair);
    pair[0] = q, pair[1] = k;
    struct wml_value *s = wml_match_add(m, "MatMul", "attention_scores", 2, pair);
    if (mask) {
        if (wml_value_elem(mask) == WML_BOOL) {
            struct wml_value *where[3] = {mask, wml_match_scalar(m, "attention_kept", dtype, 0),
                                          wml_match_scalar(m, "attention_masked", dtype, dtype == WML_F16 ? -65504 : -3.4028234663852886e38)};
            mask = wml_match_add(m, "Where", "attention_mask", 3, where);
        }
        pair[0] = s, pair[1] = mask;
        s = wml_match_add(m, "Add", "attention_masked_scores", 2, pair);
    }
    s = wml_match_add(m, "Softmax", "attention_weights", 1, &s);
    wml_attr_set_int(s->def, "axis", -1);
    pair[0] = s, pair[1] = v;
    wml_match_replace(m, "", "MatMul", 2, pair);
    return true;
}

static const struct wml_rule rules[] = {{"Attention(q, k, v...)", rewrite, 0, 23}};

const struct wml_pass wml_pass_attention_expandedattention = {
    .name = "attention-expandedattention", .category = "rewrite", .pipe = "rewrite", .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Write Attention of ONNX out as MatMul, Softmax, MatMul",
};
