/* The constant operand of a batched MatMul becomes a sum with a zero that the runtime cannot fold, since OpenVINO's
 * GPU plugin before 2026.2 chooses a wrong kernel for constant ones. The zero says whether an element of the
 * first graph input is below itself: no NaN or infinity gets into it. */
#include "passes/match.h"

struct zeros {
    struct wml_pass_run *r;
    struct wml_value *zero[WML_DTYPE_COUNT];
};

static struct wml_value *add(struct wml_graph *g, struct wml_node *before, const char *op, struct wml_value *a, struct wml_value *b)
{
    struct wml_node *n = before ? wml_node_new(before, "", op) : wml_graph_append(g, "", op);
    n->name = wml_model_unique(g->model, WML_STR("winml_ovgpu_untie"));
    wml_node_set_input(n, 0, a);
    if (b) wml_node_set_input(n, 1, b);
    return wml_node_add_output(n, WML_STR("winml_ovgpu_untie"));
}

static struct wml_value *cast(struct wml_graph *g, struct wml_node *before, struct wml_value *v, int dtype)
{
    struct wml_value *y = add(g, before, "Cast", v, NULL);
    wml_attr_set_int(y->def, "to", dtype);
    return y;
}

static struct wml_value *ints(struct wml_graph *g, int64_t v)
{
    return wml_graph_add_init(g, WML_STR("winml_ovgpu_untie_const"), wml_tensor_i64s(g->model, 1, &v));
}

/* A scalar zero of this type: the sum of (e < e) over the first element of the first input, if there is one. */
static struct wml_value *zero_of(struct zeros *z, int dtype)
{
    struct wml_graph *g = z->r->model->graph;
    struct wml_value *x = NULL;
    if (z->zero[dtype]) return z->zero[dtype];
    for (size_t i = 0; i < g->inputs.len && !x; i++) {
        int elem = (int)wml_value_elem(g->inputs.at[i]);
        if (!g->inputs.at[i]->init && elem != WML_UNDEFINED && elem != WML_STRING) x = g->inputs.at[i];
    }
    if (!x) return NULL;
    struct wml_node *at = g->first;
    struct wml_value *flat = add(g, at, "Reshape", x, ints(g, -1)), *one = add(g, at, "Slice", flat, ints(g, 0));
    wml_node_add_input(one->def, ints(g, 1));
    struct wml_value *e = cast(g, at, one, WML_F32), *sum = add(g, at, "ReduceSum", cast(g, at, add(g, at, "Less", e, e), WML_F32), NULL);
    wml_attr_set_int(sum->def, "keepdims", 0);
    return z->zero[dtype] = cast(g, at, sum, dtype);
}

static bool visit(void *arg, struct wml_node *n)
{
    struct zeros *z = arg;
    const struct wml_tensor *a = wml_constant_of(wml_node_in(n, 0)), *b = wml_constant_of(wml_node_in(n, 1));
    if (!wml_node_is(n, "MatMul") || n->graph->owner || !a == !b) return true;
    const struct wml_tensor *t = a ? a : b;
    if (t->dims.len < 3 || (t->dtype != WML_F32 && t->dtype != WML_F16 && t->dtype != WML_F64)) return true;
    size_t slot = a ? 0 : 1;
    struct wml_value *zero = zero_of(z, t->dtype);
    if (!zero) return wml_pass_skip(z->r, "the graph has no tensor input to make a zero of");
    wml_node_set_input(n, slot, add(n->graph, n, "Add", n->in[slot], zero));
    wml_pass_applied(z->r, n->op_type, n->name);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    struct zeros z = {.r = r};
    (void)err;
    if (wml_model_opset(r->model, "") < 10) return wml_pass_skip(r, "Slice takes inputs from opset 10");
    for (struct wml_node *n = r->model->graph->first, *next; n; n = next) {
        next = n->next;
        if (!visit(&z, n)) return false;
    }
    return true;
}

const struct wml_pass wml_pass_untie_constant_batched_matmul = {
    .name = "untie-constant-batched-matmul", .category = "surgery", .pipe = "surgery", .run = run,
    .summary = "Hide constant operands of batched MatMuls from OpenVINO's GPU plugin before 2026.2",
};
