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
    const struct wml_graph *from; /* that of `only` */
    uint64_t mark;                /* on nodes and values: reached, or given */
    WML_VEC(struct wml_node *) todo;
};

static bool is_large(const struct skeleton *s, const struct wml_tensor *t)
{
    const uint64_t least = s->o->min_tensor ? s->o->min_tensor : DEFAULT_MIN;
    uint64_t n = 0;
    return t->dtype != WML_STRING && wml_tensor_size(t, &n, NULL) && n >= least;
}

static void add_input(struct skeleton *s, struct wml_str name, struct wml_type *type)
{
    struct wml_value_info *info = WML_NEW(&s->arena, struct wml_value_info);
    info->name = name;
    info->type = type;
    WML_PUSH_IN(&s->arena, &s->shadow.input, info);
}

/* Where only types matter, a large weight is an input of its type: no file is opened for it. */
static void add_weight(struct skeleton *s, struct wml_tensor *t)
{
    const struct wml_value *v = t->value;
    if (!s->o->types_only || !v || v->n_outputs || !is_large(s, t)) WML_PUSH_IN(&s->arena, &s->shadow.initializer, t);
    else if (!v->n_inputs) add_input(s, t->name, wml_type_static(s->m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at));
}

/* --- only what some values need: the work grows with that part, not with the model --- */

static void mark_given(struct skeleton *s)
{
    s->mark = wml_model_mark(s->m);
    for (size_t i = 0; i < s->o->n_given; i++) {
        struct wml_value *v = s->o->given[i];
        v->mark = s->mark;
        add_input(s, v->name, wml_value_type(v));
    }
}

static void reach_value(struct skeleton *s, struct wml_value *v)
{
    if (!v || v->mark == s->mark || !wml_graph_is_inside(s->from, v->graph)) return;
    v->mark = s->mark;
    if (v->def && v->def->mark != s->mark) WML_PUSH(&s->todo, v->def);
    if (v->n_inputs) add_input(s, v->name, wml_value_type(v));
    if (v->init) {
        v->init->name = v->name;
        add_weight(s, v->init);
    }
    if (v->sparse) {
        v->sparse->values->name = v->name;
        WML_PUSH_IN(&s->arena, &s->shadow.sparse_initializer, v->sparse);
    }
}

static void reach_inputs(struct skeleton *s, const struct wml_node *n)
{
    const struct wml_graph *sub;
    for (size_t i = 0; i < n->n_in; i++) reach_value(s, n->in[i]);
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) {
        for (const struct wml_node *inner = sub->first; inner; inner = inner->next) reach_inputs(s, inner);
        for (size_t i = 0; i < sub->outputs.len; i++) reach_value(s, sub->outputs.at[i]);
    }
}

static void keep_needed(struct skeleton *s)
{
    struct wml_graph *w = &s->shadow;
    s->from = s->o->only[0]->graph;
    mark_given(s);
    for (size_t i = 0; i < s->o->n_only; i++) reach_value(s, s->o->only[i]);
    while (s->todo.len) {
        struct wml_node *n = s->todo.at[--s->todo.len];
        if (n->mark == s->mark) continue;
        n->mark = s->mark;
        wml_node_sync(n);
        WML_PUSH_IN(&s->arena, &w->node, n);
        reach_inputs(s, n);
    }
    WML_VEC_RELEASE(&s->todo);
    /* A node was reached after one of its readers: the other way round is nearly the order of execution. */
    for (size_t i = 0, k = w->node.len; i + 1 < k; i++) {
        struct wml_node *n = w->node.at[i];
        w->node.at[i] = w->node.at[--k];
        w->node.at[k] = n;
    }
    w->value_info.len = 0;
    w->annotation.len = 0;
}

static void keep_all(struct skeleton *s)
{
    struct wml_graph *g = s->m->graph, *w = &s->shadow;
    for (size_t i = 0; i < g->node.len; i++) WML_PUSH_IN(&s->arena, &w->node, g->node.at[i]);
    for (size_t i = 0; i < g->input.len; i++) WML_PUSH_IN(&s->arena, &w->input, g->input.at[i]);
    for (size_t i = 0; i < g->initializer.len; i++) add_weight(s, g->initializer.at[i]);
    for (size_t i = 0; i < g->sparse_initializer.len; i++) WML_PUSH_IN(&s->arena, &w->sparse_initializer, g->sparse_initializer.at[i]);
    for (size_t i = 0; i < g->output.len; i++) WML_PUSH_IN(&s->arena, &w->output, g->output.at[i]);
}

/* --- outputs --- */

static void add_output(struct skeleton *s, struct wml_value *v)
{
    struct wml_value_info *info = WML_NEW(&s->arena, struct wml_value_info);
    info->name = v->name;
    WML_PUSH_IN(&s->arena, &s->shadow.output, info);
}

/* The shadow's lists are its own. */
static void fill_shadow(struct skeleton *s)
{
    struct wml_graph *w = &s->shadow;
    *w = *s->m->graph;
    memset(&w->node, 0, sizeof w->node);
    memset(&w->initializer, 0, sizeof w->initializer);
    memset(&w->sparse_initializer, 0, sizeof w->sparse_initializer);
    memset(&w->input, 0, sizeof w->input);
    memset(&w->output, 0, sizeof w->output);
    if (s->o->n_only) keep_needed(s);
    else keep_all(s);
    for (size_t i = 0; i < s->o->n_only; i++) add_output(s, s->o->only[i]);
    for (size_t i = 0; i < s->o->n_also; i++)
        if (!s->o->also[i]->n_outputs || s->o->n_only) add_output(s, s->o->also[i]);
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

static bool open_source(void *arg, struct wml_tensor *t)
{
    struct skeleton *s = arg;
    return t->stand_in || wml_tensor_open_sources(s->m, t, s->err);
}

static bool refer_graph(void *arg, struct wml_graph *g)
{
    struct skeleton *s = arg;
    for (size_t i = 0; i < g->initializer.len; i++)
        if (!refer(s, g->initializer.at[i]) || !open_source(s, g->initializer.at[i])) return false;
    return true;
}

static bool refer_all(struct skeleton *s)
{
    if (!refer_graph(s, &s->shadow)) return false;
    for (size_t i = 0; i < s->shadow.node.len; i++) {
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(s->shadow.node.at[i], k)); k++)
            if (!wml_graph_each(sub, refer_graph, s)) return false;
    }
    return true;
}

static bool add_bytes(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct wml_buf *b = arg;
    wml_buf_add(b, bytes, n);
    return !b->failed || wml_fail(err, WML_E_MEMORY, "the model without its weights is larger than 2 GiB");
}

bool wml_onnx_skeleton(struct wml_model *m, const struct wml_skeleton_opts *opts, struct wml_buf *buf,
                       struct wml_str *folder, struct wml_err *err)
{
    static const struct wml_skeleton_opts whole;
    struct skeleton s = {.m = m, .o = opts ? opts : &whole, .err = err};
    struct wml_sink sink = {.arg = buf, .write = add_bytes};
    struct wml_model shadow;
    if (!s.o->n_only || m->function.len) wml_model_sync(m);
    shadow = *m;
    shadow.graph = &s.shadow;
    shadow.training.len = 0;
    fill_shadow(&s);
    bool ok = refer_all(&s);
    *folder = m->store->folder;
    if (!buf->max) buf->max = (size_t)INT32_MAX;
    ok = ok && wml_pb_measure(&wml_pb_model, &shadow) < (uint64_t)INT32_MAX;
    if (!ok) wml_fail(err, WML_E_UNSUPPORTED, "the model without its weights is larger than 2 GiB");
    ok = ok && wml_pb_encode(&wml_pb_model, &shadow, &sink, err);
    wml_stand_ins_release(&s.stand_ins);
    wml_arena_release(&s.arena);
    return ok;
}
