/* opset/adapt.h - what the adapters of opset.def get and use. Internal to src/opset.
 *
 * An adapter changes one node from version `from` to its neighbour `to`. New nodes go before it, said as `to` says it;
 * what `to` lacks is refused. */
#ifndef WML_OPSET_ADAPT_H
#define WML_OPSET_ADAPT_H

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/type.h"

struct wml_opset_step {
    struct wml_model *model;
    int64_t from, to;
    char why[256];
    size_t n_unsure;
};

typedef bool wml_opset_adapter(struct wml_opset_step *s, struct wml_node *n);
wml_opset_adapter wml_opset_none; /* nothing to do */

enum wml_opset_kind { WML_OPSET_NEW, WML_OPSET_CHANGED, WML_OPSET_TYPES, WML_OPSET_INPUT, WML_OPSET_DROP, WML_OPSET_WORD,
                      WML_OPSET_WORD_GONE, WML_OPSET_ADAPT };

struct wml_opset_row {
    const char *op;
    int version;
    enum wml_opset_kind kind;
    const char *what; /* slots, or an attribute */
    uint32_t types;
    int number;
    const char *word;
    wml_opset_adapter *up, *down;
};
extern const struct wml_opset_row wml_opset_rows[];
extern const size_t wml_opset_n_rows;
/* The rows of an operator: the first one, and how many. NULL: none. */
const struct wml_opset_row *wml_opset_find(struct wml_str op, size_t *n);
/* The slot is among those of a TYPES row. */
bool wml_opset_slot(const char *slots, bool output, size_t slot);
/* The type of a value as a bit of the TYPES rows; 0: not known. Attributes tell it where nothing else does. */
uint32_t wml_opset_type_bit(const struct wml_value *v);
enum wml_dtype wml_opset_elem(const struct wml_value *v);

/* false, so that `return wml_opset_refuse(...)` ends an adapter. */
bool wml_opset_refuse(struct wml_opset_step *s, const char *fmt, ...) WML_PRINTF(2, 3);
/* The first n_in inputs and the first output are there; one of each always is when an adapter is called. */
bool wml_opset_has(struct wml_opset_step *s, const struct wml_node *n, size_t n_in);

/* Constants: initializers that callers cannot replace, and Constant nodes of any form. */
bool wml_opset_ints(struct wml_opset_step *s, const struct wml_value *v, int64_t **out, size_t *len);
bool wml_opset_number(struct wml_opset_step *s, const struct wml_value *v, double *out); /* of one element */
bool wml_opset_is_empty(const struct wml_value *v); /* a constant without elements */

/* New constants: initializers, in functions Constant nodes before n. */
struct wml_value *wml_opset_const(struct wml_opset_step *s, struct wml_node *n, const char *name, struct wml_tensor *t);
struct wml_value *wml_opset_i64s(struct wml_opset_step *s, struct wml_node *n, const char *name, size_t len, const int64_t *v);
struct wml_value *wml_opset_i64(struct wml_opset_step *s, struct wml_node *n, const char *name, int64_t v); /* scalar */
struct wml_value *wml_opset_scalar(struct wml_opset_step *s, struct wml_node *n, const char *name, enum wml_dtype dtype, double v);

/* A new node before n with one output, which is returned; wml_opset_op(s, n, "Add", a, b). */
struct wml_value *wml_opset_add(struct wml_opset_step *s, struct wml_node *n, const char *op, size_t n_in,
                                struct wml_value *const *in);
#define wml_opset_op(s, n, op, ...)                                                                                    \
    wml_opset_add(s, n, op, sizeof((struct wml_value *[]){__VA_ARGS__}) / sizeof(struct wml_value *),                  \
                  (struct wml_value *[]){__VA_ARGS__})
struct wml_value *wml_opset_cast(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, enum wml_dtype to);
/* v, made by a new node, takes the place of an output of n: its name, type and readers. */
void wml_opset_give(struct wml_node *n, size_t slot, struct wml_value *v);
/* The same for output 0, and n goes away. false, refused: another output of n is read. */
bool wml_opset_become(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v);
/* 0, 1, ... as many as v's axis from_end (1: the last) is long. */
struct wml_value *wml_opset_count_axis(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t from_end);
/* A copy of n before it (operator, inputs, attributes) with another first input; its only output. */
struct wml_value *wml_opset_copy(struct wml_opset_step *s, struct wml_node *n, struct wml_value *first);

#define ADAPT(op, version, up, down) wml_opset_adapter wml_opset_##up, wml_opset_##down;
#define NEW(op, version)
#define CHANGED(op, version)
#define TYPES(op, version, slots, types)
#define ALLOWS(op, version, slots, types)
#define INPUT(op, version, first)
#define DROP(op, version, attr, number)
#define DROP_TEXT(op, version, attr, word)
#define WORD(op, version, attr, word)
#define WORD_GONE(op, version, attr, word)
#include "opset/opset.def"
#undef ADAPT
#undef NEW
#undef CHANGED
#undef TYPES
#undef ALLOWS
#undef INPUT
#undef DROP
#undef DROP_TEXT
#undef WORD
#undef WORD_GONE

#endif
