/* bench/maker.h - small helpers that write the nodes PyTorch's exporter writes, with seeded weights, and the
 * models made of them. Out of memory and the like end the program: nobody waits for its answer. */
#ifndef BENCH_MAKER_H
#define BENCH_MAKER_H

#include "base/num.h"
#include "base/rng.h"
#include "graph/edit.h"
#include "onnx/onnx.h"

struct maker {
    struct wml_model *m;
    struct wml_graph *g;
    struct wml_rng rng;
    int serial;
    int64_t layers, hidden, heads, inner; /* of a transformer */
    bool dynamic;                         /* ResNet: the batch is open; it always is in the others */
    bool torch2;                          /* the exporter of PyTorch 2 (SDPA, opset 17); else of 1 (opset 14) */
};

WML_NORETURN void maker_give_up(const struct wml_err *err);
/* stem_N */
struct wml_str maker_name(struct maker *k, const char *stem);
/* Random floats around offset, of deviation scale. */
struct wml_value *maker_weight(struct maker *k, const char *stem, size_t rank, const int64_t *dims, float scale,
                               float offset);
/* Constant nodes. */
struct wml_value *maker_scalar(struct maker *k, float v);
struct wml_value *maker_index(struct maker *k, int64_t v); /* a scalar */
struct wml_value *maker_ints(struct maker *k, size_t n, const int64_t *v);

/* A node of one output; in ends at NULL. */
struct wml_value *maker_op(struct maker *k, const char *type, struct wml_value *const *in);
#define MAKER_OP(k, type, ...) maker_op(k, type, (struct wml_value *const[]){__VA_ARGS__, NULL})

/* The last value becomes a graph output. */
void maker_output(struct maker *k, struct wml_value *v, const char *name, size_t rank, const struct wml_axis *axes);

/* What both transformers are made of. */
struct wml_value *maker_linear(struct maker *k, struct wml_value *x, int64_t in, int64_t out);
struct wml_value *maker_gemm(struct maker *k, struct wml_value *x, int64_t in, int64_t out);
struct wml_value *maker_layer_norm(struct maker *k, struct wml_value *x);
struct wml_value *maker_conv_bn(struct maker *k, struct wml_value *x, int64_t in, int64_t out, int64_t kernel,
                                int64_t stride, bool relu);
struct wml_value *maker_mlp(struct maker *k, struct wml_value *x);
/* mask: added to the scores, NULL: none. */
struct wml_value *maker_attention(struct maker *k, struct wml_value *x, struct wml_value *mask);
/* x's size along an axis: Shape and Gather; unsqueezed to [1] for a Concat. */
struct wml_value *maker_dim(struct maker *k, struct wml_value *x, int64_t axis);
struct wml_value *maker_concat(struct maker *k, int64_t axis, size_t n, struct wml_value *const *part);
/* What torch writes for x.expand(shape): -1 keeps a size, found out at run time. */
struct wml_value *maker_expand(struct maker *k, struct wml_value *x, struct wml_value *shape, int64_t rank);

void make_resnet50(struct maker *k); /* make_vision.c */
void make_vit(struct maker *k);
void make_bert(struct maker *k); /* make_text.c */
bool make_scale(struct maker *k, const char *kind, int64_t n); /* make_scale.c; false: no such kind */

#endif
