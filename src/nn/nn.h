/* nn/nn.h - a graph built the way the modules of a network are written: values go through functions that add
 * nodes, inside scopes that say to which module the nodes belong.
 *
 *     wml_nn_enter(b, "BertSelfOutput", "output");
 *     x = wml_nn_linear(b, x, "dense");                 the weights <path of scopes>.dense.weight and .bias
 *     x = wml_nn_layer_norm(b, wml_nn_add(b, x, y), "LayerNorm", eps);
 *     wml_nn_leave(b);
 *
 * The path of scopes gives the name of a node ("/encoder/layer.0/output/dense/MatMul"), of its weights
 * ("encoder.layer.0.output.dense.weight"), and, with the classes, the hierarchy tag in its metadata.
 * Every value has a type. Sizes that are known at build time become constants: with fixed inputs no node computes a shape.
 *
 * The first failure is kept in *err and everything after it does nothing and gives NULL, so callers look once, at the end:
 * wml_nn_ok. Values belong to the model. Operators are in nn/ops.h, layers in nn/layers.h, attention in nn/attention.h. */
#ifndef WML_NN_NN_H
#define WML_NN_NN_H

#include "graph/edit.h"
#include "weights/weights.h"

enum { WML_NN_MAX_RANK = 8, WML_NN_MAX_DEPTH = 32, WML_NN_OPSET = 17 /* the lowest that is built; lower ones are converted */ };

/* What a config may ask for. Layers can share weights, and tables are computed: a small checkpoint can mean a large model. */
struct wml_nn_limits {
    size_t nodes;  /* and inputs */
    uint64_t room; /* bytes of tables that are computed: wml_nn_room */
};

/* A module that was entered, for reports; in order of execution. */
struct wml_nn_module {
    const char *class_name;
    struct wml_str path, name, tag; /* "encoder.layer.0", "/encoder/layer.0", "/BertModel/BertEncoder/BertLayer.0" */
    size_t parent;            /* index; of the root itself */
    bool layer;               /* one of the framework's (Linear, Conv2d, ...): has no part in tags */
};

struct wml_nn_scope {
    struct wml_str path, name, tag; /* of weights, of nodes ("/encoder/layer.0"), of metadata */
    size_t module;
};

struct wml_nn {
    struct wml_model *m;
    struct wml_graph *g;
    struct wml_weights *w;
    int64_t opset;        /* wanted: standard forms that it has are used */
    enum wml_dtype real;  /* of weights: WML_F32 unless told otherwise; the operators that are built must have it */
    const char *klass;    /* what '*' at the start of a class stands for: "Roberta" */
    struct wml_str base;  /* of the bare model in those with heads, "bert"; checkpoints have it or not. Absent: none */
    struct wml_err *err;
    bool failed;
    bool sketch; /* no weights are there: those a family needs are made up, without content (nn/param.h) */
    struct wml_nn_limits left; /* of 131072 nodes, 4 GiB */
    /* its own */
    struct wml_nn_scope scope[WML_NN_MAX_DEPTH];
    size_t depth;
    WML_VEC(struct wml_nn_module) module; /* arena of the model */
    struct wml_map by_path, node_names, shared;
};

/* A model of its own with opset and IR version; err and w outlive it. w may be NULL: then there are no weights. */
void wml_nn_init(struct wml_nn *b, struct wml_weights *w, int64_t opset, struct wml_err *err);
void wml_nn_release(struct wml_nn *b); /* also the model, unless it was taken: b->m = NULL */
static inline bool wml_nn_ok(const struct wml_nn *b) { return !b->failed; }
/* Keeps the first failure. NULL for `return wml_nn_fail(...)`. */
void *wml_nn_fail(struct wml_nn *b, enum wml_code code, const char *fmt, ...) WML_PRINTF(3, 4);
void *wml_nn_hint(struct wml_nn *b, const char *fmt, ...) WML_PRINTF(2, 3);

/* Scopes. The first is the root, its name is "". A '*' at the start of the class is b->klass. `fmt` gives the attribute,
 * lists with their index: "layer.%zu". enter_layer: a framework's layer or container, without part in tags. */
void wml_nn_enter(struct wml_nn *b, const char *class_name, const char *fmt, ...) WML_PRINTF(3, 4);
void wml_nn_enter_layer(struct wml_nn *b, const char *class_name, const char *fmt, ...) WML_PRINTF(3, 4);
void wml_nn_leave(struct wml_nn *b);

/* Inputs and outputs of the graph. The output takes the name. */
struct wml_value *wml_nn_input(struct wml_nn *b, const char *name, enum wml_dtype dtype, size_t rank, const struct wml_axis *axis);
void wml_nn_output(struct wml_nn *b, const char *name, struct wml_value *v);

/* Shapes. Negative axes count from the end. */
struct wml_nn_shape {
    size_t rank;
    struct wml_axis at[WML_NN_MAX_RANK];
};
struct wml_nn_shape wml_nn_shape(const struct wml_value *v);
size_t wml_nn_rank(const struct wml_value *v);
struct wml_axis wml_nn_axis(const struct wml_value *v, int axis);
bool wml_nn_is_fixed(const struct wml_value *v, int axis);
/* Sizes that contradict each other, which only a config that contradicts itself can make: says where and which. */
void *wml_nn_misfit(struct wml_nn *b, const char *op, const struct wml_nn_shape *x, const struct wml_nn_shape *y);
/* A size that must be known now; a failure names `what` (the value in the user's words). 1 after a failure. */
int64_t wml_nn_size(struct wml_nn *b, const struct wml_value *v, int axis, const char *what);
/* The size as an int64 [1]: a constant, or what Shape gives. */
struct wml_value *wml_nn_extent(struct wml_nn *b, struct wml_value *v, int axis);

/* Constants; equal ones are one initializer. */
struct wml_value *wml_nn_float(struct wml_nn *b, double v); /* scalar */
struct wml_value *wml_nn_number(struct wml_nn *b, enum wml_dtype dtype, double v); /* float32 or float16 */
struct wml_value *wml_nn_int(struct wml_nn *b, enum wml_dtype dtype, int64_t v);
struct wml_value *wml_nn_ints(struct wml_nn *b, size_t n, const int64_t *v); /* int64 [n] */
/* Named after `hint` in the scope; the bytes are copied. */
struct wml_value *wml_nn_const(struct wml_nn *b, const char *hint, enum wml_dtype dtype, size_t rank, const int64_t *dims, const void *bytes);

/* Cleared memory, as long as the model, for a table that is computed now: `item` bytes times the dims. Configs and sizes of
 * inputs may ask for anything: a failure names `what` when it is more than 1 << 26 elements, or all together than the limit. */
void *wml_nn_room(struct wml_nn *b, const char *what, size_t item, size_t rank, const int64_t *dims);

/* A node by hand, for what nn/ops.h has not: named and tagged; outputs are added by wml_nn_out with their type. */
struct wml_node *wml_nn_node(struct wml_nn *b, const char *domain, const char *op, size_t n, struct wml_value *const *in);
struct wml_value *wml_nn_out(struct wml_nn *b, struct wml_node *n, enum wml_dtype dtype, const struct wml_nn_shape *shape);

#define WML_DIMS(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), ((const int64_t[]){__VA_ARGS__})
#define WML_VALUES(...) (sizeof((struct wml_value *[]){__VA_ARGS__}) / sizeof(struct wml_value *)), ((struct wml_value *[]){__VA_ARGS__})

#endif
