/* graph/text_lex.h - the pieces of the text form: names, strings, numbers, types, elements. Used by
 * text_parse.c only. Every failure names line and column of what was not understood. */
#ifndef WML_GRAPH_TEXT_LEX_H
#define WML_GRAPH_TEXT_LEX_H

#include "graph/attr.h"
#include "graph/tensor.h"
#include "graph/type.h"

enum { WML_TEXT_DEPTH = 100 }; /* of graphs in graphs and types in types */

extern const char *const wml_text_attr_type[WML_ATTR_TYPES + 1]; /* "int", "floats", ... */

struct wml_lex {
    const char *p, *end, *start;
    struct wml_model *m; /* what is read goes into its arena */
    struct wml_err *err;
    unsigned depth;
};

struct wml_lex_number {
    bool is_int, is_negative;
    int64_t i;  /* of a negative integer */
    uint64_t u; /* of any other integer */
    double d;   /* of both kinds */
};

/* "line 3, column 7: ", then the message; `at` is where the trouble starts. */
bool wml_lex_fail(struct wml_lex *l, const char *at, const char *fmt, ...) WML_PRINTF(3, 4);
/* "expected WHAT, found ..." at the next token. */
bool wml_lex_expected(struct wml_lex *l, const char *what);
/* The next character that is neither blank nor comment, 0 at the end. */
char wml_lex_peek(struct wml_lex *l);
/* Takes the text when it comes next. */
bool wml_lex_take(struct wml_lex *l, const char *text);
bool wml_lex_want(struct wml_lex *l, const char *text, const char *where);
bool wml_lex_at_word(struct wml_lex *l);
bool wml_lex_at_name(struct wml_lex *l); /* a word or a string */
/* A word; it aliases the input. */
bool wml_lex_word(struct wml_lex *l, struct wml_str *out, const char *what);
bool wml_lex_string(struct wml_lex *l, struct wml_str *out);              /* "...", in the arena */
bool wml_lex_name(struct wml_lex *l, struct wml_str *out, const char *what); /* in the arena */
bool wml_lex_number(struct wml_lex *l, struct wml_lex_number *out);
bool wml_lex_int(struct wml_lex *l, int64_t *out);
bool wml_lex_enter(struct wml_lex *l); /* one level deeper; the caller counts back */

/* A type. The pointer is NULL for "?". */
bool wml_lex_type(struct wml_lex *l, struct wml_type **out);
/* "{...}" of elements for a tensor of this type; its sizes must be known. */
bool wml_lex_elements(struct wml_lex *l, const struct wml_type *type, struct wml_tensor **out);
/* A type and its elements. */
bool wml_lex_tensor(struct wml_lex *l, struct wml_tensor **out);
/* "sparse(values, indices)" of the given dense type. */
bool wml_lex_sparse(struct wml_lex *l, const struct wml_type *type, struct wml_sparse_tensor **out);

#endif
