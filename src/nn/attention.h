/* nn/attention.h - attention over heads, as plain MatMul, Add, Softmax, and the masks for it. */
#ifndef WML_NN_ATTENTION_H
#define WML_NN_ATTENTION_H

#include "nn/layers.h"

/* The most negative float32, which masks add to scores; never infinity. */
#define WML_NN_MASKED (-3.4028234663852886e38)

struct wml_nn_attention {
    struct wml_value *q, *k, *v; /* [batch, length, heads * size]; k, v: kv_heads * size */
    int64_t heads, kv_heads;     /* kv_heads 0: as many; fewer: each serves heads / kv_heads */
    int64_t length, kv_length;   /* of q, and of k and v, that are rows [batch * length, ..]; 0: they have three axes. wml_nn_attention only */
    double scale;                /* 0: 1 / sqrt(size) */
    bool scale_q;                /* scales q before the product, else the scores */
    struct wml_value *bias;      /* added to the scores, then the mask; broadcast to [batch, heads, length, length of k]; NULL: none */
    struct wml_value *mask;
    bool turned; /* of wml_nn_attention_heads, with as many heads of keys as of queries */
    double cap; /* scores become cap tanh(score / cap) before bias and mask; 0: no */
};
/* Factors for n outputs of a layer whose first `out` are queries, of which each has 1 / sqrt(out / heads), and the rest 1. */
const float *wml_nn_query_scales(struct wml_nn *b, int64_t out, int64_t heads, int64_t n);
/* wml_nn_linear for queries of attention whose scale is 1: its weights carry 1 / sqrt(out / heads). */
struct wml_value *wml_nn_queries(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t heads);
/* wml_nn_linear for keys, without its bias: that adds the same to all scores of a query, which softmax takes away again. */
struct wml_value *wml_nn_keys(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out);
/* wml_nn_queries for a layer that makes queries, keys, and values beside each other: [3 * out]. */
struct wml_value *wml_nn_queries_packed(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t heads);
/* [batch, length, heads * size], or its rows where q is rows. */
struct wml_value *wml_nn_attention(struct wml_nn *b, const struct wml_nn_attention *a);
/* The same where q, k, v are [batch, heads, length, size] already; k [batch, heads, size, length] with `turned`. */
struct wml_value *wml_nn_attention_heads(struct wml_nn *b, const struct wml_nn_attention *a);
/* q k^T scale, both [batch, heads, length, size]; scale 0: 1 / sqrt(size). For scores that get more than a bias and a mask. */
struct wml_value *wml_nn_attention_scores(struct wml_nn *b, struct wml_value *q, struct wml_value *k, double scale);
/* [batch, length, heads * size] -> [batch, heads, length, size], and back. */
struct wml_value *wml_nn_split_heads(struct wml_nn *b, struct wml_value *x, int64_t heads);
struct wml_value *wml_nn_join_heads(struct wml_nn *b, struct wml_value *x);
/* The same for rows: [batch * length, heads * size] -> [batch, heads, length, size], and back. */
struct wml_value *wml_nn_split_rows(struct wml_nn *b, struct wml_value *x, int64_t heads, int64_t length);
struct wml_value *wml_nn_join_rows(struct wml_nn *b, struct wml_value *x);
/* Keys split and turned in one step: [batch, length, heads * size] -> [batch, heads, size, length]. */
struct wml_value *wml_nn_split_turned(struct wml_nn *b, struct wml_value *x, int64_t heads);

/* mask [batch, length] of 1 and 0 as float32 [batch, 1, 1, length]: once, however many masks are made of it. */
struct wml_value *wml_nn_key_mask(struct wml_nn *b, struct wml_value *mask);
/* The same, 0 where it is 1, WML_NN_MASKED where it is 0. */
struct wml_value *wml_nn_padding_mask(struct wml_nn *b, struct wml_value *mask);
/* [1, 1, n, n] for ids [batch, n]: 0 up to the diagonal, WML_NN_MASKED above. With a mask [batch, n]: both in one, [batch, 1, n, n]. */
struct wml_value *wml_nn_causal_mask(struct wml_nn *b, struct wml_value *ids, struct wml_value *mask);
/* The same, and a query sees its own token and `window - 1` before it. The causal mask itself where n is no longer than that. */
struct wml_value *wml_nn_sliding_mask(struct wml_nn *b, struct wml_value *ids, struct wml_value *mask, int64_t window);
/* 0, 1, ..., n - 1 as int64 [n], n the size of ids along `axis`: a constant or a piece of a table of max entries. */
struct wml_value *wml_nn_positions(struct wml_nn *b, struct wml_value *ids, int axis, int64_t max);
/* Rows 0 .. n - 1 of a table of positions [max, width], after `offset` rows: [n, width], which broadcasts over the batch. */
struct wml_value *wml_nn_position_rows(struct wml_nn *b, const struct wml_weight *table, struct wml_value *ids, int axis, int64_t offset);

#endif
