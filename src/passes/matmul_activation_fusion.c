/* FusedMatMul and the activation behind it become one operator that only DirectML has. */
#include "passes/activations.h"
#include "passes/matmul_fused.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    static const char *const param[] = {"activation_alpha", "activation_beta"};
    struct wml_activation act;
    struct wml_node *mm = wml_node_producer(n, 0);
    if (!mm || !wml_fused_matmul_is(mm) || wml_node_is(n, "Clip") || !wml_activation_of(r, n, &act)) return true;
    struct wml_str op = n->op_type, name = n->name;
    if (!wml_activation_absorb(mm, n)) return true;
    wml_fused_matmul_make(r, mm);
    wml_node_set_op(mm, "com.microsoft", "FusedMatMulActivation");
    wml_attr_set_str(mm, "activation", act.name);
    for (size_t i = 0; i < act.n_params; i++) wml_attr_set_float(mm, param[i], act.param[i]);
    wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_matmul_activation_fusion = {
    .name = "matmul-activation-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatMulActivationFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .only_for = "dml", .needs = "matmul-transpose-fusion", .visit = visit,
    .summary = "Turn FusedMatMul and an activation into one operator of com.microsoft that DirectML has",
};
