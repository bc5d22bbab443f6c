/* quant/qdq_internal.h - the parts of the method "qdq". Internal to src/quant.
 *
 * Order of work: what is asked (qdq_asked.c), which values get integers (qdq_rules.c), with what scale (qdq_params.c,
 * qdq_bias.c), and only then the graph is changed (qdq_insert.c, qdq_bias.c). Only nodes of the top graph are quantised:
 * what branches and loops compute has no range. */
#ifndef WML_QUANT_QDQ_INTERNAL_H
#define WML_QUANT_QDQ_INTERNAL_H

#include "quant/qdq_state.h"

/* NULL: not a value of the source's top graph, or no slot. */
struct wml_qdq_tensor *wml_qdq_of(const struct wml_qdq *q, const struct wml_value *v);

struct wml_str wml_qdq_subject(struct wml_qdq *q, const struct wml_value *v); /* "tensor 'x'", for notes */

/* qdq_asked.c: overrides, resolved for every value. */
bool wml_qdq_ask(struct wml_qdq *q, struct wml_err *err);
struct wml_override *wml_qdq_ask_one(struct wml_qdq *q, struct wml_qdq_tensor *t); /* the first of t; made when nothing is asked yet */
enum wml_dtype wml_qdq_asked_type(const struct wml_qdq *q, const struct wml_qdq_tensor *t); /* of an activation, as it is made */
/* Whether the options let this node be quantised. */
bool wml_qdq_takes(const struct wml_qdq *q, const struct wml_node *n);
/* What the file of overrides says of the node's weights goes to constant t, whose channels lie on `axis`. */
void wml_qdq_ask_weight(struct wml_qdq *q, const struct wml_node *n, struct wml_qdq_tensor *t, int64_t axis);

/* qdq_mixed.c: conversions around tensors of another type. */
bool wml_qdq_mix(struct wml_qdq *q, struct wml_err *err);
/* The type in which n reads t. */
enum wml_dtype wml_qdq_read_type(const struct wml_qdq *q, const struct wml_qdq_tensor *t, const struct wml_node *n);

#define QDQ_EP(id) extern const struct wml_qdq_ep wml_qdq_ep_##id;
#include "quant/qdq_eps.def"
#undef QDQ_EP
/* NULL: none for this alias. */
const struct wml_qdq_ep *wml_qdq_ep_find(const char *alias);

/* qdq_rules.c: marks values and biases; nothing of the graph is changed. */
void wml_qdq_mark(struct wml_qdq *q);
/* The tensor whose scale t takes over; NULL: it has its own. */
struct wml_qdq_tensor *wml_qdq_provider(const struct wml_qdq *q, const struct wml_qdq_tensor *t);
/* The tensor whose range stands for that of t: its own, or, when that was not measured, that of the value it was moved from. */
const struct wml_qdq_tensor *wml_qdq_ranged(const struct wml_qdq *q, const struct wml_qdq_tensor *t);
/* Whether a range of t must be measured. */
bool wml_qdq_needs_range(const struct wml_qdq *q, const struct wml_qdq_tensor *t);

/* qdq_masks.c: ends of values that hold mask constants. */
void wml_qdq_masks(struct wml_qdq *q);

/* qdq_params.c: what marked constants hold; those with NaN are unmarked. Then the scales of everything that is marked. */
bool wml_qdq_measure(struct wml_qdq *q, struct wml_err *err);
void wml_qdq_params(struct wml_qdq *q);
/* The scale of t as n reads it. */
struct wml_qdq_scale *wml_qdq_read_scale(const struct wml_qdq_tensor *t, const struct wml_node *n);
bool wml_qdq_reads_converted(const struct wml_qdq_tensor *t, const struct wml_node *n);
bool wml_qdq_scale_values(struct wml_qdq *q, struct wml_qdq_scale *s, struct wml_err *err);
/* An initializer of n reals or zero points; n = 1 may be a scalar. NULL with *err set. */
struct wml_value *wml_qdq_add_init(struct wml_qdq *q, struct wml_str name, enum wml_dtype type, bool vector, size_t n, const double *real,
                                   const int32_t *zero, struct wml_err *err);

/* qdq_bias.c: raises the scales of weights until biases fit 32 bits; then, last, puts the biases in. */
bool wml_qdq_fit_biases(struct wml_qdq *q, struct wml_err *err);
bool wml_qdq_insert_biases(struct wml_qdq *q, struct wml_err *err);

/* qdq_insert.c: nodes and tensors of everything but biases. */
bool wml_qdq_insert(struct wml_qdq *q, struct wml_err *err);
/* "T" -> T_suffix, unique in the model. */
struct wml_str wml_qdq_name(struct wml_qdq *q, struct wml_str base, const char *suffix);
/* A node before `before` (NULL: at the end) with one output of the type and sizes of `like`. */
struct wml_value *wml_qdq_node(struct wml_qdq *q, struct wml_node *before, const char *op, const struct wml_qdq_scale *s, struct wml_value *in,
                               struct wml_value *like, struct wml_str base, struct wml_str out);

#endif
