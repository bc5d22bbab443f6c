/* nn/build.c - the model under construction: scopes, names, metadata, failures, inputs, outputs, constants. */
#include <stdarg.h>
#include <stdio.h>
#include "base/num.h"
#include "nn/nn.h"

enum { SCOPE_NAME = 256, MOST_ELEMENTS = 1 << 26 };
static const struct wml_nn_limits limits = {.nodes = 1 << 17, .room = (uint64_t)4 << 30};

void wml_nn_init(struct wml_nn *b, struct wml_weights *w, int64_t opset, struct wml_err *err)
{
    *b = (struct wml_nn){.m = wml_model_new(), .w = w, .opset = opset, .real = WML_F32, .err = err, .left = limits};
    b->g = b->m->graph;
    b->m->ir_version = 8; /* of opset 17; whoever converts to another raises it */
    wml_model_set_opset(b->m, "", opset > WML_NN_OPSET ? opset : WML_NN_OPSET);
}

void wml_nn_release(struct wml_nn *b)
{
    wml_map_release(&b->by_path);
    wml_map_release(&b->node_names);
    wml_map_release(&b->shared);
    wml_model_free(b->m);
    *b = (struct wml_nn){0};
}

void *wml_nn_fail(struct wml_nn *b, enum wml_code code, const char *fmt, ...)
{
    if (b->failed) return NULL;
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wml_fail(b->err, code, "%s", text);
    b->failed = true;
    return NULL;
}

void *wml_nn_hint(struct wml_nn *b, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wml_hint(b->err, "%s", text);
    return NULL;
}

/* ------------------------------------------------------------------ scopes */

static struct wml_str class_name(struct wml_nn *b, const char *name)
{
    struct wml_arena *a = &b->m->arena;
    if (*name != '*') return wml_arena_str(a, wml_str(name));
    return wml_arena_fmt(a, "%s%s", b->klass ? b->klass : "", name + 1);
}

/* "layer.3" gives the index of a list to the tag, "BertLayer.3"; other names none. */
static struct wml_str list_index(struct wml_str attr)
{
    const size_t dot = wml_str_rfind(attr, '.');
    if (dot == SIZE_MAX) {
        bool digits = attr.len > 0;
        for (size_t i = 0; i < attr.len; i++) digits &= attr.ptr[i] >= '0' && attr.ptr[i] <= '9';
        return digits ? attr : WML_NO_STR;
    }
    return list_index(wml_str_sub(attr, dot + 1, attr.len));
}

static size_t module_of(struct wml_nn *b, struct wml_str klass, const struct wml_nn_scope *s, size_t parent, bool layer)
{
    void *known = wml_map_get(&b->by_path, s->path);
    if (known) return (size_t)(uintptr_t)known - 1;
    const struct wml_nn_module m = {klass.ptr, s->path, s->name, s->tag, parent, layer};
    WML_PUSH_IN(&b->m->arena, &b->module, m);
    wml_map_put(&b->by_path, s->path, (void *)(uintptr_t)b->module.len);
    return b->module.len - 1;
}

static void enter(struct wml_nn *b, const char *name, bool layer, struct wml_str attr)
{
    if (b->failed) return;
    if (b->depth == WML_NN_MAX_DEPTH) {
        wml_nn_fail(b, WML_E_INTERNAL, "modules are nested deeper than %d", WML_NN_MAX_DEPTH);
        return;
    }
    struct wml_arena *a = &b->m->arena;
    const struct wml_nn_scope *up = b->depth ? &b->scope[b->depth - 1] : NULL;
    struct wml_nn_scope *s = &b->scope[b->depth++];
    const struct wml_str klass = class_name(b, name);
    if (!up) {
        *s = (struct wml_nn_scope){WML_STR(""), WML_STR(""), wml_arena_fmt(a, "/%.*s", WML_ARG(klass)), 0};
        s->module = module_of(b, klass, s, 0, false);
        return;
    }
    s->path = up->path.len ? wml_arena_fmt(a, "%.*s.%.*s", WML_ARG(up->path), WML_ARG(attr)) : wml_arena_str(a, attr);
    s->name = wml_arena_fmt(a, "%.*s/%.*s", WML_ARG(up->name), WML_ARG(attr));
    s->tag = up->tag;
    const struct wml_str index = list_index(attr);
    if (!layer && index.len) s->tag = wml_arena_fmt(a, "%.*s/%.*s.%.*s", WML_ARG(up->tag), WML_ARG(klass), WML_ARG(index));
    else if (!layer) s->tag = wml_arena_fmt(a, "%.*s/%.*s", WML_ARG(up->tag), WML_ARG(klass));
    s->module = module_of(b, klass, s, up->module, layer);
}

void wml_nn_enter(struct wml_nn *b, const char *class_name, const char *fmt, ...)
{
    char attr[SCOPE_NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(attr, sizeof attr, fmt, ap);
    va_end(ap);
    enter(b, class_name, false, wml_str(attr));
}

void wml_nn_enter_layer(struct wml_nn *b, const char *class_name, const char *fmt, ...)
{
    char attr[SCOPE_NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(attr, sizeof attr, fmt, ap);
    va_end(ap);
    enter(b, class_name, true, wml_str(attr));
}

void wml_nn_leave(struct wml_nn *b)
{
    if (!b->failed) b->depth--;
}

/* ------------------------------------------------------------------- nodes */

/* "/encoder/layer.0/MatMul", and "_1", "_2" where the scope has several. */
static struct wml_str node_name(struct wml_nn *b, const char *op)
{
    struct wml_arena *a = &b->m->arena;
    const struct wml_str scope = b->depth ? b->scope[b->depth - 1].name : WML_STR("");
    const struct wml_str name = wml_arena_fmt(a, "%.*s/%s", WML_ARG(scope), op);
    const uintptr_t seen = (uintptr_t)wml_map_get(&b->node_names, name);
    wml_map_put(&b->node_names, name, (void *)(seen + 1));
    return seen ? wml_arena_fmt(a, "%.*s_%zu", WML_ARG(name), (size_t)seen) : name;
}

static void tag_node(struct wml_nn *b, struct wml_node *n)
{
    if (!b->depth) return;
    const struct wml_str tag = b->scope[b->depth - 1].tag;
    size_t depth = 0;
    for (size_t i = 0; i < tag.len; i++) depth += tag.ptr[i] == '/';
    wml_entries_set(b->m, &n->metadata, "winml.hierarchy.tag", tag);
    wml_entries_set(b->m, &n->metadata, "winml.hierarchy.depth", wml_arena_fmt(&b->m->arena, "%zu", depth));
}

/* One more of what grows with the numbers of a config: layers that share their weights cost a file nothing. */
static bool too_many(struct wml_nn *b)
{
    if (b->left.nodes) {
        b->left.nodes--;
        return false;
    }
    wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json asks for too many operators: they reach the limit in '%.*s'",
                WML_ARG(b->depth ? b->scope[b->depth - 1].path : WML_NO_STR));
    wml_nn_hint(b, "look at its numbers of layers");
    return true;
}

struct wml_node *wml_nn_node(struct wml_nn *b, const char *domain, const char *op, size_t n, struct wml_value *const *in)
{
    if (b->failed) return NULL;
    too_many(b); /* the failure ends the next step: callers rely on a node */
    struct wml_node *node = wml_graph_append(b->g, domain, op);
    node->name = node_name(b, op);
    for (size_t i = 0; i < n; i++) wml_node_set_input(node, i, in[i]);
    tag_node(b, node);
    return node;
}

static struct wml_type *type_of(struct wml_nn *b, enum wml_dtype dtype, const struct wml_nn_shape *s)
{
    return wml_type_tensor(b->m, dtype, (int64_t)s->rank, s->at);
}

struct wml_value *wml_nn_out(struct wml_nn *b, struct wml_node *n, enum wml_dtype dtype, const struct wml_nn_shape *shape)
{
    if (b->failed || !n) return NULL;
    struct wml_value *v = wml_node_add_output(n, wml_arena_fmt(&b->m->arena, "%.*s_output_%zu", WML_ARG(n->name), n->n_out));
    wml_value_set_type(v, type_of(b, dtype, shape));
    return v;
}

struct wml_value *wml_nn_input(struct wml_nn *b, const char *name, enum wml_dtype dtype, size_t rank,
                               const struct wml_axis *axis)
{
    if (b->failed || too_many(b)) return NULL;
    return wml_graph_add_input(b->g, wml_arena_str(&b->m->arena, wml_str(name)), wml_type_tensor(b->m, dtype, (int64_t)rank, axis));
}

void wml_nn_output(struct wml_nn *b, const char *name, struct wml_value *v)
{
    if (b->failed || !v) return;
    if (!v->def || v->n_outputs) {
        const struct wml_nn_shape s = wml_nn_shape(v);
        v = wml_nn_out(b, wml_nn_node(b, "", "Identity", 1, &v), wml_value_elem(v), &s);
    }
    if (!wml_value_rename(v, wml_str(name))) {
        wml_nn_fail(b, WML_E_INTERNAL, "two values would be called '%s'", name);
        return;
    }
    wml_graph_add_output(b->g, v);
}

/* --------------------------------------------------------------- constants */

/* An initializer that is there once for all equal ones: key says type and content. */
static struct wml_value *shared(struct wml_nn *b, struct wml_str key, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                                const void *bytes, size_t n)
{
    struct wml_value *v = wml_map_get(&b->shared, key);
    if (v) return v;
    struct wml_tensor *t = wml_tensor_copy(b->m, dtype, rank, dims, bytes, n, b->err);
    if (!t) {
        b->failed = true;
        return NULL;
    }
    v = wml_graph_add_init(b->g, key, t);
    wml_map_put(&b->shared, key, v);
    return v;
}

struct wml_value *wml_nn_float(struct wml_nn *b, double v)
{
    if (b->failed) return NULL;
    const float f = (float)v;
    return shared(b, wml_arena_fmt(&b->m->arena, "const_%.9g", (double)f), WML_F32, 0, NULL, &f, sizeof f);
}

struct wml_value *wml_nn_number(struct wml_nn *b, enum wml_dtype dtype, double v)
{
    if (b->failed || dtype == WML_F32) return wml_nn_float(b, v);
    uint64_t bits = 0, n = 0;
    wml_dtype_store(dtype, &bits, 0, v);
    wml_dtype_bytes(dtype, 1, &n);
    return shared(b, wml_arena_fmt(&b->m->arena, "const_%s_%.9g", wml_dtype_name(dtype), (double)(float)v), dtype, 0, NULL, &bits, (size_t)n);
}

struct wml_value *wml_nn_int(struct wml_nn *b, enum wml_dtype dtype, int64_t v)
{
    if (b->failed) return NULL;
    uint64_t bits = 0, n = 0;
    wml_dtype_store(dtype, &bits, 0, (double)v);
    wml_dtype_bytes(dtype, 1, &n);
    const struct wml_str key = wml_arena_fmt(&b->m->arena, "const_%s_%lld", wml_dtype_name(dtype), (long long)v);
    return shared(b, key, dtype, 0, NULL, &bits, (size_t)n);
}

struct wml_value *wml_nn_ints(struct wml_nn *b, size_t n, const int64_t *v)
{
    if (b->failed) return NULL;
    struct wml_buf key = {0};
    wml_buf_cstr(&key, "shape");
    for (size_t i = 0; i < n; i++) wml_buf_fmt(&key, "_%lld", (long long)v[i]);
    const struct wml_str name = wml_arena_str(&b->m->arena, wml_buf_view(&key));
    wml_buf_release(&key);
    const int64_t dim = (int64_t)n;
    return shared(b, name, WML_I64, 1, &dim, v, n * sizeof *v);
}

void *wml_nn_room(struct wml_nn *b, const char *what, size_t item, size_t rank, const int64_t *dims)
{
    if (b->failed) return NULL;
    uint64_t n;
    const bool known = wml_dims_count(dims, rank, &n);
    if (known && n <= MOST_ELEMENTS && n * item <= b->left.room) {
        b->left.room -= n * item;
        return wml_arena_zalloc(&b->m->arena, n ? (size_t)n * item : item);
    }
    struct wml_buf text = {0};
    for (size_t i = 0; i < rank; i++) wml_buf_fmt(&text, "%s%lld", i ? " x " : "", (long long)dims[i]);
    wml_nn_fail(b, WML_E_UNSUPPORTED, "%s: %s numbers are more than is computed at export", what, wml_buf_text(&text));
    wml_nn_hint(b, "look at the sizes in config.json, and at those of the inputs (--shape-config, --input-specs)");
    wml_buf_release(&text);
    return NULL;
}

struct wml_value *wml_nn_const(struct wml_nn *b, const char *hint, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                               const void *bytes)
{
    if (b->failed) return NULL;
    uint64_t count, n = 0;
    if (!wml_dims_count(dims, rank, &count) || !wml_dtype_bytes(dtype, count, &n))
        return wml_nn_fail(b, WML_E_INTERNAL, "constant '%s' is too large", hint);
    struct wml_tensor *t = wml_tensor_copy(b->m, dtype, rank, dims, bytes, (size_t)n, b->err);
    if (!t) {
        b->failed = true;
        return NULL;
    }
    const struct wml_str path = b->depth ? b->scope[b->depth - 1].path : WML_STR("");
    const struct wml_str name = path.len ? wml_arena_fmt(&b->m->arena, "%.*s.%s", WML_ARG(path), hint) : wml_str(hint);
    return wml_graph_add_init(b->g, name, t);
}
