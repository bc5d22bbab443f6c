/* graph/model.h - an ONNX model in memory: the messages of onnx.proto as plain structs, and the
 * graph (values, uses, order) that links them.
 *
 * Every struct has two faces. The FILE face mirrors the message field by field; src/onnx reads and
 * writes it by tables. The LINKED face (values, uses, node chain) is what others read, and edit by
 * graph/edit.h. After loading the linked face is the truth; saving writes it back to the file face.
 * All small memory is in the model's arena; strings and weights alias the mapped file. Thread rule:
 * a model belongs to one thread. Rarer messages are in graph/parts.h. */
#ifndef WML_GRAPH_MODEL_H
#define WML_GRAPH_MODEL_H

#include "base/map.h"
#include "base/rd.h"
#include "base/vec.h"

/* Head of every message. Bit n speaks of field number n: `has`, that a number was present (strings,
 * messages and lists show it by NULL or len); `packed`, that a list of numbers was packed. */
struct wml_msg {
    uint32_t has, packed;
    uint64_t size;               /* of the encoded body; the encoder's own */
    struct wml_unknown *unknown; /* fields without a row: kept, written after the known ones */
};

enum { WML_IR_MAX = 14, WML_IR_SEPARATE_WEIGHTS = 4 };

struct wml_entry { struct wml_msg msg; struct wml_str key, value; };
struct wml_entries { struct wml_entry *at; size_t len, cap; };
struct wml_opset { struct wml_msg msg; struct wml_str domain; int64_t version; };
struct wml_opsets { struct wml_opset *at; size_t len, cap; };

/* A declared name: a graph input or output, or the type of an inner value. */
struct wml_value_info {
    struct wml_msg msg;
    struct wml_str name, doc;
    struct wml_type *type;
    struct wml_entries metadata;
    struct wml_value *value; /* linked */
};

/* One reading of a value: slot `slot` of `node`, which may lie in a sub-graph of the value's graph. */
struct wml_use {
    struct wml_node *node;
    size_t slot;
    struct wml_use *prev, *next; /* of the same value, oldest first */
};

struct wml_value {
    struct wml_str name; /* the only place that knows it; change it by wml_value_rename */
    struct wml_graph *graph;
    struct wml_node *def; /* NULL: input or initializer */
    size_t def_slot;
    struct wml_use *uses, *last_use;
    size_t n_uses;
    unsigned n_inputs, n_outputs; /* how often it is listed as input, output of its graph */
    bool pinned; /* an annotation or training binding spells the name: not renamed, not removed */
    bool type_changed; /* it is not, or no longer, what the file says */
    bool listed;       /* for wml_model_sync */
    struct wml_tensor *init; /* graph/tensor.h; an initializer, or the default of an input */
    struct wml_sparse_tensor *sparse;
    struct wml_type *type;         /* graph/type.h; NULL: not known */
    struct wml_value *prev, *next; /* all values of the graph */
    uint64_t mark;                 /* for the pass at work: index, colour, ...; not kept */
};

struct wml_node {
    struct wml_msg msg;
    WML_VEC(struct wml_str) input, output; /* file face of in, out: do not use */
    struct wml_str name, op_type, domain, overload, doc;
    WML_VEC(struct wml_attr *) attr; /* graph/attr.h */
    struct wml_entries metadata;
    WML_VEC(struct wml_device_use *) device;
    /* linked */
    struct wml_value **in, **out; /* NULL: empty optional slot */
    size_t n_in, n_out;
    size_t cap_in, cap_out;    /* room in the arrays */
    struct wml_use *use; /* parallel to in */
    struct wml_graph *graph;
    struct wml_node *prev, *next; /* execution order */
    uint64_t mark;                /* for the pass at work; not kept */
};

struct wml_graph {
    struct wml_msg msg;
    struct wml_str name, doc;
    struct wml_entries metadata;
    WML_VEC(struct wml_annotation *) annotation;
    /* file face of the members below: do not use */
    WML_VEC(struct wml_node *) node;
    WML_VEC(struct wml_tensor *) initializer;
    WML_VEC(struct wml_sparse_tensor *) sparse_initializer;
    WML_VEC(struct wml_value_info *) input, output, value_info;
    /* linked */
    struct wml_node *first, *last; /* walk by ->next */
    size_t n_nodes;
    bool holds_graphs; /* one of its nodes has sub-graphs, or had */
    struct wml_value *first_value, *last_value;
    WML_VEC(struct wml_value *) inputs, outputs; /* signature, in order; inputs of IR < 4 hold weights */
    struct wml_map by_name;                      /* values of this graph only */
    struct wml_node *owner;  /* node with the attribute that holds this graph; NULL: top or function */
    struct wml_graph *outer; /* where captured names live; NULL: none */
    struct wml_model *model;
};

struct wml_model {
    struct wml_msg msg;
    int64_t ir_version, model_version;
    struct wml_str producer_name, producer_version, domain, doc;
    struct wml_graph *graph; /* never NULL after loading */
    struct wml_opsets opset;
    struct wml_entries metadata;
    WML_VEC(struct wml_training *) training;
    WML_VEC(struct wml_function *) function;
    WML_VEC(struct wml_device_config *) device;
    /* not in the file */
    struct wml_arena arena;
    struct wml_source *source; /* mapped files, the model's own first; see graph/store.h */
    struct wml_store *store;
};

#endif
