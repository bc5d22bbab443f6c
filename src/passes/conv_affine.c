/* Folding per-channel factors and offsets into a Conv or ConvTranspose. */
#include "passes/conv_affine.h"

#include "passes/weights_scale.h"

#include <math.h>

static bool is_float(const struct wml_tensor *t)
{
    return t->dtype == WML_F32 || t->dtype == WML_F64 || t->dtype == WML_F16;
}

bool wml_conv_is(struct wml_node *n, struct wml_conv *out)
{
    struct wml_value *b = wml_node_in(n, 2);
    bool back = wml_node_is(n, "ConvTranspose");
    if (!back && !wml_node_is(n, "Conv")) return false;
    int64_t groups = wml_attr_int(n, "group", 1);
    *out = (struct wml_conv){.conv = n, .w = wml_constant_of(wml_node_in(n, 1)), .b = wml_constant_of(b)};
    if (!out->w || !is_float(out->w) || out->w->dims.len < 3 || (b && (!out->b || out->b->dims.len != 1))) return false;
    const int64_t *dims = out->w->dims.at;
    if (back && (groups < 1 || groups > dims[0] || dims[0] % groups)) return false;
    out->groups = back ? (size_t)groups : 0;
    out->channels = (size_t)(back ? dims[1] * groups : dims[0]);
    return out->channels > 0 && (!out->b || (out->b->dims.at[0] == (int64_t)out->channels && out->b->dtype == out->w->dtype));
}

bool wml_conv_before(struct wml_pass_run *r, struct wml_node *next, size_t slot, struct wml_conv *out)
{
    struct wml_node *conv = wml_node_producer(next, slot);
    (void)r;
    if (!conv || conv->graph != next->graph || !wml_node_out(next, 0) || !wml_conv_is(conv, out)) return false;
    if (wml_value_only_user(conv->out[0]) != next || conv->out[0]->pinned) return false;
    out->next = next;
    return true;
}

struct wml_tensor *wml_conv_weights(struct wml_pass_run *r, const struct wml_conv *c, const double *a)
{
    if (c->groups < 2) return wml_weights_scaled(r, c->w, c->groups, a); /* axis 1 of a ConvTranspose of one group */
    size_t in = (size_t)c->w->dims.at[0], per = c->channels / c->groups;
    double *pair = WML_NEW_ARRAY(r->scratch, double, in * per);
    for (size_t i = 0; i < in; i++) memcpy(pair + i * per, a + i / (in / c->groups) * per, per * sizeof *a);
    return wml_weights_scaled_pairs(r, c->w, 0, pair);
}

double *wml_conv_channel_values(struct wml_pass_run *r, const struct wml_conv *c, const struct wml_value *v)
{
    struct wml_tensor *t = wml_constant_of(v);
    size_t rank = c->w->dims.len, n;
    double *in, *out;
    if (!t || t->dtype != c->w->dtype || t->dims.len > rank) return NULL;
    for (size_t i = 0; i < t->dims.len; i++) {
        size_t axis = rank - t->dims.len + i;
        bool channel = axis == 1 && t->dims.at[i] == (int64_t)c->channels;
        if (t->dims.at[i] != 1 && !channel) return NULL;
    }
    if (!wml_tensor_doubles(r->model, t, &in, &n, NULL) || (n != 1 && n != c->channels)) return NULL;
    out = WML_NEW_ARRAY(r->scratch, double, c->channels);
    for (size_t i = 0; i < c->channels; i++) {
        out[i] = in[n == 1 ? 0 : i];
        if (!isfinite(out[i])) return NULL;
    }
    return out;
}

static struct wml_tensor *new_bias(struct wml_pass_run *r, const struct wml_conv *c, const double *a, const double *b)
{
    double *old = NULL;
    size_t n = 0, width = wml_dtype_info(c->w->dtype)->bits / 8;
    if (c->b && !wml_tensor_doubles(r->model, c->b, &old, &n, NULL)) return NULL;
    unsigned char *bytes = WML_NEW_ARRAY(r->scratch, unsigned char, c->channels * width);
    for (size_t i = 0; i < c->channels; i++) {
        wml_dtype_store(c->w->dtype, bytes, i, (old ? old[i] : 0) * (a ? a[i] : 1) + (b ? b[i] : 0));
        if (!isfinite(wml_dtype_load(c->w->dtype, bytes, i))) return NULL; /* out of the type's range */
    }
    int64_t dim = (int64_t)c->channels;
    return wml_tensor_copy(r->model, (enum wml_dtype)c->w->dtype, 1, &dim, bytes, c->channels * width, NULL);
}

static struct wml_value *add_init(struct wml_node *conv, size_t like, const char *fallback, struct wml_tensor *t)
{
    struct wml_value *old = wml_node_in(conv, like);
    return wml_graph_add_init(conv->graph, old ? old->name : wml_str(fallback), t);
}

bool wml_conv_scale(struct wml_pass_run *r, struct wml_conv *c, double f)
{
    double *a = WML_NEW_ARRAY(r->scratch, double, c->channels);
    for (size_t i = 0; i < c->channels; i++) a[i] = f;
    struct wml_tensor *w = wml_conv_weights(r, c, a);
    if (w) wml_node_set_input(c->conv, 1, add_init(c->conv, 1, "weight", w));
    return w != NULL;
}

bool wml_conv_rescale(struct wml_pass_run *r, struct wml_conv *c, const double *a, const double *b)
{
    struct wml_tensor *w = a ? wml_conv_weights(r, c, a) : c->w, *bias = new_bias(r, c, a, b);
    if (!w || !bias) return false;
    if (a) wml_node_set_input(c->conv, 1, add_init(c->conv, 1, "weight", w));
    if (b || c->b) wml_node_set_input(c->conv, 2, add_init(c->conv, 2, "bias", bias));
    return true;
}

bool wml_conv_absorb(struct wml_pass_run *r, struct wml_conv *c, const double *a, const double *b)
{
    if (!wml_can_bypass(c->next, c->conv->out[0]) || !wml_conv_rescale(r, c, a, b)) return false;
    struct wml_str op = c->next->op_type, name = c->next->name;
    if (!wml_bypass(c->next, c->conv->out[0])) return false;
    wml_pass_applied(r, op, name);
    return true;
}
