/* graph/store.c - what a model owns: arena, files, heap blocks, maps, names. */
#include "graph/store.h"

#include "graph/edit.h"
#include "graph/parts.h"

struct wml_model *wml_model_new(void)
{
    struct wml_model *m = wml_xcalloc(1, sizeof *m);
    m->store = WML_NEW(&m->arena, struct wml_store);
    m->ir_version = 10;
    m->msg.has = 1u << 1;
    m->graph = wml_graph_new(m, NULL);
    m->graph->name = WML_STR("graph");
    return m;
}

void wml_model_free(struct wml_model *m)
{
    if (!m) return;
    struct wml_store *s = m->store;
    for (size_t i = 0; i < s->map.len; i++) wml_map_release(s->map.at[i]);
    for (size_t i = 0; i < s->block.len; i++) free(s->block.at[i]);
    wml_map_release(&s->names);
    wml_map_release(&s->sources);
    WML_VEC_RELEASE(&s->map);
    WML_VEC_RELEASE(&s->block);
    for (struct wml_source *f = m->source; f; f = f->next)
        if (f->close) f->close(f->handle);
    wml_arena_release(&m->arena);
    free(m);
}

uint64_t wml_model_mark(struct wml_model *m)
{
    return UINT64_C(0x6d61726b) << 32 | ++m->store->n_marks;
}

void wml_model_own(struct wml_model *m, void *block)
{
    WML_PUSH(&m->store->block, block);
}

void wml_model_own_map(struct wml_model *m, struct wml_map *map)
{
    WML_PUSH(&m->store->map, map);
}

struct wml_source *wml_model_add_source(struct wml_model *m, const struct wml_source *s)
{
    struct wml_source *copy = WML_NEW(&m->arena, struct wml_source), **end = &m->source;
    *copy = *s;
    copy->next = NULL;
    while (*end) end = &(*end)->next;
    *end = copy;
    if (copy->location.ptr) wml_map_put(&m->store->sources, copy->location, copy);
    return copy;
}

bool wml_model_source(struct wml_model *m, struct wml_str location, struct wml_source **out,
                      struct wml_err *err)
{
    struct wml_source opened = {0};
    *out = wml_map_get(&m->store->sources, location);
    if (*out) return true;
    if (!m->store->open)
        return wml_fail(err, WML_E_UNSUPPORTED,
                        "external data '%.*s' cannot be read: the model has no folder",
                        WML_ARG(location));
    if (!m->store->open(m, location, &opened, err)) return false;
    opened.location = wml_arena_str(&m->arena, location);
    *out = wml_model_add_source(m, &opened);
    return true;
}

void wml_model_drop(const struct wml_model *m, struct wml_span s)
{
    enum { LEAST = 1 << 20 };
    const struct wml_source *f = s.len >= LEAST ? wml_model_source_of(m, s) : NULL;
    if (f && f->drop) f->drop(s);
}

void wml_model_drop_all(const struct wml_model *m)
{
    for (const struct wml_source *f = m->source; f; f = f->next)
        if (f->drop) f->drop(f->bytes);
}

struct wml_source *wml_model_source_of(const struct wml_model *m, struct wml_span s)
{
    for (struct wml_source *f = m->source; f; f = f->next) {
        uintptr_t low = (uintptr_t)f->bytes.ptr, at = (uintptr_t)s.ptr;
        if (f->bytes.ptr && s.ptr && at >= low && at - low <= f->bytes.len &&
            s.len <= f->bytes.len - (at - low))
            return f;
    }
    return NULL;
}
