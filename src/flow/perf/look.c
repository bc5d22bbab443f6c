/* What the model file itself says: its precision, whether it is compiled, where its source lies. */
#include <inttypes.h>

#include "flow/perf/internal.h"
#include "flow/ranges.h"
#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

struct widths { /* how often each type was seen */
    size_t bits[65]; /* of weights that operators unpack themselves: MatMulNBits, GatherBlockQuantized */
    size_t weight[WML_DTYPE_COUNT], activation[WML_DTYPE_COUNT], plain[WML_DTYPE_COUNT];
};

static void count(size_t *at, int dtype)
{
    if (dtype > 0 && dtype < WML_DTYPE_COUNT) at[dtype]++;
}

/* The type of the zero point tells the width: on a constant it is a weight, else an activation. */
static bool look_node(void *arg, struct wml_node *n)
{
    struct widths *w = arg;
    bool q = wml_node_is(n, "QuantizeLinear") || wml_node_is_in(n, "com.microsoft", "QuantizeLinear");
    bool dq = wml_node_is(n, "DequantizeLinear") || wml_node_is_in(n, "com.microsoft", "DequantizeLinear");
    const struct wml_value *x = wml_node_in(n, 0), *zero = wml_node_in(n, 2);
    if (wml_node_is_in(n, "com.microsoft", "MatMulNBits") || wml_node_is_in(n, "com.microsoft", "GatherBlockQuantized")) {
        int64_t bits = wml_attr_int(n, "bits", 4);
        if (bits > 0 && bits <= 64) w->bits[bits]++;
    }
    if (!q && !dq) return true;
    if (dq && x && x->init) count(w->weight, x->init->dtype);
    else if (zero && zero->init) count(w->activation, zero->init->dtype);
    return true;
}

static bool look_tensor(void *arg, struct wml_tensor *t)
{
    uint64_t n = 0;
    struct widths *w = arg;
    if (wml_dtype_is_float(t->dtype) && wml_tensor_count(t, &n, NULL) && t->dtype < WML_DTYPE_COUNT) w->plain[t->dtype] += (size_t)n;
    return true;
}

/* Bits of the most frequent type; 32-bit integers are biases and do not count. */
static unsigned most(const size_t *at)
{
    int best = 0;
    for (int i = 1; i < WML_DTYPE_COUNT; i++)
        if (i != WML_I32 && at[i] > at[best]) best = i;
    return at[best] ? wml_dtype_info(best)->bits : 0;
}

static const char *precision_of(struct wml_perf_run *r, struct wml_model *m)
{
    struct widths w = {0};
    wml_graph_walk(m->graph, look_node, &w);
    unsigned weights = most(w.weight), activations = most(w.activation);
    if (weights && activations) return wml_arena_fmt(&r->arena, "w%ua%u", weights, activations).ptr;
    wml_model_each_tensor(m, look_tensor, &w);
    int best = 0;
    for (int i = 1; i < WML_DTYPE_COUNT; i++)
        if (w.plain[i] > w.plain[best]) best = i;
    size_t packed = 0;
    for (size_t i = 1; i < WML_COUNT(w.bits); i++)
        if (w.bits[i] > w.bits[packed]) packed = i;
    if (packed) return wml_arena_fmt(&r->arena, "w%zua%u", packed, w.plain[best] ? wml_dtype_info(best)->bits : 32u).ptr;
    return !w.plain[best] ? NULL : best == WML_F16 ? "fp16" : best == WML_BF16 ? "bf16" : best == WML_F32 ? "fp32" : wml_dtype_name(best);
}

/* The source of a compiled model: named by the user, or by the model's metadata. */
static void find_source(struct wml_perf_run *r, struct wml_model *m)
{
    struct wml_str relative = wml_entries_get(&m->metadata, "winml.source_model");
    struct wml_buf path = {0};
    if (r->args->source_model) {
        r->source_model = r->args->source_model;
        return;
    }
    if (!relative.len) return;
    wml_path_join(&path, wml_path_dir(wml_str(r->running)), relative);
    if (wml_file_exists(wml_buf_text(&path))) {
        struct wml_str sha = wml_entries_get(&m->metadata, "winml.source_sha256");
        r->source_model = wml_arena_cstr(&r->arena, wml_buf_view(&path));
        if (sha.len) r->source_sha = wml_arena_cstr(&r->arena, sha);
    }
    wml_buf_release(&path);
}

bool wml_perf_look(struct wml_perf_run *r, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    if (!wml_onnx_load(r->running, &m, err)) return false;
    bool ok = wml_model_check(m, err) || wml_wrap(err, "%s", r->running);
    wml_epctx_find(m, &contexts);
    r->compiled = contexts.v.len > 0;
    r->n_nodes = m->graph->n_nodes;
    if (ok) ok = wml_epctx_check(&contexts, err) || wml_wrap(err, "%s", r->running);
    if (ok) {
        r->precision = precision_of(r, m);
        find_source(r, m);
        wml_model_ranges(m, &r->arena, &r->ranges);
    }
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    return ok;
}
