/* passes/pass.h - one pass of the optimiser: its descriptor, what it gets when it runs, and what it may ask. Passes know
 * no runtime: types and values of constants arrive as callbacks in struct wml_env. */
#ifndef WML_PASSES_PASS_H
#define WML_PASSES_PASS_H

#include "base/ctx.h"
#include "graph/model.h"
#include "passes/log.h"

enum wml_ort_level { WML_ORT_LEVEL_LEAN /* basic without what our passes do */, WML_ORT_LEVEL_BASIC, WML_ORT_LEVEL_EXTENDED };

struct wml_env { /* any callback may be NULL: the passes that need it are skipped, with that reason */
    void *arg;
    /* Sets types of the top graph that are not known yet. */
    bool (*infer_types)(void *arg, struct wml_model *m, size_t *n_set, struct wml_err *err);
    /* Evaluates n constant values of one graph; out[i], of the model, is NULL where one is no dense tensor. */
    bool (*evaluate)(void *arg, struct wml_model *m, struct wml_value *const *v, size_t n,
                     struct wml_tensor **out, struct wml_err *err);
    /* ORT's own optimiser, on the CPU, over a skeleton: a new model, weights still in the files of m. disable:
     * names of ORT's optimisers to leave out, ';' between. */
    bool (*ort_optimise)(void *arg, struct wml_model *m, bool extended, const char *disable, struct wml_model **out,
                         struct wml_err *err);
    /* ONNX Runtime proves that the graph cannot run. given: values from outside, by their types. */
    bool (*cannot_run)(void *arg, struct wml_model *m, struct wml_graph *g, struct wml_value *const *given, size_t n_given);
    enum wml_ort_level ort_level;
    double clamp_min, clamp_max; /* clamp-constant-values clips to these if clamp, else to its own bounds */
    bool clamp;
    bool weights_stay; /* they are not written: what reads much of them costs more than it saves */
};

struct wml_pass_run { /* what a pass gets */
    struct wml_model *model;
    const struct wml_env *env;
    struct wml_arena *scratch; /* reset after the pass */
    size_t applied;            /* the pass counts its changes */
    char skipped[256];         /* set it: why the pass (or a part of it) did nothing */
    struct wml_model *replacement; /* set it: takes the model's place, which is freed */
    size_t round, before;      /* from 0; how often this pass has run */
    const struct wml_pass *pass;   /* the one at work */
    bool asked;                    /* switched on by name, not by default */
    struct wml_pass_log *log;      /* NULL: not kept */
};
/* Counts a change; op and node name what was there before. */
void wml_pass_applied(struct wml_pass_run *r, struct wml_str op_type, struct wml_str node);
/* Says why a node that looked right is left alone. */
void wml_pass_refuse(struct wml_pass_run *r, const struct wml_node *n, const char *fmt, ...) WML_PRINTF(3, 4);
/* Sets r->skipped and returns true, so that `return wml_pass_skip(...)` ends a pass. */
bool wml_pass_skip(struct wml_pass_run *r, const char *fmt, ...) WML_PRINTF(2, 3);

/* What the operators that a pass makes are: decides which targets want it. */
enum wml_pass_makes { WML_MAKES_STANDARD, WML_MAKES_CONTRIB }; /* ai.onnx only; com.microsoft as well */

struct wml_rule;

struct wml_pass {
    const char *name;     /* as in --enable-NAME */
    const char *category; /* "graph", "convolution", ... as --list-capabilities groups them */
    const char *summary;
    bool on;              /* by default */
    bool reference_on;    /* in the Python tool's defaults */
    const char *pipe;     /* the Python tool's pipe ("ort_graph", "rewrite", ...); NULL: a pass of winml's own */
    const char *ort_name; /* ORT's optimiser of the same kind, or NULL */
    int level;            /* of that optimiser; 0: none */
    enum wml_pass_makes makes;
    const char *needs;    /* names of passes it depends on, a blank between; NULL: none */
    const char *against;  /* names of passes that undo it, or that it undoes, a blank between; NULL: none */
    const char *refused;  /* why it cannot be asked for; then there is nothing to do */
    const char *only_for; /* EPs that have the operators it makes, a blank between; NULL: the CPU EP has them */
    bool wider;           /* on by default, and does more when asked for by name */
    bool lossy;           /* answers change by design */
    bool late;            /* looks at the whole: runs only after a round in which the others changed nothing */
    bool cgc;             /* one of the rules for backend cgc */
    /* What it does, in one of three ways: to each node of every graph (match.h), by rules (pattern.h), or to the whole. */
    bool (*visit)(struct wml_pass_run *r, struct wml_node *n);
    const struct wml_rule *rules;
    size_t n_rules;
    bool (*run)(struct wml_pass_run *r, struct wml_err *err);
};

#endif
