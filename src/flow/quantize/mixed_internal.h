/* flow/quantize/mixed_internal.h - the parts of the search for mixed precision. Internal to this folder. */
#ifndef WML_FLOW_QUANTIZE_MIXED_INTERNAL_H
#define WML_FLOW_QUANTIZE_MIXED_INTERNAL_H

#include "flow/quantize/internal.h"

struct wml_mixed_member { /* a tensor of 8 bits */
    struct wml_value *value; /* of the float model */
    struct wml_node *dq;     /* of the plain quantised one */
    struct wml_node *cut;    /* of the float model: the Relu or Clip that its integers stand for; NULL: none */
};

struct wml_mixed_part { /* what is raised together */
    WML_VEC(struct wml_mixed_member) member;
    bool constant; /* one constant with a scale of its own */
    double *noise; /* over signal, by output */
    double score;  /* the largest of them */
    size_t index;  /* in the order of the graph */
};

struct wml_mixed_constant { /* of 8 bits in the plain model */
    struct wml_value *value; /* of the float model */
    enum wml_dtype wide;     /* what it becomes */
    int64_t axis;            /* of its channels; -1: none */
    bool weight;             /* keeps 8 bits beside activations of 16 */
    size_t part;             /* index + 1; 0: it only follows */
};

struct wml_mixed_search {
    struct wml_quantize_run *r;
    struct wml_quantize_step *s;
    struct wml_quant_run *run;   /* over the float model */
    struct wml_model *base, *plain; /* float, prepared; all in 8 bits */
    struct wml_arena *arena;
    struct wml_mixed *out;
    struct wml_samples_spec samples;
    struct wml_answers *answers; /* of the source */
    WML_VEC(struct wml_mixed_part) part;
    WML_VEC(struct wml_mixed_constant) constant;
    struct wml_map by_name; /* constants, index + 1 */
    size_t n_nodes;         /* of the float model; node->mark is the number of each */
    bool *wide;             /* nodes in 16 bits before anything is raised */
    size_t n_outputs;
    size_t predicted;       /* so many parts must be raised if their noises add up */
};

/* mixed_parts.c: what can be raised. */
void wml_mixed_find(struct wml_mixed_search *x);
/* mixed_weigh.c: the noise of every part. */
bool wml_mixed_weigh(struct wml_mixed_search *x, struct wml_err *err);
/* mixed_order.c: the parts in the order in which they are raised, and x->predicted. */
void wml_mixed_order(struct wml_mixed_search *x);

/* The user's overrides say its type, or a scale of a type: it is left as it is. */
bool wml_mixed_is_fixed(const struct wml_quant_overrides *user, const struct wml_value *v);

struct wml_mixed_count { size_t activations, constants, nodes, all_nodes; }; /* in 16 bits; all: with float outputs */
/* mixed_raise.c: what makes the first n parts 16 bits wide, asked of m, a copy of the float model, which may get copies of
 * constants. In m's arena. */
struct wml_quant_overrides *wml_mixed_raise(struct wml_mixed_search *x, struct wml_model *m, size_t n, struct wml_mixed_count *count);

#endif
