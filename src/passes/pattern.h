/* passes/pattern.h - rewrites said as expressions.
 *
 * A pattern is one expression, its outermost operator the last node of what is looked for:
 *
 *     "Mul(0.5, Mul(x, Add(1, Erf(Div(x, 1.4142135)))))"
 *     "Add(Mul(Div(d:Sub(x, m:ReduceMean(x)), Sqrt(Add(ReduceMean(Pow(d, 2)), $eps))), $scale), $bias)"
 *
 *     x        any value; the same name again: the same value
 *     $w       a constant (wml_constant_of); the same name again: the same value
 *     0.5      a constant of one element with this value (relative 1e-5; 16-bit floats 1e-3); its rank
 *              must not raise the rank of the other operand
 *     Op(...)  a node of the ONNX domain with these inputs; Op|Op2: either; com.microsoft::Op: of a domain
 *     n:Op()   the same, and `n` names its first output (and the node, for wml_match_node)
 *     _        an empty or absent input;  ?x: a value or empty;  ...: any further inputs
 *
 * Checked here, once for all: both orders of commutative operators; inputs beyond the written ones must be
 * absent; every inner node lies in one graph with the last one, has one used output, and all its readers
 * are nodes of the match; inner values are no graph outputs and not pinned by name. What is left to the
 * rule: attributes, axes, types, shapes. */
#ifndef WML_PASSES_PATTERN_H
#define WML_PASSES_PATTERN_H

#include "passes/match.h"

enum { WML_PATTERN_TERMS = 64, WML_PATTERN_NAMES = 24 };

struct wml_pattern; /* compiled; in an arena */

struct wml_match {
    struct wml_pass_run *r;
    const struct wml_rule *rule;
    struct wml_node *root; /* the last node */
    const struct wml_pattern *pattern;
    struct wml_value *value[WML_PATTERN_NAMES];
    struct wml_node *node[WML_PATTERN_TERMS]; /* inner nodes and root, in no order */
    size_t n_nodes;
};

struct wml_rule {
    const char *pattern;
    /* Checks what the pattern cannot say and rewrites; false: left as it is, nothing changed. It says why by
     * wml_match_refuse. Nodes that nothing reads any more are removed afterwards. */
    bool (*rewrite)(struct wml_match *m);
    int64_t variant; /* for the rule's own use */
    int64_t min_opset;
};

/* Every match of every rule, in all graphs; the first rule that fits a node wins. */
bool wml_rules_run(struct wml_pass_run *r, const struct wml_rule *rule, size_t n, struct wml_err *err);

/* What a name of the pattern stands for; NULL: an empty optional one. The name must be in the pattern. */
struct wml_value *wml_match_value(const struct wml_match *m, const char *name);
struct wml_node *wml_match_node(const struct wml_match *m, const char *name);
/* false, so that `return wml_match_refuse(...)` ends a rule; shown with -v. */
bool wml_match_refuse(struct wml_match *m, const char *fmt, ...) WML_PRINTF(2, 3);

/* A new node before the root. An input may be NULL: empty. The output is named after `like`. */
struct wml_value *wml_match_add(struct wml_match *m, const char *op, const char *like, size_t n_in,
                                struct wml_value *const *in);
/* The last one: takes over the root's name, output and type. domain "" is ONNX's, which is imported already; another
 * is imported at version 1 when it is not. */
struct wml_node *wml_match_replace(struct wml_match *m, const char *domain, const char *op, size_t n_in,
                                   struct wml_value *const *in);
/* The root's output is another value of the graph. false when that cannot be (see wml_value_replace). */
bool wml_match_bypass(struct wml_match *m, struct wml_value *v);
/* New constants in the root's graph. */
struct wml_value *wml_match_const(struct wml_match *m, const char *name, struct wml_tensor *t);
struct wml_value *wml_match_scalar(struct wml_match *m, const char *name, enum wml_dtype dtype, double x);
struct wml_value *wml_match_ints(struct wml_match *m, const char *name, size_t n, const int64_t *v);

#endif
