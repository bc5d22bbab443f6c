/* nn/layers.h - layers as checkpoints store them: each takes its weights at `name` in the scope. */
#ifndef WML_NN_LAYERS_H
#define WML_NN_LAYERS_H

#include "nn/ops.h"
#include "nn/param.h"

/* Linear: weight [out,in], with its bias where the checkpoint has one. out: -1 for any. Two axes: Gemm; more: MatMul, Add. */
struct wml_value *wml_nn_linear(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out);
/* The same, and what comes out times scale[i], i along its last axis: the weights carry it. scale lives as long as the model. */
struct wml_value *wml_nn_linear_scaled(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, const float *scale);
/* The same with weights that lie elsewhere (tied ones); bias NULL: none. */
struct wml_value *wml_nn_linear_with(struct wml_nn *b, struct wml_value *x, const struct wml_weight *weight, const struct wml_weight *bias);
/* The head over the vocabulary [rows, width]: `name`.weight, or the table `tied` ("/model.embed_tokens.weight") where
 * they are one or the checkpoint has no other; with `name`.bias where there is one. */
struct wml_value *wml_nn_tied_head(struct wml_nn *b, struct wml_value *x, const char *name, const char *table, int64_t rows, bool tied);
/* GPT-2's Conv1D: weight [in,out]. */
struct wml_value *wml_nn_linear_in_out(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out);
/* Rows of the table `name`.weight [rows, width]; -1 for any. */
struct wml_value *wml_nn_embedding(struct wml_nn *b, struct wml_value *ids, const char *name, int64_t rows, int64_t width);

/* Conv1d, 2d by the rank of x: weight [out, in/groups, k...], or what weight norm makes it of; the kernel's size is the
 * weight's, and must be that of the window where it has one. out: -1 for any. */
struct wml_value *wml_nn_conv(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, const struct wml_nn_window *w);
struct wml_value *wml_nn_conv_transpose(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, const struct wml_nn_window *w);
/* Conv followed by BatchNorm: one Conv, whose weights carry both. */
struct wml_value *wml_nn_conv_bn(struct wml_nn *b, struct wml_value *x, const char *conv, const char *bn, double eps, int64_t out,
                                 const struct wml_nn_window *w);
/* Two such pairs over the same picture, the second 1x1, whose results are added, as one Conv (Ding et al. 2021): conv[0], bn[0], ... */
struct wml_value *wml_nn_conv_bn_both(struct wml_nn *b, struct wml_value *x, const char *const conv[2], const char *const bn[2], double eps, int64_t out,
                                      const struct wml_nn_window *w);
struct wml_value *wml_nn_batch_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps);
/* Over the last axis: LayerNormalization, or its parts below opset 17. Without weights in the checkpoint: neither scale nor bias is a failure. */
struct wml_value *wml_nn_layer_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps);
/* The same without scale and bias. */
struct wml_value *wml_nn_layer_norm_plain(struct wml_nn *b, struct wml_value *x, const char *name, double eps);
/* Over the channels of [n,c,...]: between two Transposes. */
struct wml_value *wml_nn_layer_norm_channels(struct wml_nn *b, struct wml_value *x, const char *name, double eps);
/* x / sqrt(mean(x^2) + eps) * weight, over the last axis; one_plus: * (1 + weight). */
struct wml_value *wml_nn_rms_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps, bool one_plus);
/* The same as one operator of ONNX Runtime. With *skip: of x + *skip, and *skip is that sum afterwards. */
struct wml_value *wml_nn_rms_norm_one(struct wml_nn *b, struct wml_value *x, struct wml_value **skip, const char *name, double eps, bool one_plus);
/* The same as NPUs take it, x / |x| * weight sqrt(n): LpNormalization, which has no eps. */
struct wml_value *wml_nn_rms_norm_lp(struct wml_nn *b, struct wml_value *x, const char *name, bool one_plus);
struct wml_value *wml_nn_group_norm(struct wml_nn *b, struct wml_value *x, const char *name, int64_t groups, double eps);

/* By the names of configs: gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, relu6, silu, swish, tanh,
 * sigmoid, hard_swish, hardswish, mish, leaky_relu, elu, linear, ... An unknown one is a failure that names `field`. */
struct wml_value *wml_nn_act(struct wml_nn *b, struct wml_value *x, struct wml_str name, const char *field);
struct wml_value *wml_nn_gelu(struct wml_nn *b, struct wml_value *x);

#endif
