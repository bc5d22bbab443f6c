/* MatMul + Add as a 1x1 Conv: the input's last axis becomes the channels. The transposed weights are computed once
 * and stored, not left as nodes. */
#include "passes/matmul_linear.h"

bool wml_linear_of(struct wml_match *m, struct wml_linear *out)
{
    struct wml_linear l = {.a = wml_match_value(m, "a"), .b = wml_match_value(m, "b"), .c = wml_match_value(m, "c")};
    const struct wml_tensor *b = wml_constant_of(l.b), *c = wml_constant_of(l.c);
    l.rank = wml_value_rank(l.a);
    if (l.rank < 2 || !wml_is_float(l.a)) return wml_match_refuse(m, "type or rank of the input are not known");
    if (b->dims.len != 2) return wml_match_refuse(m, "the weights are no matrix");
    l.k = b->dims.at[0];
    l.n = b->dims.at[1];
    if (c->dims.len != 1 || c->dims.at[0] != l.n) return wml_match_refuse(m, "the bias is not one row");
    if (!l.k || !l.n) return wml_match_refuse(m, "the weights are empty");
    for (int64_t i = 0; i < l.rank; i++)
        if (!wml_value_axis(l.a, (size_t)i).size) return wml_match_refuse(m, "the input is empty");
    *out = l;
    return true;
}

struct transposed { /* argument of DERIVED weights */
    uint64_t rows, cols; /* of the source */
    size_t width;
};

/* Element (n, k) of the result is element (k, n) of the source. */
static bool transpose(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct transposed *t = arg;
    uint64_t first = offset / t->width;
    (void)err;
    for (uint64_t i = 0; i < n / t->width; i++) {
        uint64_t col = (first + i) / t->rows, row = (first + i) % t->rows;
        memcpy(out + i * t->width, src.ptr + (row * t->cols + col) * t->width, t->width);
    }
    return true;
}

/* [K, N] -> [N, K, 1, 1] */
static struct wml_value *conv_weights(struct wml_match *m, const struct wml_linear *l)
{
    struct wml_model *model = m->r->model;
    struct wml_tensor *w = wml_constant_of(l->b);
    struct wml_span bytes;
    uint64_t size;
    if (w->payload == WML_PAYLOAD_DERIVED || !wml_tensor_size(w, &size, NULL) || !wml_tensor_bytes(model, w, &bytes, NULL)) return NULL;
    struct transposed *t = WML_NEW(&model->arena, struct transposed);
    *t = (struct transposed){(uint64_t)l->k, (uint64_t)l->n, wml_dtype_info(w->dtype)->bits / 8};
    struct wml_derived how = {.source = w, .size = size, .produce = transpose, .arg = t};
    int64_t dims[] = {l->n, l->k, 1, 1};
    return wml_match_const(m, "conv_weight", wml_tensor_derive(model, (enum wml_dtype)w->dtype, 4, dims, &how));
}

static struct wml_value *step(struct wml_match *m, const char *op, struct wml_value *x, struct wml_value *second, size_t n_perm,
                              const int64_t *perm)
{
    struct wml_value *in[2] = {x, second}, *y = wml_match_add(m, op, "linear_conv", second ? 2 : 1, in);
    if (perm) wml_attr_set_ints(y->def, "perm", n_perm, perm);
    return y;
}

bool wml_linear_to_conv(struct wml_match *m, int64_t rank)
{
    static const int64_t to4[] = {0, 3, 1, 2}, back4[] = {0, 2, 3, 1}, swap3[] = {0, 2, 1};
    static const int64_t shape_in[] = {0, -1, 1, 1}, shape_out[] = {0, -1}, last = -1;
    struct wml_linear l;
    if (!wml_linear_of(m, &l)) return false;
    if (l.rank != rank) return wml_match_refuse(m, "the input has rank %d, not %d", (int)l.rank, (int)rank);
    if (rank == 3 && wml_model_opset(m->r->model, "") < 13) return wml_match_refuse(m, "Squeeze takes axes as an input from opset 13");
    struct wml_value *w = conv_weights(m, &l), *x = l.a, *axes = NULL;
    if (!w) return wml_match_refuse(m, "the weights cannot be read");
    if (rank == 4) x = step(m, "Transpose", x, NULL, 4, to4);
    if (rank == 3) {
        axes = wml_match_ints(m, "axes", 1, &last);
        x = step(m, "Unsqueeze", step(m, "Transpose", x, NULL, 3, swap3), axes, 0, NULL);
    }
    if (rank == 2) x = step(m, "Reshape", x, wml_match_ints(m, "shape", 4, shape_in), 0, NULL);
    struct wml_value *in[3] = {x, w, l.c}, *y = wml_match_add(m, "Conv", "linear_conv", 3, in);
    int64_t ones[] = {1, 1};
    wml_attr_set_ints(y->def, "kernel_shape", 2, ones);
    if (rank == 4) wml_attr_set_ints(wml_match_replace(m, "", "Transpose", 1, &y), "perm", 4, back4);
    if (rank == 3) {
        y = step(m, "Squeeze", y, axes, 0, NULL);
        wml_attr_set_ints(wml_match_replace(m, "", "Transpose", 1, &y), "perm", 3, swap3);
    }
    if (rank == 2) {
        struct wml_value *out[2] = {y, wml_match_ints(m, "shape", 2, shape_out)};
        wml_match_replace(m, "", "Reshape", 2, out);
    }
    return true;
}
