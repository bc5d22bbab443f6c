/* graph/model.c - versions, opsets and metadata of a model. */
#include "graph/model.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/internal.h"

enum { OPSET_VERSION = 1u << 2, MODEL_IR = 1u << 1 };

static bool is_onnx(struct wml_str domain)
{
    return !domain.len || wml_str_is(domain, "ai.onnx");
}

int64_t wml_model_opset(const struct wml_model *m, const char *domain)
{
    int64_t version = 0;
    for (size_t i = 0; i < m->opset.len; i++)
        if (wml_domain_eq(m->opset.at[i].domain, wml_str(domain)))
            version = WML_MAX(version, m->opset.at[i].version);
    return version;
}

void wml_model_set_opset(struct wml_model *m, const char *domain, int64_t version)
{
    bool found = false;
    for (size_t i = 0; i < m->opset.len; i++) {
        struct wml_opset *o = &m->opset.at[i];
        if (!wml_domain_eq(o->domain, wml_str(domain))) continue;
        o->version = version;
        o->msg.has |= OPSET_VERSION;
        found = true;
    }
    if (found) return;
    struct wml_opset o = {.msg.has = OPSET_VERSION,
                          .domain = wml_arena_str(&m->arena, wml_str(domain)),
                          .version = version};
    WML_PUSH_IN(&m->arena, &m->opset, o);
}

size_t wml_model_merge_opsets(struct wml_model *m)
{
    size_t dropped = 0;
    for (size_t i = 0; i < m->opset.len; i++) {
        struct wml_opset *o = &m->opset.at[i];
        bool merged = false;
        for (size_t k = i + 1; k < m->opset.len;) {
            const struct wml_opset *later = &m->opset.at[k];
            if (!wml_domain_eq(o->domain, later->domain)) {
                k++;
                continue;
            }
            o->version = WML_MAX(o->version, later->version);
            o->msg.has |= later->msg.has & OPSET_VERSION;
            WML_REMOVE(&m->opset, k);
            merged = true;
            dropped++;
        }
        if (merged && is_onnx(o->domain)) o->domain = WML_STR("");
    }
    return dropped;
}

void wml_model_raise_ir(struct wml_model *m, int64_t version)
{
    if (m->ir_version >= version) return;
    struct wml_graph *g = m->graph;
    if (m->ir_version < WML_IR_SEPARATE_WEIGHTS && version >= WML_IR_SEPARATE_WEIGHTS) {
        for (size_t i = g->inputs.len; i-- > 0;)
            if (g->inputs.at[i]->init || g->inputs.at[i]->sparse) wml_graph_remove_input(g, i);
    }
    m->ir_version = version;
    m->msg.has |= MODEL_IR;
}

struct wml_str wml_entries_get(const struct wml_entries *e, const char *key)
{
    for (size_t i = 0; i < e->len; i++)
        if (wml_str_is(e->at[i].key, key))
            return e->at[i].value.ptr ? e->at[i].value : WML_STR("");
    return WML_NO_STR;
}

void wml_entries_set(struct wml_model *m, struct wml_entries *e, const char *key, struct wml_str v)
{
    for (size_t i = 0; i < e->len; i++) {
        if (!wml_str_is(e->at[i].key, key)) continue;
        e->at[i].value = wml_arena_str(&m->arena, v);
        return;
    }
    struct wml_entry add = {.key = wml_arena_str(&m->arena, wml_str(key)),
                            .value = wml_arena_str(&m->arena, v)};
    WML_PUSH_IN(&m->arena, e, add);
}
