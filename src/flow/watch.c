/* Nodes that show values are put into the model for as long as the session is made. */
#include "flow/watch.h"

#include "flow/oracle.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/thread.h"

enum { OPEN_SIZES_WORKERS = 4 };
static const uint64_t LIVE_MIN = UINT64_C(128) << 20;

/* From the last to the first: the nodes of early values must stand last. */
static void put_nodes(struct wml_graph *g, struct wml_value *const *want, size_t n, struct wml_value *tag, struct wml_node **node)
{
    for (size_t i = n; i-- > 0;) {
        node[i] = wml_graph_append(g, WML_OBSERVE_DOMAIN, WML_OBSERVE_OP);
        wml_node_add_input(node[i], want[i]);
        wml_node_add_input(node[i], tag);
        wml_attr_set_int(node[i], "slot", (int64_t)i);
    }
}

struct watched { /* what was put into the model */
    struct wml_arena arena;
    struct wml_node **node;
    size_t n, opsets;
};

static void put(struct wml_model *m, struct wml_value *const *want, size_t n, struct watched *w)
{
    static const int64_t size[] = {WML_WATCH_TAG};
    *w = (struct watched){.n = n, .opsets = m->opset.len};
    w->node = WML_NEW_ARRAY(&w->arena, struct wml_node *, n + 1);
    struct wml_value *tag = wml_graph_add_input(m->graph, wml_model_unique(m, WML_STR("observe_tag")), wml_type_static(m, WML_I64, 1, size));
    wml_model_set_opset(m, WML_OBSERVE_DOMAIN, 1);
    put_nodes(m->graph, want, n, tag, w->node);
}

static void take_out(struct wml_model *m, struct watched *w)
{
    for (size_t i = 0; i < w->n; i++) wml_node_remove(w->node[i]);
    wml_graph_remove_input(m->graph, m->graph->inputs.len - 1);
    m->opset.len = w->opsets;
    wml_arena_release(&w->arena);
}

bool wml_flow_watch(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n,
                    const struct wml_observer *observer, unsigned threads, struct wml_session **out, struct wml_err *err)
{
    const struct wml_skeleton_opts whole = {0};
    /* A memory plan of the first run would be a second copy of it in the next. */
    const struct wml_session_opts opts = {.threads = threads, .no_memory_plan = true, .observer = observer};
    struct watched w;
    put(m, want, n, &w);
    bool ok = wml_flow_session(cx, m, &whole, &opts, out, err);
    take_out(m, &w);
    return ok;
}

bool wml_flow_watched(struct wml_model *m, struct wml_value *const *want, size_t n, struct wml_buf *out, struct wml_str *folder, struct wml_err *err)
{
    const struct wml_skeleton_opts whole = {0};
    struct watched w;
    put(m, want, n, &w);
    bool ok = wml_onnx_skeleton(m, &whole, out, folder, err);
    take_out(m, &w);
    return ok;
}

static bool bytes_of(const struct wml_value *v, uint64_t *bytes)
{
    int64_t count;
    return wml_value_count(v, &count) && wml_dtype_bytes((int)wml_value_elem(v), (uint64_t)count, bytes);
}

/* Backwards: a value lives from the node that makes it to the last that reads it. */
uint64_t wml_flow_live_bytes(struct wml_model *m)
{
    uint64_t mark = wml_model_mark(m), live = 0, most = 0, bytes;
    for (const struct wml_node *n = m->graph->last; n; n = n->prev) {
        for (size_t i = 0; i < n->n_out; i++) {
            if (!n->out[i]) continue;
            if (!bytes_of(n->out[i], &bytes)) return 0;
            if (n->out[i]->mark != mark) live += bytes;
            n->out[i]->mark = mark;
        }
        for (size_t i = 0; i < n->n_in; i++) {
            struct wml_value *v = n->in[i];
            if (!v || !v->def || v->mark == mark || v->graph != m->graph) continue;
            if (!bytes_of(v, &bytes)) return 0;
            v->mark = mark;
            live += bytes;
        }
        most = WML_MAX(most, live);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i] && bytes_of(n->out[i], &bytes)) live -= bytes;
    }
    return most;
}

uint64_t wml_flow_weight_bytes(const struct wml_model *m)
{
    uint64_t sum = 0, bytes;
    for (size_t i = 0; i < m->graph->initializer.len; i++)
        if (wml_tensor_size(m->graph->initializer.at[i], &bytes, NULL)) sum += bytes;
    return sum;
}

/* The CPU computes in float32: of weights in half precision every run makes a copy for itself. */
static uint64_t half_bytes(const struct wml_model *m)
{
    uint64_t sum = 0, bytes;
    for (size_t i = 0; i < m->graph->initializer.len; i++) {
        const struct wml_tensor *t = m->graph->initializer.at[i];
        if ((t->dtype == WML_F16 || t->dtype == WML_BF16) && wml_tensor_size(t, &bytes, NULL)) sum += 2 * bytes;
    }
    return sum;
}

unsigned wml_flow_workers(struct wml_model *m, size_t n)
{
    uint64_t live = wml_flow_live_bytes(m), half = half_bytes(m), room = WML_MAX(wml_flow_weight_bytes(m) / 8, LIVE_MIN);
    uint64_t most = live || half > room ? room / (live + half) : OPEN_SIZES_WORKERS;
    most = WML_MIN(most, (uint64_t)wml_cpu_count());
    return (unsigned)WML_MAX(WML_MIN(most, (uint64_t)n), (uint64_t)1);
}
