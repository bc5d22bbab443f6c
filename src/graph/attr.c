/* graph/attr.c - reading attributes. */
#include "graph/attr.h"

#include "graph/edit.h"

enum { HAS_F = 1u << 2, HAS_I = 1u << 3 };

enum wml_attr_type wml_attr_kind(const struct wml_attr *a)
{
    if (a->type) return (enum wml_attr_type)a->type;
    if (a->msg.has & HAS_F) return WML_ATTR_FLOAT;
    if (a->msg.has & HAS_I) return WML_ATTR_INT;
    if (a->t) return WML_ATTR_TENSOR;
    if (a->g) return WML_ATTR_GRAPH;
    if (a->sparse) return WML_ATTR_SPARSE;
    if (a->tp) return WML_ATTR_TYPE;
    if (a->floats.len) return WML_ATTR_FLOATS;
    if (a->ints.len) return WML_ATTR_INTS;
    if (a->strings.len) return WML_ATTR_STRINGS;
    if (a->tensors.len) return WML_ATTR_TENSORS;
    if (a->graphs.len) return WML_ATTR_GRAPHS;
    if (a->sparses.len) return WML_ATTR_SPARSES;
    if (a->types.len) return WML_ATTR_TYPES;
    return a->s.ptr ? WML_ATTR_STRING : WML_ATTR_UNDEFINED;
}

const char *wml_attr_type_name(int type)
{
    static const char *const name[] = {
        [WML_ATTR_UNDEFINED] = "UNDEFINED", [WML_ATTR_FLOAT] = "FLOAT", [WML_ATTR_INT] = "INT",
        [WML_ATTR_STRING] = "STRING", [WML_ATTR_TENSOR] = "TENSOR", [WML_ATTR_GRAPH] = "GRAPH",
        [WML_ATTR_FLOATS] = "FLOATS", [WML_ATTR_INTS] = "INTS", [WML_ATTR_STRINGS] = "STRINGS",
        [WML_ATTR_TENSORS] = "TENSORS", [WML_ATTR_GRAPHS] = "GRAPHS", [WML_ATTR_SPARSE] = "SPARSE_TENSOR",
        [WML_ATTR_SPARSES] = "SPARSE_TENSORS", [WML_ATTR_TYPE] = "TYPE_PROTO", [WML_ATTR_TYPES] = "TYPE_PROTOS"};
    return type >= 0 && (size_t)type < WML_COUNT(name) ? name[type] : "unknown";
}

struct wml_attr *wml_attr_find(const struct wml_node *n, const char *name)
{
    for (size_t i = 0; i < n->attr.len; i++)
        if (wml_str_is(n->attr.at[i]->name, name)) return n->attr.at[i];
    return NULL;
}

/* The attribute when it has the type and a value of its own. */
static struct wml_attr *typed(const struct wml_node *n, const char *name, enum wml_attr_type type)
{
    struct wml_attr *a = wml_attr_find(n, name);
    return a && !a->ref.len && wml_attr_kind(a) == type ? a : NULL;
}

int64_t wml_attr_int(const struct wml_node *n, const char *name, int64_t fallback)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_INT);
    return a ? a->i : fallback;
}

float wml_attr_float(const struct wml_node *n, const char *name, float fallback)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_FLOAT);
    return a ? a->f : fallback;
}

struct wml_str wml_attr_str(const struct wml_node *n, const char *name, struct wml_str fallback)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_STRING);
    return a ? a->s : fallback;
}

const int64_t *wml_attr_ints(const struct wml_node *n, const char *name, size_t *len)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_INTS);
    *len = a ? a->ints.len : 0;
    return a ? a->ints.at : NULL;
}

const float *wml_attr_floats(const struct wml_node *n, const char *name, size_t *len)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_FLOATS);
    *len = a ? a->floats.len : 0;
    return a ? a->floats.at : NULL;
}

struct wml_tensor *wml_attr_tensor(const struct wml_node *n, const char *name)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_TENSOR);
    return a ? a->t : NULL;
}

struct wml_graph *wml_attr_graph(const struct wml_node *n, const char *name)
{
    const struct wml_attr *a = typed(n, name, WML_ATTR_GRAPH);
    return a ? a->g : NULL;
}

static bool lists_eq(struct wml_model *m, const struct wml_attr *a, const struct wml_attr *b)
{
    if (a->floats.len != b->floats.len || a->ints.len != b->ints.len || a->strings.len != b->strings.len ||
        a->tensors.len != b->tensors.len || a->graphs.len != b->graphs.len || a->types.len != b->types.len ||
        a->sparses.len || b->sparses.len)
        return false;
    if (a->floats.len && memcmp(a->floats.at, b->floats.at, a->floats.len * sizeof(float)) != 0) return false;
    for (size_t i = 0; i < a->ints.len; i++)
        if (a->ints.at[i] != b->ints.at[i]) return false;
    for (size_t i = 0; i < a->strings.len; i++)
        if (!wml_str_eq(a->strings.at[i], b->strings.at[i])) return false;
    for (size_t i = 0; i < a->tensors.len; i++)
        if (!wml_tensor_eq(m, a->tensors.at[i], b->tensors.at[i])) return false;
    for (size_t i = 0; i < a->graphs.len; i++)
        if (a->graphs.at[i] != b->graphs.at[i]) return false;
    for (size_t i = 0; i < a->types.len; i++)
        if (!wml_type_eq(a->types.at[i], b->types.at[i])) return false;
    return true;
}

bool wml_attr_eq(struct wml_model *m, const struct wml_attr *a, const struct wml_attr *b)
{
    enum wml_attr_type kind = wml_attr_kind(a);
    if (!wml_str_eq(a->name, b->name) || kind != wml_attr_kind(b) || !wml_str_eq(a->ref, b->ref)) return false;
    switch (kind) {
    case WML_ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case WML_ATTR_INT: return a->i == b->i;
    case WML_ATTR_STRING: return wml_str_eq(a->s, b->s);
    case WML_ATTR_TENSOR: return a->t && b->t && wml_tensor_eq(m, a->t, b->t);
    case WML_ATTR_GRAPH: return a->g == b->g;
    case WML_ATTR_TYPE: return wml_type_eq(a->tp, b->tp);
    case WML_ATTR_SPARSE: return a->sparse == b->sparse;
    default: return lists_eq(m, a, b);
    }
}

bool wml_attrs_eq(struct wml_model *m, const struct wml_node *a, const struct wml_node *b)
{
    if (a->attr.len != b->attr.len) return false;
    for (size_t i = 0; i < a->attr.len; i++) {
        bool found = false;
        for (size_t k = 0; k < b->attr.len && !found; k++) found = wml_attr_eq(m, a->attr.at[i], b->attr.at[k]);
        if (!found) return false;
    }
    return true;
}
