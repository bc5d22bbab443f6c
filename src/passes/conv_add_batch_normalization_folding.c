/* BatchNormalization goes into the Conv although an Add of another tensor stands between:
 * BN(Conv(x) + A) = Conv'(x) + A g, g = scale / sqrt(var + eps). A is a constant here. */
#include "passes/batch_norm.h"
#include "base/num.h"
#include "passes/conv_affine.h"

enum { MAX_BYTES = 100 << 20 };

/* A with its channels times g, in its own dims where it varies along channels, else expanded to [C, 1, ...]. */
static struct wml_tensor *scaled_addend(struct wml_pass_run *r, const struct wml_conv *c, struct wml_tensor *t, const double *g)
{
    size_t rank = c->w->dims.len, lead = rank - t->dims.len, n;
    int64_t dims[16];
    double *v;
    uint64_t count;
    if (t->dims.len > rank || rank > 16 || t->dtype != c->w->dtype || !wml_tensor_doubles(r->model, t, &v, &n, NULL)) return NULL;
    for (size_t i = 0; i < rank; i++) {
        dims[i] = i < lead ? 1 : t->dims.at[i - lead];
        if (i == 1 && dims[1] == 1) dims[1] = (int64_t)c->channels;
    }
    size_t width = wml_dtype_info(t->dtype)->bits / 8, inner = 1;
    if (dims[1] != (int64_t)c->channels || !wml_dims_count(dims, rank, &count) || count > MAX_BYTES / width || !count) return NULL;
    for (size_t i = 2; i < rank; i++) inner *= (size_t)dims[i];
    bool spread = n != count; /* the channel axis was one long */
    unsigned char *bytes = wml_big_alloc(count * width, NULL);
    if (!bytes) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t channel = i / inner % c->channels, batch = i / inner / c->channels;
        size_t from = spread ? batch * inner + i % inner : i;
        wml_dtype_store(t->dtype, bytes, i, v[from] * g[channel]);
    }
    return wml_tensor_own(r->model, (enum wml_dtype)t->dtype, rank, dims, bytes, (size_t)count * width, NULL);
}

static bool visit(struct wml_pass_run *r, struct wml_node *bn, size_t first_slot)
{
    struct wml_node *add = wml_node_is(bn, "BatchNormalization") ? wml_node_producer(bn, 0) : NULL;
    if (!add || !wml_node_is(add, "Add") || add->graph != bn->graph || wml_value_only_user(add->out[0]) != bn || add->out[0]->pinned)
        return true;
    for (size_t slot = first_slot; slot < 2; slot++) { /* of the Conv */
        struct wml_conv c;
        double *g, *b, zero = 0;
        struct wml_tensor *a = wml_constant_of(wml_node_in(add, 1 - slot)), *w, *bias;
        int64_t channels;
        if (!a || !wml_conv_before(r, add, slot, &c) || !wml_batch_norm_affine(r, bn, c.w->dtype, c.channels, &g, &b)) continue;
        /* the addend must not widen the Conv's result */
        struct wml_value *y = c.conv->out[0];
        if (wml_value_rank(y) < (int64_t)a->dims.len || !wml_same_type(y, add->out[0])) continue;
        struct wml_tensor *ag = scaled_addend(r, &c, a, g);
        channels = (int64_t)c.channels;
        if (!ag || !(w = wml_conv_weights(r, &c, g))) continue;
        double *old = &zero;
        size_t n = 1, width = wml_dtype_info(c.w->dtype)->bits / 8;
        if (c.b && !wml_tensor_doubles(r->model, c.b, &old, &n, NULL)) continue;
        unsigned char *bytes = wml_arena_alloc(r->scratch, c.channels * width + 1);
        for (size_t i = 0; i < c.channels; i++) wml_dtype_store(c.w->dtype, bytes, i, old[n == 1 ? 0 : i] * g[i] + b[i]);
        bias = wml_tensor_copy(r->model, (enum wml_dtype)c.w->dtype, 1, &channels, bytes, c.channels * width, NULL);
        if (!wml_can_bypass(bn, add->out[0])) continue;
        wml_node_set_input(c.conv, 1, wml_graph_add_init(bn->graph, c.conv->in[1]->name, w));
        wml_node_set_input(c.conv, 2, wml_graph_add_init(bn->graph, WML_STR("bias"), bias));
        wml_node_set_input(add, 1 - slot, wml_graph_add_init(bn->graph, add->in[1 - slot]->name, ag));
        struct wml_str op = bn->op_type, name = bn->name;
        if (wml_bypass(bn, add->out[0])) wml_pass_applied(r, op, name);
        return true;
    }
    return true;
}

static bool any_side(struct wml_pass_run *r, struct wml_node *n)
{
    return visit(r, n, 0);
}

static bool second(struct wml_pass_run *r, struct wml_node *n)
{
    return visit(r, n, 1);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, any_side);
}

const struct wml_pass wml_pass_conv_add_batch_normalization_folding = {
    .name = "conv-add-batch-normalization-folding", .category = "rewrite", .pipe = "rewrite", .run = run,
    .summary = "Fold BatchNormalization through an Add of a constant (on either side) into the Conv before it",
};

static bool run_second(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, second);
}

const struct wml_pass wml_pass_add_conv_batch_normalization_folding = {
    .name = "add-conv-batch-normalization-folding", .category = "rewrite", .pipe = "rewrite", .run = run_second,
    .summary = "The same, only where the constant is the Add's first operand",
};
