/* passes/match.h - small questions that several passes ask about nodes and constants. */
#ifndef WML_PASSES_MATCH_H
#define WML_PASSES_MATCH_H

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/type.h"
#include "ops/ops.h"
#include "passes/pass.h"

/* The tensor of a value that can never change: an initializer callers cannot replace. NULL otherwise. */
struct wml_tensor *wml_constant_of(const struct wml_value *v);
/* The integers of a constant (a shape, axes); false when it is none or too long. */
bool wml_constant_ints(struct wml_pass_run *r, const struct wml_value *v, int64_t **out, size_t *n);
/* Every element of the constant equals x. */
bool wml_constant_is(struct wml_pass_run *r, const struct wml_value *v, double x);
/* Both types are known, with the same element type and the same static or symbolic axes. */
bool wml_same_type(const struct wml_value *a, const struct wml_value *b);
/* What is known of both types cannot be true of one value: element types, ranks or sizes differ. */
bool wml_types_disagree(const struct wml_value *a, const struct wml_value *b);
/* The axis has the same length in both: a known size, or the same symbol. */
bool wml_same_axis(const struct wml_value *a, size_t i, const struct wml_value *b, size_t j);
/* The one number of a constant of one element. */
bool wml_constant_scalar(struct wml_pass_run *r, const struct wml_value *v, double *out);
/* The same for a finite operand beside x: one that would raise the rank of the result is refused. */
bool wml_constant_beside(struct wml_pass_run *r, const struct wml_value *v, const struct wml_value *x, double *out);
/* The axes of a Reduce*, Squeeze, ... node: attribute `axes` or a constant input 1. false: unknown or none. */
bool wml_axes_of(struct wml_pass_run *r, const struct wml_node *n, const int64_t **axes, size_t *len);
/* The node reduces exactly the axes [first, rank) and keeps them (keepdims 1); first is set. */
bool wml_reduces_tail(struct wml_pass_run *r, const struct wml_node *n, int64_t *first);
/* Dims of a static type: n dims from axis `from` (to the end when n is SIZE_MAX) are known. */
bool wml_static_dims(const struct wml_value *v, size_t from, int64_t *dims, size_t *n);
bool wml_is_float(const struct wml_value *v); /* any float type; false when not known */
/* A constant seen with other dims of the same number of elements, as a new initializer; v itself when equal. */
struct wml_value *wml_reshaped_constant(struct wml_pass_run *r, struct wml_value *v, size_t rank, const int64_t *dims);
/* A constant of x's type with one number for each element of one axis of x, of known size: [1, .., size, .., 1], or
 * those in front left out. wml_reshaped_constant makes it [size]. */
bool wml_constant_is_along(const struct wml_value *v, const struct wml_value *x, size_t axis);
/* Bypasses node n: readers of its output 0 read v instead, and n goes away. false, nothing changed, when the
 * output is pinned or a graph output that v cannot stand in for, or when another output is needed. */
bool wml_bypass(struct wml_node *n, struct wml_value *v);
/* Whether wml_bypass would do it; for passes that must change something else first. */
bool wml_can_bypass(const struct wml_node *n, const struct wml_value *v);
/* The model imports com.microsoft from now on. */
void wml_pass_use_contrib(struct wml_pass_run *r);
/* Nothing reads its outputs, and it does nothing else. */
bool wml_node_is_dead(const struct wml_node *n);
/* Removes every dead node: what earlier passes left behind still counts as readers. Not counted as a change. */
void wml_sweep(struct wml_pass_run *r);
/* Removes n when nothing reads it, then likewise what gave it its inputs. */
void wml_prune(struct wml_node *n);
/* The nodes of every graph, sub-graphs included: f may remove the node it gets. */
bool wml_pass_each(struct wml_pass_run *r, bool (*f)(struct wml_pass_run *r, struct wml_node *n));
/* The nodes of one operator of the ONNX domain, in every graph, in order: for patterns found from their last or middle
 * node. f may remove and add any; those that were there at the start and still are get their turn. Sorts what changed. */
bool wml_pass_each_of(struct wml_pass_run *r, const char *op, void (*f)(void *arg, struct wml_node *n), void *arg, struct wml_err *err);

#endif
