/* nn/relative.h - scores of attention that depend on how far a key is from its query: distance = key - query.
 *
 * Where every distance has a column, scores x [batch, heads, n, 2n] go to their keys by moving each row of x one place
 * further than the one before (Huang et al. 2018, "skewing"): two Reshapes and two Slices, no indices. */
#ifndef WML_NN_RELATIVE_H
#define WML_NN_RELATIVE_H

#include "nn/attention.h"

/* T5's buckets (Raffel et al. 2020): near distances have one each, farther ones share, in steps of their logarithm. */
struct wml_nn_buckets {
    int64_t buckets, max_distance; /* from which on all are in the last */
    bool both_ways;                /* keys behind the query have buckets of their own, else they are in the first */
};
int64_t wml_nn_bucket(const struct wml_nn_buckets *how, int64_t distance);
/* [1, heads, n, n] (or [heads, n, n] for an open n) from a table [buckets, heads]; n is the size of ids along `axis`. */
struct wml_value *wml_nn_bucket_bias(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how,
                                     struct wml_value *ids, int axis);

/* The row of the last of n places, as a token has it whose cache slides: [1, heads, 1, n]. */
struct wml_value *wml_nn_bucket_last_row(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, int64_t n);

/* The same by parts: scores [heads, 2 * max_distance + 1] of the distances -max_distance .. max_distance, times `scale`, from
 * a table [buckets, heads], or [heads, buckets] where it is `turned`; and those between places at [..., n], of any type of
 * whole numbers: [heads, ..., n, n]. */
struct wml_value *wml_nn_bucket_scores(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, bool turned, double scale);
struct wml_value *wml_nn_bucket_lookup(struct wml_nn *b, struct wml_value *scores, const struct wml_nn_buckets *how, struct wml_value *at);

/* int64 [2n]: row(arg, d) for the distances d of -(n - 1) .. n, n the length of ids [batch, n]; cut from a table for texts
 * of up to `max` where n is open. */
struct wml_value *wml_nn_distance_rows(struct wml_nn *b, struct wml_value *ids, int64_t max,
                                       int64_t (*row)(const void *arg, int64_t distance), const void *arg);
/* Rows of the table [rows, size] for those distances, times `by`, as columns: [size, 2n]. A constant where n is fixed. */
struct wml_value *wml_nn_distance_vectors(struct wml_nn *b, const struct wml_weight *table, struct wml_value *ids, int64_t max,
                                          int64_t (*row)(const void *arg, int64_t distance), const void *arg, double by);
/* The same for a fixed n of a table of numbers. */
struct wml_value *wml_nn_distance_columns(struct wml_nn *b, const float *table, int64_t size, int64_t n,
                                          int64_t (*row)(const void *arg, int64_t distance), const void *arg, double by);
/* x [batch, heads, n, 2n], columns of those distances -> [batch, heads, n, n]: columns of keys. */
struct wml_value *wml_nn_to_keys(struct wml_nn *b, struct wml_value *x, struct wml_value *ids);

#endif
