/* Softmax over the last axis of x + mask becomes com.microsoft::BiasSoftmax, where the mask broadcasts in one
 * of the two ways that operator has. */
#include "passes/pattern.h"

enum { MAX_RANK = 8 };

/* ORT's operator sees the data as [batch, rest] from `axis` on. Inner broadcast: the bias repeats over leading
 * axes (its own are the last ones, all equal). */
static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *b = wml_match_value(m, "b"), *in[2] = {x, b};
    int64_t rank = wml_value_rank(x), brank = wml_value_rank(b), dx[MAX_RANK], db[MAX_RANK], axis;
    size_t n = SIZE_MAX, nb = SIZE_MAX, k = 0;
    if (!wml_is_float(x) || rank < 2 || rank > MAX_RANK || brank < 1 || brank > rank)
        return wml_match_refuse(m, "type or ranks are not known");
    if (!wml_static_dims(x, 0, dx, &n) || !wml_static_dims(b, 0, db, &nb)) return wml_match_refuse(m, "sizes are not fixed");
    axis = wml_attr_int(m->root, "axis", wml_model_opset(m->r->model, "") < 13 ? 1 : -1);
    if (axis < 0) axis += rank;
    if (axis != rank - 1) return wml_match_refuse(m, "not over the last axis");
    if (db[brank - 1] != dx[rank - 1]) return wml_match_refuse(m, "the bias does not fill the last axis");
    /* Leading ones of the bias, then axes equal to those of the data. */
    for (int64_t i = 0; i < brank; i++) {
        int64_t want = dx[rank - brank + i];
        if (db[i] == 1 && want != 1 && k == (size_t)i) k++;
        else if (db[i] != want) return wml_match_refuse(m, "the bias broadcasts within");
    }
    struct wml_node *s = wml_match_replace(m, "com.microsoft", "BiasSoftmax", 2, in);
    wml_attr_set_int(s, "axis", axis);
    wml_attr_set_int(s, "is_inner_broadcast", 0);
    return true;
}

static const struct wml_rule rules[] = {{"Softmax(Add(x, b))", rewrite, 0, 0}};

const struct wml_pass wml_pass_bias_softmax_fusion = {
    .name = "bias-softmax-fusion", .category = "activation", .pipe = "ort_graph", .ort_name = "BiasSoftmaxFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .only_for = "cuda", .rules = rules, .n_rules = WML_COUNT(rules), .summary = "Turn Add and Softmax into BiasSoftmax of com.microsoft",
};
