/* softmax(scale * Q K^T + mask) V -> Attention of ONNX, from opset 23. Where heads are split and joined as the operator
 * does it by itself, Q, K and V go in as [batch, length, hidden]; else as [batch, heads, length, size], whatever made
 * them. */
#include "passes/attention_form.h"

#include <math.h>

struct target {
    struct wml_attention a;
    struct wml_value *in[3];
    double scale;
    bool flat;
};

static bool choose(struct target *t)
{
    struct wml_attention *a = &t->a;
    t->flat = a->q.flat && a->k.flat && a->v.flat && a->join && a->tail && !a->tail_stays;
    if (t->flat) {
        t->in[0] = a->q.flat, t->in[1] = a->k.flat, t->in[2] = a->v.flat;
        t->scale = a->scale * a->q.flat_factor * a->k.flat_factor;
    } else {
        t->in[0] = a->q.bnsh, t->in[1] = a->k.bnsh, t->in[2] = a->v.bnsh;
        t->scale = a->scale * a->q.bnsh_factor * (a->k.bnsh ? a->k.bnsh_factor : a->k.bsnh_factor);
    }
    return isfinite(t->scale) && t->scale > 0;
}

static struct wml_node *new_node(struct target *t, struct wml_node *at)
{
    struct wml_attention *a = &t->a;
    struct wml_value *mask = wml_attention_mask(a, at, false);
    if (!t->in[1]) { /* K was split and transposed in one step */
        struct wml_node *k = wml_node_new(at, "", "Transpose");
        static const int64_t perm[] = {0, 2, 1, 3};
        k->name = wml_model_unique(a->r->model, WML_STR("attention_keys"));
        wml_attr_set_ints(k, "perm", 4, perm);
        wml_node_set_input(k, 0, a->k.bsnh);
        t->in[1] = wml_node_add_output(k, WML_STR("attention_keys"));
    }
    struct wml_node *n = wml_node_new(at, "", "Attention");
    for (size_t i = 0; i < 3; i++) wml_node_set_input(n, i, t->in[i]);
    if (mask) wml_node_set_input(n, 3, mask);
    wml_attention_set_scale(n, t->scale, a->q.size);
    if (a->widened) wml_attr_set_int(n, "softmax_precision", WML_F32);
    if (t->flat) {
        wml_attr_set_int(n, "q_num_heads", a->q.heads);
        wml_attr_set_int(n, "kv_num_heads", a->k.heads);
    }
    return n;
}

static void visit(void *arg, struct wml_node *softmax)
{
    struct wml_pass_run *r = arg;
    struct target t = {0};
    struct wml_attention *a = &t.a;
    if (!wml_attention_find(r, softmax, a)) return;
    enum wml_dtype dtype = wml_value_elem(a->scores->out[0]);
    if (dtype != WML_F32 && dtype != WML_F16 && dtype != WML_BF16) {
        wml_pass_refuse(r, softmax, "neither float nor half float");
        return;
    }
    if (!wml_attention_is_even(a) || !wml_attention_mask_fits(a)) return;
    if (!choose(&t)) {
        wml_pass_refuse(r, softmax, "the scale is not above 0");
        return;
    }
    wml_attention_finish(a, new_node(&t, t.flat ? a->join : a->out->def), t.flat);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 23) return wml_pass_skip(r, "Attention exists from opset 23; --opset 23 raises the model's");
    wml_sweep(r);
    return wml_pass_each_of(r, "Softmax", visit, r, err);
}

const struct wml_pass wml_pass_attention_onnx_fusion = {
    .name = "attention-onnx-fusion", .category = "attention", .against = "attention-expandedattention", .run = run,
    .summary = "Turn attention written out into Attention of ONNX, from opset 23",
};
