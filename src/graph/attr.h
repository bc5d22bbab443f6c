/* graph/attr.h - attributes of nodes. */
#ifndef WML_GRAPH_ATTR_H
#define WML_GRAPH_ATTR_H

#include "graph/model.h"

enum wml_attr_type { /* values of AttributeProto.AttributeType */
    WML_ATTR_UNDEFINED = 0, WML_ATTR_FLOAT = 1, WML_ATTR_INT = 2, WML_ATTR_STRING = 3,
    WML_ATTR_TENSOR = 4, WML_ATTR_GRAPH = 5, WML_ATTR_FLOATS = 6, WML_ATTR_INTS = 7,
    WML_ATTR_STRINGS = 8, WML_ATTR_TENSORS = 9, WML_ATTR_GRAPHS = 10, WML_ATTR_SPARSE = 11,
    WML_ATTR_SPARSES = 12, WML_ATTR_TYPE = 13, WML_ATTR_TYPES = 14
};

struct wml_attr {
    struct wml_msg msg;
    struct wml_str name, doc;
    struct wml_str ref; /* inside functions: the value is the caller's attribute of this name */
    int32_t type;       /* enum wml_attr_type; old files leave it out, see wml_attr_kind */
    float f;
    int64_t i;
    struct wml_str s;
    struct wml_tensor *t;
    struct wml_graph *g;
    struct wml_sparse_tensor *sparse;
    struct wml_type *tp;
    WML_VEC(float) floats;
    WML_VEC(int64_t) ints;
    WML_VEC(struct wml_str) strings;
    WML_VEC(struct wml_tensor *) tensors;
    WML_VEC(struct wml_graph *) graphs;
    WML_VEC(struct wml_sparse_tensor *) sparses;
    WML_VEC(struct wml_type *) types;
};

/* The type, told from the fields that are set where the file leaves it out. */
enum wml_attr_type wml_attr_kind(const struct wml_attr *a);
const char *wml_attr_type_name(int type); /* "INT", ... */

/* Reading. `find` gives NULL when there is none; the typed getters then give the fallback, also when
 * the attribute has another type. */
struct wml_attr *wml_attr_find(const struct wml_node *n, const char *name);
int64_t wml_attr_int(const struct wml_node *n, const char *name, int64_t fallback);
float wml_attr_float(const struct wml_node *n, const char *name, float fallback);
struct wml_str wml_attr_str(const struct wml_node *n, const char *name, struct wml_str fallback);
/* NULL and 0 when absent. */
const int64_t *wml_attr_ints(const struct wml_node *n, const char *name, size_t *len);
const float *wml_attr_floats(const struct wml_node *n, const char *name, size_t *len);
struct wml_tensor *wml_attr_tensor(const struct wml_node *n, const char *name);
struct wml_graph *wml_attr_graph(const struct wml_node *n, const char *name);
/* Same type and content; tensors by bytes, graphs only by identity. */
bool wml_attr_eq(struct wml_model *m, const struct wml_attr *a, const struct wml_attr *b);
/* Same attributes, in any order. */
bool wml_attrs_eq(struct wml_model *m, const struct wml_node *a, const struct wml_node *b);

/* Writing: adds the attribute or replaces its value. Names, strings and arrays are copied. */
void wml_attr_set_int(struct wml_node *n, const char *name, int64_t v);
void wml_attr_set_float(struct wml_node *n, const char *name, float v);
void wml_attr_set_str(struct wml_node *n, const char *name, struct wml_str v);
void wml_attr_set_ints(struct wml_node *n, const char *name, size_t len, const int64_t *v);
void wml_attr_set_floats(struct wml_node *n, const char *name, size_t len, const float *v);
void wml_attr_set_tensor(struct wml_node *n, const char *name, struct wml_tensor *t);
/* g must be linked already or empty, made by wml_graph_new(model, n). */
void wml_attr_set_graph(struct wml_node *n, const char *name, struct wml_graph *g);
bool wml_attr_remove(struct wml_node *n, const char *name);
/* Copies every attribute of `from` but those holding graphs. */
void wml_attrs_copy(struct wml_node *to, const struct wml_node *from);

#endif
