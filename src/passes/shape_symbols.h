/* passes/shape_symbols.h - small vectors of integers that a graph computes from shapes, as far as they can be told
 * before it runs: every element a number, a symbol (the size of an axis) or open. */
#ifndef WML_PASSES_SHAPE_SYMBOLS_H
#define WML_PASSES_SHAPE_SYMBOLS_H

#include "passes/match.h"

enum wml_sym_kind { WML_SYM_OPEN, WML_SYM_NUMBER, WML_SYM_SYMBOL };

struct wml_sym {
    enum wml_sym_kind kind;
    int64_t v;        /* NUMBER */
    struct wml_str s; /* SYMBOL: never negative; "a + b" is the sum of those two, "min(512, a)" the smaller one */
};

enum { WML_SYMS = 12 };

struct wml_syms { /* a scalar has one element */
    size_t n;
    struct wml_sym at[WML_SYMS];
};

/* What a pass knows of symbols. An output may declare a name of its own for what is a sum here: "total" for "past + seq". */
struct wml_symbols {
    struct wml_pass_run *r;
    WML_VEC(struct wml_str) sum, declared;
};
/* In the pass's scratch memory. Value marks are used. */
struct wml_symbols *wml_symbols_new(struct wml_pass_run *r);

struct wml_sym wml_sym_number(int64_t v);
/* Sums are told by their parts here, by their declared names in types. */
struct wml_sym wml_sym_axis(const struct wml_symbols *c, const struct wml_value *v, size_t axis);
struct wml_str wml_sym_name(const struct wml_symbols *c, struct wml_sym a);
bool wml_sym_eq(struct wml_sym a, struct wml_sym b); /* false when one is open */
bool wml_sym_is(struct wml_sym a, int64_t v);        /* the number v */
struct wml_sym wml_sym_sum(struct wml_model *m, struct wml_sym a, struct wml_sym b);
struct wml_sym wml_sym_difference(struct wml_sym a, struct wml_sym b);
/* The smaller of a number above 0 and a symbol. */
struct wml_sym wml_sym_least(struct wml_model *m, struct wml_sym a, struct wml_sym b);
struct wml_sym wml_sym_broadcast(struct wml_sym a, struct wml_sym b);

/* What is known of v: a constant, or noted before; NULL: nothing. */
const struct wml_syms *wml_syms_of(struct wml_symbols *c, struct wml_value *v);
/* Notes what can be told of n's outputs. Nodes come in order. */
void wml_syms_note(struct wml_symbols *c, const struct wml_node *n);

#endif
