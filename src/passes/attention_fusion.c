/* softmax(scale * Q K^T + mask) V with the splitting and joining of its heads -> com.microsoft::Attention when Q, K and V
 * are linear layers of one input (their weights side by side), else com.microsoft::MultiHeadAttention.
 * The mask goes in as `attention_bias`, as it is: the operators' other masks stand for values that only a promise
 * about the model's inputs makes equal. */
#include "passes/attention_form.h"
#include "passes/attention_packed.h"
#include "passes/weights_concat.h"

#include <math.h>

enum { ATTENTION_BIAS = 5 }; /* slot of both operators */

struct plan {
    struct wml_attention a;
    struct wml_projection part[3];
    double scale;
};

static bool refuse(const struct wml_attention *a, const char *why)
{
    wml_pass_refuse(a->r, a->softmax, "%s", why);
    return false;
}

static bool scale_of(struct plan *p, double factor)
{
    p->scale = p->a.scale * factor;
    return (isfinite(p->scale) && p->scale != 0) || refuse(&p->a, "the scale is 0 or not finite");
}

/* Q, K and V are x W + bias of one x, and nothing else needs them. */
static bool is_self_attention(struct plan *p)
{
    const struct wml_attention *a = &p->a;
    const struct wml_heads *h[] = {&a->q, &a->k, &a->v};
    const struct wml_node *end[] = {a->scores, a->scores, a->context};
    for (size_t i = 0; i < 3; i++) {
        if (!h[i]->flat || !wml_leads_only_to(h[i]->flat, end[i])) return false;
        if (!wml_projection_of(a->r, h[i]->flat, true, &p->part[i]) || p->part[i].x != p->part[0].x) return false;
    }
    return wml_value_rank(p->part[0].x) == 3;
}

static struct wml_node *new_node(struct plan *p, const char *op)
{
    struct wml_node *n = wml_node_new(p->a.join, "com.microsoft", op);
    wml_pass_use_contrib(p->a.r);
    wml_attr_set_int(n, "num_heads", p->a.q.heads);
    wml_attention_set_scale(n, p->scale, p->a.q.size);
    return n;
}

/* One vector of the three biases, zeros for those that are not there; NULL: they do not fit. */
static struct wml_value *join_biases(const struct plan *p)
{
    const struct wml_attention *a = &p->a;
    struct wml_tensor *row[3];
    int64_t length[3] = {a->q.heads * a->q.size, a->k.heads * a->k.size, a->v.heads * a->v.size};
    for (size_t i = 0; i < 3; i++) row[i] = p->part[i].bias ? wml_constant_of(p->part[i].bias) : NULL;
    struct wml_tensor *t = wml_rows_joined(a->r, wml_value_elem(a->scores->out[0]), 3, row, length);
    return t ? wml_graph_add_init(a->join->graph, WML_STR("attention_qkv_bias"), t) : NULL;
}

static void set_sizes(struct plan *p, struct wml_node *n)
{
    int64_t qk = p->a.q.heads * p->a.q.size, v = p->a.v.heads * p->a.v.size;
    int64_t sizes[] = {qk, qk, v};
    if (qk != v) wml_attr_set_ints(n, "qkv_hidden_sizes", 3, sizes);
}

/* The bias may be left out, says the operator; ORT up to 1.29 crashes without one. */
static void finish_attention(struct plan *p, struct wml_value *x, struct wml_value *w, struct wml_value *bias)
{
    struct wml_value *mask = wml_attention_mask(&p->a, p->a.join, true);
    struct wml_node *n = new_node(p, "Attention");
    set_sizes(p, n);
    wml_node_set_input(n, 0, x);
    wml_node_set_input(n, 1, w);
    wml_node_set_input(n, 2, bias);
    if (mask) wml_node_set_input(n, ATTENTION_BIAS, mask);
    wml_attention_finish(&p->a, n, true);
}

static bool to_attention(struct plan *p)
{
    struct wml_attention *a = &p->a;
    struct wml_tensor *w[3];
    if (!scale_of(p, a->q.flat_factor * a->k.flat_factor)) return true;
    for (size_t i = 0; i < 3; i++) w[i] = wml_constant_of(p->part[i].w);
    struct wml_tensor *side = wml_weights_side_by_side(a->r, 3, w);
    struct wml_value *bias = side ? join_biases(p) : NULL;
    if (!bias) return false;
    finish_attention(p, p->part[0].x, wml_graph_add_init(a->join->graph, WML_STR("attention_qkv_weight"), side), bias);
    return true;
}

/* One linear layer gives all three. */
static bool packed_to_attention(struct plan *p, struct wml_value *flat, double factor)
{
    struct wml_projection one;
    if (!wml_projection_of(p->a.r, flat, false, &one) || wml_value_rank(one.x) != 3) return false;
    if (!scale_of(p, factor)) return true;
    if (!one.bias) one.bias = join_biases(p);
    if (!one.bias) return false;
    finish_attention(p, one.x, one.w, one.bias);
    return true;
}

/* The operator adds the biases itself; false: it is left to Add. */
static bool takes_biases(struct plan *p, struct wml_value **in)
{
    struct wml_attention *a = &p->a;
    const struct wml_heads *h[] = {&a->q, &a->k, &a->v};
    bool any = false;
    for (size_t i = 0; i < 3; i++) {
        if (!h[i]->flat || !wml_projection_of(a->r, h[i]->flat, false, &p->part[i])) return false;
        if (p->part[i].bias && (h[i]->flat->n_uses != 1 || h[i]->flat->n_outputs || h[i]->flat->pinned)) return false;
        any = any || p->part[i].bias;
    }
    struct wml_value *bias = any ? join_biases(p) : NULL;
    if (!bias) return false;
    for (size_t i = 0; i < 3; i++) in[i] = p->part[i].product;
    in[3] = bias;
    return true;
}

static bool to_multi_head(struct plan *p)
{
    struct wml_attention *a = &p->a;
    bool flat = a->k.flat && a->v.flat;
    struct wml_value *in[4] = {a->q.flat, flat ? a->k.flat : a->k.bnsh, flat ? a->v.flat : a->v.bnsh, NULL};
    if (!in[0]) return refuse(a, "Q is not split from [batch, length, hidden]");
    if (!in[1] || !in[2]) return refuse(a, "K is neither split from [batch, length, hidden] nor there as [batch, heads, length, size]");
    if (!flat && a->k.size != a->v.size) return refuse(a, "K and V have heads already, of different sizes");
    if (!scale_of(p, a->q.flat_factor * (flat ? a->k.flat_factor : a->k.bnsh_factor))) return false;
    if (flat) takes_biases(p, in);
    struct wml_value *mask = wml_attention_mask(a, a->join, true);
    struct wml_node *n = new_node(p, "MultiHeadAttention");
    for (size_t i = 0; i < 4; i++)
        if (in[i]) wml_node_set_input(n, i, in[i]);
    if (mask) wml_node_set_input(n, ATTENTION_BIAS, mask);
    wml_attention_finish(a, n, true);
    return true;
}

static void visit(void *arg, struct wml_node *softmax)
{
    struct wml_pass_run *r = arg;
    struct plan p = {0};
    struct wml_attention *a = &p.a;
    if (!wml_attention_find(r, softmax, a)) return;
    enum wml_dtype dtype = wml_value_elem(a->scores->out[0]);
    if (dtype != WML_F32 && dtype != WML_F16) refuse(a, "neither float nor half float");
    else if (!a->join || !a->tail) refuse(a, "the heads of the result are not joined by Transpose and Reshape, or their joining has other readers");
    else if (!wml_attention_is_even(a) || !wml_attention_mask_fits(a)) return;
    else if (is_self_attention(&p) && to_attention(&p)) return;
    else {
        double factor;
        struct wml_value *flat = wml_attention_packed(a, &factor);
        if (flat && packed_to_attention(&p, flat, factor)) return;
        if (flat && !a->q.flat) wml_attention_unpack(a, flat, factor);
        to_multi_head(&p);
    }
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    wml_sweep(r);
    return wml_pass_each_of(r, "Softmax", visit, r, err);
}

const struct wml_pass wml_pass_attention_fusion = {
    .name = "attention-fusion", .category = "attention", .pipe = "ort_fusion", .ort_name = "AttentionFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn attention of encoders into Attention or MultiHeadAttention of com.microsoft",
};
