/* The model that quantises what a run asks for: the plain quantised one says how, the float one is what it is made of. */
#include "flow/quantize/mixed_noise.h"

#include "flow/oracle.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

enum { BLOCK = 4096, TAG = 1 };

/* --- through integers and back --- */

/* To 8 bits and back, `out` may be x. */
static void requantize(const struct wml_mixed_linear *l, enum wml_dtype type, const void *x, size_t count, void *out)
{
    uint8_t q[BLOCK];
    const struct wml_linear *by = &l->by;
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t n = WML_MIN(count - from, (size_t)BLOCK);
        wml_kernel_linear(by, type, x, from, n, q);
        float *real = type == WML_F32 ? (float *)out + from : NULL;
        for (size_t i = 0; i < n; i++) {
            size_t c = by->n == 1 ? 0 : (from + i) / by->inner % by->n;
            int steps = by->type == WML_I8 ? (int8_t)q[i] : q[i];
            double v = by->n == 1 ? l->real[q[i]] : (double)((float)(steps - by->zero[c]) * by->scale[c]);
            if (real) real[i] = (float)v;
            else wml_dtype_store((int)type, out, from + i, v);
        }
    }
}

static void alter(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *v, void *out)
{
    const struct wml_mixed_noise *n = arg;
    const struct wml_mixed_linear *l = &n->slot.at[slot];
    if ((int64_t)l->part == tag[0]) requantize(l, v->dtype, v->data, v->bytes / (wml_dtype_info((int)v->dtype)->bits / 8), out);
    else if (out != v->data && v->bytes) memcpy(out, v->data, v->bytes);
}

void *wml_mixed_noise_constant(const struct wml_mixed_fed *f, struct wml_err *err)
{
    void *out = wml_big_alloc(f->view.bytes, err);
    if (out) requantize(&f->linear, f->view.dtype, f->view.data, f->view.bytes / (wml_dtype_info((int)f->view.dtype)->bits / 8), out);
    return out;
}

/* --- the model --- */

struct builder {
    struct wml_mixed_search *x;
    struct wml_mixed_noise *out;
    struct wml_value *tag;
    struct wml_err *err;
};

/* Elements behind the channel axis; 0: it has none such. */
static size_t inner_of(const struct wml_node *dq, const struct wml_tensor *t, size_t n)
{
    int64_t rank = (int64_t)t->dims.len, axis = wml_attr_int(dq, "axis", 1);
    size_t inner = 1;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || t->dims.at[axis] != (int64_t)n) return 0;
    for (int64_t i = axis + 1; i < rank; i++) inner *= (size_t)t->dims.at[i];
    return inner;
}

/* What dq of the plain model says. by.n 0: it cannot be read as 8 bits with a scale. */
static bool read_linear(struct builder *b, const struct wml_node *dq, size_t part, struct wml_mixed_linear *l)
{
    struct wml_model *plain = b->x->plain;
    struct wml_arena *arena = &b->out->arena;
    const struct wml_tensor *ints = dq->in[0]->init;
    size_t n, n_zero;
    double *scale;
    int64_t *zero;
    *l = (struct wml_mixed_linear){.part = part};
    if (!wml_tensor_doubles(plain, wml_value_tensor(dq->in[1]), &scale, &n, b->err) ||
        !wml_tensor_ints(plain, wml_value_tensor(dq->in[2]), &zero, &n_zero, b->err))
        return false;
    size_t inner = n == 1 ? 1 : ints ? inner_of(dq, ints, n) : 0;
    if (!n || n_zero != n || !inner) return true;
    float *scales = WML_NEW_ARRAY(arena, float, n);
    int32_t *zeros = WML_NEW_ARRAY(arena, int32_t, n);
    for (size_t i = 0; i < n; i++) scales[i] = (float)scale[i], zeros[i] = (int32_t)zero[i];
    l->by = (struct wml_linear){.type = (enum wml_dtype)dq->in[2]->init->dtype, .n = n, .inner = inner, .scale = scales, .zero = zeros};
    for (int q = 0; n == 1 && q < 256; q++) l->real[q] = (double)((float)((l->by.type == WML_I8 ? (int8_t)q : q) - zeros[0]) * scales[0]);
    return true;
}

static bool is_top(const struct builder *b, const struct wml_node *n)
{
    return n->graph == b->out->model->graph;
}

static void replace_readers(struct builder *b, struct wml_value *from, struct wml_value *to)
{
    struct wml_graph *g = b->out->model->graph;
    struct wml_use *next;
    for (struct wml_use *u = from->uses; u; u = next) {
        next = u->next;
        if (is_top(b, u->node) && u->node != to->def) wml_node_set_input(u->node, u->slot, to);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        if (g->outputs.at[i] == from) wml_graph_set_output(g, i, to);
}

static bool add_fed(struct builder *b, struct wml_value *v, const struct wml_mixed_linear *l)
{
    struct wml_model *m = b->out->model;
    struct wml_tensor *t = v->init;
    struct wml_mixed_fed f = {.linear = *l, .view = {.dtype = (enum wml_dtype)t->dtype, .rank = t->dims.len, .dim = t->dims.at, .is_tensor = true}};
    struct wml_span bytes;
    if (!wml_tensor_bytes(m, t, &bytes, b->err)) return false;
    f.view.data = bytes.ptr;
    f.view.bytes = bytes.len;
    if (!bytes.len) return true;
    struct wml_type *type = wml_type_static(m, f.view.dtype, f.view.rank, f.view.dim);
    replace_readers(b, v, wml_graph_add_input(m->graph, wml_model_unique(m, WML_STR("winml_fed")), type));
    WML_PUSH_IN(&b->out->arena, &b->out->fed, f);
    return true;
}

static void add_altered(struct builder *b, struct wml_value *v, const struct wml_mixed_linear *l)
{
    struct wml_graph *g = b->out->model->graph;
    const char *op = wml_value_elem(v) == WML_F16 ? WML_ALTER_HALF_OP : WML_ALTER_OP;
    struct wml_node *before = v->def ? v->def->next : g->first;
    struct wml_node *n = before ? wml_node_new(before, WML_OBSERVE_DOMAIN, op) : wml_graph_append(g, WML_OBSERVE_DOMAIN, op);
    wml_node_add_input(n, v);
    wml_node_add_input(n, b->tag);
    wml_attr_set_int(n, "slot", (int64_t)b->out->slot.len);
    struct wml_value *out = wml_node_add_output(n, WML_STR("winml_altered"));
    if (v->type) wml_value_set_type(out, wml_type_copy(b->out->model, v->type));
    replace_readers(b, v, out);
    WML_PUSH_IN(&b->out->arena, &b->out->slot, *l);
}

/* What cannot be changed stays float in all runs: its noise is none. */
static bool add_member(struct builder *b, const struct wml_mixed_member *m, size_t part)
{
    struct wml_value *v = wml_graph_find(b->out->model->graph, m->value->name);
    struct wml_mixed_linear l;
    enum wml_dtype elem = v ? wml_value_elem(v) : WML_UNDEFINED;
    if (elem != WML_F32 && elem != WML_F16) return true;
    if (!read_linear(b, m->dq, part, &l)) return false;
    if (!l.by.n) return true;
    if (v->init && wml_value_is_constant(v)) return add_fed(b, v, &l);
    if (l.by.n == 1 && !v->pinned) add_altered(b, v, &l);
    return true;
}

static bool build(struct builder *b)
{
    static const int64_t size[] = {TAG};
    struct wml_model *m = b->out->model;
    bool ok = true;
    b->tag = wml_graph_add_input(m->graph, wml_model_unique(m, WML_STR("winml_tag")), wml_type_static(m, WML_I64, 1, size));
    for (size_t i = 0; ok && i < b->x->part.len; i++)
        for (size_t k = 0; ok && k < b->x->part.at[i].member.len; k++) ok = add_member(b, &b->x->part.at[i].member.at[k], i);
    wml_model_set_opset(m, WML_OBSERVE_DOMAIN, 1);
    return ok;
}

bool wml_mixed_noise_open(struct wml_mixed_search *x, unsigned threads, struct wml_mixed_noise *out, struct wml_err *err)
{
    struct builder b = {.x = x, .out = out, .err = err};
    size_t n;
    *out = (struct wml_mixed_noise){.model = wml_onnx_clone(x->base, err)};
    out->observer = (struct wml_observer){.arg = out, .alter = alter};
    const struct wml_session_opts opts = {.threads = threads, .no_memory_plan = true, .observer = &out->observer};
    bool ok = out->model && build(&b) && wml_flow_session(x->r->cx, out->model, NULL, &opts, &out->session, err);
    if (!ok) {
        wml_mixed_noise_close(out);
        return false;
    }
    wml_session_inputs(out->session, &n);
    out->n_inputs = n - out->fed.len - TAG;
    wml_session_outputs(out->session, &out->n_outputs);
    return true;
}

void wml_mixed_noise_close(struct wml_mixed_noise *n)
{
    wml_session_close(n->session);
    wml_model_free(n->model);
    wml_arena_release(&n->arena);
    *n = (struct wml_mixed_noise){0};
}
