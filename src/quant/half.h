/* quant/half.h - a float model in half floats or bfloat16: the parts of the methods fp16 and bf16. Internal to src/quant.
 *
 * Every slot of every node either follows (float tensors become half there) or stays float: because the operator has no
 * half form, because it needs the range or the digits, or because the user says so. Casts stand only where a value is
 * made in one type and read in the other. Marks of values hold their element types, marks of nodes WML_HALF_STAYS. */
#ifndef WML_QUANT_HALF_H
#define WML_QUANT_HALF_H

#include "graph/edit.h"
#include "quant/quant.h"

struct wml_half {
    struct wml_quant_run *run;
    struct wml_model *model;
    enum wml_dtype to; /* WML_F16, WML_BF16 */
    int64_t opset;
    size_t n_convert; /* nodes with floats that follow */
};

/* The whole of a method; its errors are those of struct wml_quant_method. */
bool wml_half_apply(struct wml_quant_run *r, enum wml_dtype to, struct wml_err *err);

/* --- facts of operators (half_types.c) --- */

struct wml_half_fixed { uint32_t in, out; }; /* bit i: slot i can be float, but not half; bit 31 also for those beyond */
struct wml_half_fixed wml_half_fixed(const struct wml_half *h, const struct wml_node *n);
/* What the types of the outputs follow from: a letter for each, the last for all further ones. a, b, ...: input 0, 1, ...;
 * F, D, I, J, U, V, B, S: float, double, int64, int32, uint8, int8, bool, string; ?: neither. NULL: not known. */
const char *wml_half_outputs(const struct wml_node *n);
/* An attribute of the node says the type of its output: Cast, Constant, RandomNormal, ... */
bool wml_half_chooses(const struct wml_node *n);

/* --- element types (half_elem.c): enum wml_dtype, and what holds the elements --- */

enum { WML_HALF_ELEM = 0xff, WML_HALF_SEQUENCE = 1 << 8, WML_HALF_OPTIONAL = 1 << 9 };
/* Marks all values; how many types are not known. */
size_t wml_half_mark_types(struct wml_half *h);
bool wml_half_is_float(const struct wml_value *v); /* a tensor, or what holds tensors, of float32; NULL: false */
/* Where the graph inside a node gets its inputs, and where its outputs go: the slot of the node, or SIZE_MAX. */
size_t wml_half_slot_of_input(const struct wml_half *h, const struct wml_node *owner, size_t i);
size_t wml_half_slot_of_output(const struct wml_node *owner, size_t i);

/* --- which nodes stay (half_stay.c) --- */

enum { WML_HALF_STAYS = 1 };
/* Marks all nodes and counts those that follow. Values must be marked. */
void wml_half_mark_nodes(struct wml_half *h);
/* What is read or made there is float. */
bool wml_half_reads_float(const struct wml_half *h, const struct wml_node *n, size_t slot);
bool wml_half_makes_float(const struct wml_half *h, const struct wml_node *n, size_t slot);

/* --- attributes (half_follow.c) --- */

/* The output of a node that chooses its type becomes half. */
bool wml_half_follow(struct wml_half *h, struct wml_node *n, struct wml_err *err);
/* A copy of the type with half elements. */
struct wml_type *wml_half_type(struct wml_half *h, const struct wml_type *t);

#endif
