/* onnx/skeleton.c - the model as a question to ONNX Runtime: the graph in memory, large weights as byte
 * ranges of the files they already lie in. The real model is not changed: the changed lists are those of
 * shadow structs, and tensors get stand-ins while the shadow is encoded. */
#include "onnx/onnx.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "graph/type.h"
#include "onnx/files.h"
#include "onnx/pb.h"
#include "onnx/stand_in.h"
#include "os/path.h"

enum { DEFAULT_MIN = 1024 };

struct skeleton {
    struct wml_model *m;
    const struct wml_skeleton_opts *o;
    struct wml_stand_ins stand_ins;
    struct wml_arena arena;
    struct wml_graph shadow;
    struct wml_err *err;
};

/* --- only what some values need --- */

struct reach {
    WML_VEC(struct wml_node *) todo;
    struct wml_graph *top;
    uint64_t mark; /* on nodes and values: reached */
};

static void reach_value(struct reach *r, struct wml_value *v)
{
    if (!v || v->graph != r->top || v->mark == r->mark) return;
    v->mark = r->mark;
    if (v->def && v->def->mark != r->mark) {
        v->def->mark = r->mark;
        WML_PUSH(&r->todo, v->def);
    }
}

static void reach_inputs(struct reach *r, const struct wml_node *n)
{
    const struct wml_graph *sub;
    for (size_t i = 0; i < n->n_in; i++) reach_value(r, n->in[i]);
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) {
        for (const struct wml_node *inner = sub->first; inner; inner = inner->next) reach_inputs(r, inner);
        for (size_t i = 0; i < sub->outputs.len; i++) reach_value(r, sub->outputs.at[i]);
    }
}

/* Marks are the passes' own: a number nobody else uses keeps the two apart. */
static void mark_needed(struct skeleton *s, struct reach *r)
{
    *r = (struct reach){.top = s->m->graph, .mark = UINT64_C(0x736b656c) << 16};
    for (struct wml_node *n = r->top->first; n; n = n->next)
        if (n->mark == r->mark) n->mark = 0;
    for (struct wml_value *v = r->top->first_value; v; v = v->next)
        if (v->mark == r->mark) v->mark = 0;
    for (size_t i = 0; i < s->o->n_only; i++) reach_value(r, s->o->only[i]);
    while (r->todo.len) {
        struct wml_node *n = r->todo.at[--r->todo.len];
        reach_inputs(r, n);
    }
    WML_VEC_RELEASE(&r->todo);
}

static void keep_needed(struct skeleton *s)
{
    struct wml_graph *g = s->m->graph, *w = &s->shadow;
    struct reach r;
    mark_needed(s, &r);
    w->node.at = NULL;
    w->node.len = w->node.cap = 0;
    for (struct wml_node *n = g->first; n; n = n->next)
        if (n->mark == r.mark) WML_PUSH_IN(&s->arena, &w->node, n);
    w->initializer.at = NULL;
    w->initializer.len = w->initializer.cap = 0;
    for (size_t i = 0; i < g->initializer.len; i++) {
        struct wml_tensor *t = g->initializer.at[i];
        if (t->value && t->value->mark == r.mark) WML_PUSH_IN(&s->arena, &w->initializer, t);
    }
    w->sparse_initializer.at = NULL;
    w->sparse_initializer.len = w->sparse_initializer.cap = 0;
    for (size_t i = 0; i < g->sparse_initializer.len; i++) {
        struct wml_sparse_tensor *t = g->sparse_initializer.at[i];
        if (t->values->value && t->values->value->mark == r.mark)
            WML_PUSH_IN(&s->arena, &w->sparse_initializer, t);
    }
    w->input.at = NULL;
    w->input.len = w->input.cap = 0;
    for (size_t i = 0; i < g->input.len; i++)
        if (g->inputs.at[i]->mark == r.mark) WML_PUSH_IN(&s->arena, &w->input, g->input.at[i]);
    w->output.at = NULL;
    w->output.len = w->output.cap = 0;
    w->value_info.len = 0;
    w->annotation.len = 0;
}

/* --- weights as inputs --- */

static bool is_large(const struct skeleton *s, const struct wml_tensor *t)
{
    const uint64_t least = s->o->min_tensor ? s->o->min_tensor : DEFAULT_MIN;
    uint64_t n = 0;
    return t->dtype != WML_STRING && wml_tensor_size(t, &n, NULL) && n >= least;
}

/* Where only types matter, a large weight is an input of its type: no file is opened for it. */
static void weights_as_inputs(struct skeleton *s)
{
    struct wml_graph *g = s->m->graph, *w = &s->shadow;
    w->initializer.at = NULL;
    w->initializer.len = w->initializer.cap = 0;
    w->input.at = NULL;
    w->input.len = w->input.cap = 0;
    for (size_t i = 0; i < g->input.len; i++) WML_PUSH_IN(&s->arena, &w->input, g->input.at[i]);
    for (size_t i = 0; i < g->initializer.len; i++) {
        struct wml_tensor *t = g->initializer.at[i];
        if (!t->value || t->value->n_outputs || !is_large(s, t)) {
            WML_PUSH_IN(&s->arena, &w->initializer, t);
            continue;
        }
        if (t->value->n_inputs) continue;
        struct wml_value_info *info = WML_NEW(&s->arena, struct wml_value_info);
        info->name = t->name;
        info->type = wml_type_static(s->m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at);
        WML_PUSH_IN(&s->arena, &w->input, info);
    }
}

/* --- outputs --- */

static void add_output(struct skeleton *s, struct wml_value *v)
{
    struct wml_value_info *info = WML_NEW(&s->arena, struct wml_value_info);
    info->name = v->name;
    WML_PUSH_IN(&s->arena, &s->shadow.output, info);
}

static void set_outputs(struct skeleton *s)
{
    struct wml_graph *g = s->m->graph, *w = &s->shadow;
    if (s->o->n_only) keep_needed(s);
    else {
        w->output.at = NULL;
        w->output.len = w->output.cap = 0;
        for (size_t i = 0; i < g->output.len; i++) WML_PUSH_IN(&s->arena, &w->output, g->output.at[i]);
    }
    for (size_t i = 0; i < s->o->n_only; i++) add_output(s, s->o->only[i]);
    for (size_t i = 0; i < s->o->n_also; i++)
        if (!s->o->also[i]->n_outputs || s->o->n_only) add_output(s, s->o->also[i]);
    if (s->o->types_only && !s->o->n_only) weights_as_inputs(s);
    if (s->o->drop_value_info) w->value_info.len = 0;
}

/* --- weights as ranges of files --- */

static bool refer(struct skeleton *s, struct wml_tensor *t)
{
    struct wml_span bytes;
    if (!is_large(s, t) || !s->m->store->folder.ptr) return true;
    if (t->payload == WML_PAYLOAD_DERIVED && !t->view.ptr) {
        /* Inner graphs cannot be given inputs: any bytes of the right number will do. */
        uint64_t n = 0;
        if (!s->o->types_only || !t->derived->source || !wml_tensor_size(t, &n, NULL)) return true;
        if (!wml_tensor_peek(t->derived->source, &bytes) || bytes.len != n) return true;
    } else if (!wml_tensor_peek(t, &bytes)) return true;
    const struct wml_source *from = wml_model_source_of(s->m, bytes);
    if (!from || !from->path.len) return true;
    struct wml_str location = from->location.len ? from->location : wml_path_name(from->path);
    wml_stand_in_add(&s->stand_ins, t, location, (uint64_t)(bytes.ptr - from->bytes.ptr), bytes.len);
    return true;
}

static bool refer_graph(void *arg, struct wml_graph *g)
{
    struct skeleton *s = arg;
    for (size_t i = 0; i < g->initializer.len; i++)
        if (!refer(s, g->initializer.at[i])) return false;
    return true;
}

static bool add_bytes(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct wml_buf *b = arg;
    wml_buf_add(b, bytes, n);
    return !b->failed || wml_fail(err, WML_E_MEMORY, "the model without its weights is larger than 2 GiB");
}

static bool open_source(void *arg, struct wml_tensor *t)
{
    struct skeleton *s = arg;
    return t->stand_in || wml_tensor_open_sources(s->m, t, s->err);
}

bool wml_onnx_skeleton(struct wml_model *m, const struct wml_skeleton_opts *opts, struct wml_buf *buf,
                       struct wml_str *folder, struct wml_err *err)
{
    static const struct wml_skeleton_opts whole;
    struct skeleton s = {.m = m, .o = opts ? opts : &whole, .err = err};
    struct wml_sink sink = {buf, add_bytes};
    struct wml_model shadow;
    wml_model_sync(m);
    s.shadow = *m->graph;
    shadow = *m;
    shadow.graph = &s.shadow;
    shadow.training.len = 0;
    set_outputs(&s);
    bool ok = wml_model_each_graph(m, refer_graph, &s) && wml_model_each_tensor(m, open_source, &s);
    *folder = m->store->folder;
    if (!buf->max) buf->max = (size_t)INT32_MAX;
    ok = ok && wml_pb_measure(&wml_pb_model, &shadow) < (uint64_t)INT32_MAX;
    if (!ok) wml_fail(err, WML_E_UNSUPPORTED, "the model without its weights is larger than 2 GiB");
    ok = ok && wml_pb_encode(&wml_pb_model, &shadow, &sink, err);
    wml_stand_ins_release(&s.stand_ins);
    wml_arena_release(&s.arena);
    return ok;
}
