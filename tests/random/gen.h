/* gen.h - random small graphs that are valid by construction: the generator knows the sizes of every value, so
 * that few graphs are refused by ONNX Runtime. A seed gives the same graph everywhere.
 *
 * The pool holds every value that a next node may read; a sub-graph sees those of its outer graphs, and its own
 * leave the pool when it ends. `most` bounds magnitudes, so that answers stay finite mostly. */
#ifndef WML_TESTS_RANDOM_GEN_H
#define WML_TESTS_RANDOM_GEN_H

#include "base/rng.h"
#include "graph/edit.h"
#include "graph/graph.h"

enum { GEN_RANK = 8, GEN_POOL = 200, GEN_INPUTS = 12 };

enum { /* sets of element types */
    GEN_F = 1, GEN_D = 2, GEN_I = 4, GEN_J = 8, GEN_B = 16, GEN_H = 32, GEN_U = 64,
    GEN_REAL = GEN_F | GEN_D, GEN_INT = GEN_I | GEN_J, GEN_NUM = GEN_REAL | GEN_INT, GEN_ANY = GEN_NUM | GEN_B
};

struct gen_value {
    struct wml_value *v;
    enum wml_dtype t;
    size_t rank;
    int64_t dim[GEN_RANK];
    double most;
};

struct gen_input { /* how to fill one input of the model */
    char name[32];
    enum wml_dtype t;
    size_t rank;
    int64_t dim[GEN_RANK];
    bool batch[GEN_RANK]; /* the axis is the symbol; dim is then its first size */
    bool optional;        /* an initializer is its default */
    bool wild; /* enormous and tiny numbers among the second feed's; what ORT's maxima make of NaN depends on the layout */
    double low, high;
};

struct gen {
    struct wml_rng rng;
    struct wml_model *m;
    struct wml_graph *g; /* where nodes are added */
    int64_t opset;
    size_t depth; /* of g; 0: the model's graph */
    struct gen_value pool[GEN_POOL];
    size_t n;
    struct gen_input input[GEN_INPUTS];
    size_t n_inputs;
    int64_t batch;  /* size of the symbol; 0: none in this graph */
    bool odd_sizes; /* sizes 0 may appear */
    bool quiet_names;
    struct wml_arena arena;
};

/* gen.c */
bool gen_graph(struct gen *g, uint64_t seed, struct wml_err *err);
void gen_release(struct gen *g);

/* Numbers. */
int64_t gen_int(struct gen *g, int64_t low, int64_t high); /* both included */
bool gen_chance(struct gen *g, int percent);
double gen_real(struct gen *g, double low, double high);

/* Values. */
struct gen_value gen_pick(struct gen *g, unsigned types, size_t min_rank, size_t max_rank);
struct gen_value gen_pick_small(struct gen *g, unsigned types, size_t min_rank, size_t max_rank, double most);
bool gen_find(struct gen *g, unsigned types, size_t min_rank, size_t max_rank, struct gen_value *out);
struct gen_value gen_source(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim);
struct gen_value gen_const(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim, double low, double high);
struct gen_value gen_scalar(struct gen *g, enum wml_dtype t, double x); /* rank 0, or sometimes [1] */
struct gen_value gen_ints(struct gen *g, size_t n, const int64_t *v);   /* int64 [n] */
struct gen_value gen_beside(struct gen *g, const struct gen_value *a, double low, double high); /* broadcasts to a */
struct gen_value gen_fill(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim, const double *x);
int64_t gen_count(const struct gen_value *a);
bool gen_is_type(enum wml_dtype t, unsigned types);
bool gen_broadcast(const struct gen_value *a, const struct gen_value *b, struct gen_value *out); /* rank and dims */
int64_t gen_dim(struct gen *g);

/* Nodes. Inputs end with NULL; gen_none is an empty one. */
extern const struct gen_value gen_none;
struct wml_node *gen_node(struct gen *g, const char *op, const struct gen_value *const *in);
#define GEN_NODE(g, op, ...) gen_node((g), (op), (const struct gen_value *const[]){__VA_ARGS__, NULL})
struct gen_value gen_out(struct gen *g, struct wml_node *n, enum wml_dtype t, size_t rank, const int64_t *dim, double most);
struct gen_value gen_like(struct gen *g, struct wml_node *n, const struct gen_value *a, double most);
/* One random node; false: it did not fit. */
bool gen_step(struct gen *g);
/* A value of the type and sizes of a, made from it by a few nodes. */
struct gen_value gen_same(struct gen *g, struct gen_value a);
/* One number made of a float value of any sizes; false: there is none. */
bool gen_number(struct gen *g, struct gen_value *out);
/* Axes as an input from opset `since` on, as an attribute before. */
struct wml_node *gen_axes_node(struct gen *g, const char *op, const struct gen_value *a, size_t n, const int64_t *axes, int64_t since);
struct gen_value gen_reduce(struct gen *g, const char *op, struct gen_value a, size_t n, const int64_t *axes, int64_t keep);
struct gen_value gen_reshape(struct gen *g, struct gen_value a, size_t rank, const int64_t *dim);
struct gen_value gen_transpose(struct gen *g, struct gen_value a, const int64_t *perm);
struct gen_value gen_op1(struct gen *g, const char *op, struct gen_value a);
struct gen_value gen_op2(struct gen *g, const char *op, struct gen_value a, struct gen_value b); /* either order */
struct gen_value gen_op2_as(struct gen *g, const char *op, struct gen_value a, struct gen_value b);

struct gen_op {
    const char *name;
    bool (*make)(struct gen *g);
    int weight;
    int64_t since;
};
#define GEN_OPS(list) extern const struct gen_op list[]; extern const size_t n_##list
GEN_OPS(gen_math_ops);
GEN_OPS(gen_shape_ops);
GEN_OPS(gen_net_ops);
GEN_OPS(gen_form_ops);
GEN_OPS(gen_encoder_ops);
GEN_OPS(gen_flow_ops);
GEN_OPS(gen_quant_ops);
GEN_OPS(gen_join_ops);
GEN_OPS(gen_rare_ops);
GEN_OPS(gen_attention_ops);

#endif
