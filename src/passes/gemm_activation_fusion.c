/* Gemm and the activation behind it become com.microsoft::FusedGemm. */
#include "passes/activations.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    static const char *const param[] = {"activation_alpha", "activation_beta"};
    struct wml_activation act;
    struct wml_node *gemm = wml_node_producer(n, 0);
    if (!gemm || !wml_node_is(gemm, "Gemm") || wml_node_is(n, "Clip") || !wml_activation_of(r, n, &act)) return true;
    if (wml_value_elem(gemm->in[0]) != WML_F32) {
        wml_pass_refuse(r, n, "FusedGemm is for float32");
        return true;
    }
    struct wml_str op = n->op_type, name = n->name;
    if (!wml_activation_absorb(gemm, n)) return true;
    wml_node_set_op(gemm, "com.microsoft", "FusedGemm");
    wml_attr_set_str(gemm, "activation", act.name);
    for (size_t i = 0; i < act.n_params; i++) wml_attr_set_float(gemm, param[i], act.param[i]);
    wml_pass_use_contrib(r);
    wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_gemm_activation_fusion = {
    .name = "gemm-activation-fusion", .category = "gemm", .pipe = "ort_graph", .ort_name = "GemmActivationFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .visit = visit, .summary = "Turn Gemm and an activation into FusedGemm of com.microsoft",
};
