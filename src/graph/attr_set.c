/* graph/attr_set.c - writing attributes. */
#include "graph/attr.h"
#include "graph/edit.h"

enum { HAS_F = 1u << 2, HAS_I = 1u << 3, HAS_TYPE = 1u << 20 };

static struct wml_arena *arena_of(const struct wml_node *n)
{
    return &n->graph->model->arena;
}

/* The attribute of this name, emptied, at its old place; or a new one at the end. */
static struct wml_attr *fresh(struct wml_node *n, const char *name, enum wml_attr_type type, uint32_t has)
{
    struct wml_attr *a = wml_attr_find(n, name);
    struct wml_str keep = a ? a->name : wml_arena_str(arena_of(n), wml_str(name));
    if (!a) {
        a = WML_NEW(arena_of(n), struct wml_attr);
        WML_PUSH_IN(arena_of(n), &n->attr, a);
    }
    *a = (struct wml_attr){.name = keep, .type = (int32_t)type, .msg.has = has | HAS_TYPE};
    return a;
}

void wml_attr_set_int(struct wml_node *n, const char *name, int64_t v)
{
    fresh(n, name, WML_ATTR_INT, HAS_I)->i = v;
}

void wml_attr_set_float(struct wml_node *n, const char *name, float v)
{
    fresh(n, name, WML_ATTR_FLOAT, HAS_F)->f = v;
}

void wml_attr_set_str(struct wml_node *n, const char *name, struct wml_str v)
{
    fresh(n, name, WML_ATTR_STRING, 0)->s = wml_arena_str(arena_of(n), v.ptr ? v : WML_STR(""));
}

void wml_attr_set_ints(struct wml_node *n, const char *name, size_t len, const int64_t *v)
{
    struct wml_attr *a = fresh(n, name, WML_ATTR_INTS, 0);
    for (size_t i = 0; i < len; i++) WML_PUSH_IN(arena_of(n), &a->ints, v[i]);
}

void wml_attr_set_floats(struct wml_node *n, const char *name, size_t len, const float *v)
{
    struct wml_attr *a = fresh(n, name, WML_ATTR_FLOATS, 0);
    for (size_t i = 0; i < len; i++) WML_PUSH_IN(arena_of(n), &a->floats, v[i]);
}

void wml_attr_set_tensor(struct wml_node *n, const char *name, struct wml_tensor *t)
{
    fresh(n, name, WML_ATTR_TENSOR, 0)->t = t;
}

void wml_attr_set_graph(struct wml_node *n, const char *name, struct wml_graph *g)
{
    fresh(n, name, WML_ATTR_GRAPH, 0)->g = g;
}

bool wml_attr_remove(struct wml_node *n, const char *name)
{
    for (size_t i = 0; i < n->attr.len; i++) {
        if (!wml_str_is(n->attr.at[i]->name, name)) continue;
        WML_REMOVE(&n->attr, i);
        return true;
    }
    return false;
}

void wml_attrs_copy(struct wml_node *to, const struct wml_node *from)
{
    for (size_t i = 0; i < from->attr.len; i++) {
        const struct wml_attr *a = from->attr.at[i];
        if (a->g || a->graphs.len) continue;
        struct wml_attr *copy = WML_NEW(arena_of(to), struct wml_attr);
        *copy = *a;
        WML_PUSH_IN(arena_of(to), &to->attr, copy);
    }
}
