/* passes/shape_symbols.h - small vectors of integers that a graph computes from shapes, as far as they can be told
 * before it runs: every element a number, a symbol (the size of an axis) or open. */
#ifndef WML_PASSES_SHAPE_SYMBOLS_H
#define WML_PASSES_SHAPE_SYMBOLS_H

#include "passes/match.h"

enum wml_sym_kind { WML_SYM_OPEN, WML_SYM_NUMBER, WML_SYM_SYMBOL };

struct wml_sym {
    enum wml_sym_kind kind;
    int64_t v;        /* NUMBER */
    struct wml_str s; /* SYMBOL: never negative; "a + b" is the sum of those two */
};

enum { WML_SYMS = 12 };

struct wml_syms { /* a scalar has one element */
    size_t n;
    struct wml_sym at[WML_SYMS];
};

struct wml_sym wml_sym_number(int64_t v);
struct wml_sym wml_sym_axis(const struct wml_value *v, size_t axis);
bool wml_sym_eq(struct wml_sym a, struct wml_sym b);      /* false when one is open */
bool wml_sym_is(struct wml_sym a, int64_t v);             /* the number v */
struct wml_sym wml_sym_sum(struct wml_model *m, struct wml_sym a, struct wml_sym b);
struct wml_sym wml_sym_difference(struct wml_sym a, struct wml_sym b);
struct wml_sym wml_sym_broadcast(struct wml_sym a, struct wml_sym b);

/* Forgets what was noted. Value marks are used. */
void wml_syms_begin(struct wml_pass_run *r);
/* What is known of v: a constant, or noted before; NULL: nothing. */
const struct wml_syms *wml_syms_of(struct wml_pass_run *r, struct wml_value *v);
/* Notes what can be told of n's outputs. Nodes come in order. */
void wml_syms_note(struct wml_pass_run *r, const struct wml_node *n);

#endif
