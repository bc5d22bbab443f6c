/* What is in a model. Of an ONNX file: read by our own codec, no runtime, no weights touched. Damaged references
 * (missing external data, broken context parts) are reported as such and do not fail the command. */
#include <inttypes.h>

#include "base/map.h"
#include "flow/checkpoint.h"
#include "flow/flow.h"
#include "flow/inspect/bundle.h"
#include "flow/inspect/hf.h"
#include "genai/bundle.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/parts.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

enum { TOP_OPS = 12 };

struct op_row {
    struct wml_str name;
    size_t n;
};

struct counts {
    struct wml_arena arena;
    struct wml_map ops;
    size_t nodes, subgraphs, tensors, external;
    uint64_t parameters, bytes;
};

static void put_dim(struct wml_item *shape, struct wml_axis a)
{
    if (a.size >= 0) wml_item_int(shape, NULL, NULL, a.size, WML_SHOW_PLAIN);
    else if (a.symbol.len) wml_item_str(shape, NULL, NULL, a.symbol);
    else wml_item_null(shape, NULL, NULL);
}

static void put_values(struct wml_item *root, const char *key, const char *title, struct wml_value *const *v,
                       size_t n, bool inputs)
{
    static const struct wml_column columns[] = {
        {.key = "name", .label = "Name", .max_width = 48}, {.key = NULL, .label = "Type", .max_width = 48},
        {.key = "dtype"}, {.key = "shape"}, {.key = "kind"}, {.key = NULL, .label = "Note"}};
    struct wml_item *table = wml_item_table(root, key, title, columns, WML_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        struct wml_buf text = {0};
        struct wml_item *row = wml_table_row(table);
        const struct wml_type *t = wml_value_type(v[i]);
        int64_t rank = wml_type_rank(t);
        wml_item_str(row, "name", NULL, v[i]->name);
        wml_type_text(t, &text);
        wml_item_str(row, NULL, "Type", wml_buf_view(&text));
        const char *kind = !t ? "unknown" : t->tensor ? "tensor" : t->sparse ? "sparse_tensor"
                         : t->sequence ? "sequence" : t->map ? "map" : t->optional ? "optional" : "opaque";
        wml_item_cstr(row, "kind", NULL, kind);
        if (wml_type_elem(t) == WML_UNDEFINED) wml_item_null(row, "dtype", NULL);
        else wml_item_cstr(row, "dtype", NULL, wml_dtype_name((int)wml_type_elem(t)));
        if (rank < 0) wml_item_null(row, "shape", NULL);
        else {
            struct wml_item *shape = wml_item_array(row, "shape", NULL);
            for (int64_t k = 0; k < rank; k++) put_dim(shape, wml_type_axis(t, (size_t)k));
        }
        bool constant = inputs && v[i]->init;
        wml_item_bool(row, "has_default", NULL, constant);
        wml_item_cstr(row, NULL, "Note", constant ? "has a default" : "");
        wml_buf_release(&text);
    }
}

static bool count_node(void *arg, struct wml_node *n)
{
    struct counts *c = arg;
    bool plain = !n->domain.len || wml_str_is(n->domain, "ai.onnx");
    struct wml_str name = plain ? n->op_type
                                : wml_arena_fmt(&c->arena, "%.*s::%.*s", WML_ARG(n->domain), WML_ARG(n->op_type));
    struct op_row *row = wml_map_get(&c->ops, name);
    if (!row) {
        row = WML_NEW(&c->arena, struct op_row);
        row->name = name;
        wml_map_put(&c->ops, name, row);
    }
    row->n++;
    c->nodes++;
    return true;
}

static bool count_graph(void *arg, struct wml_graph *g)
{
    (void)g;
    ((struct counts *)arg)->subgraphs++;
    return true;
}

static int by_count(const void *a, const void *b)
{
    const struct op_row *x = *(struct op_row *const *)a, *y = *(struct op_row *const *)b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : wml_str_cmp(x->name, y->name);
}

static void put_ops(struct wml_item *root, struct counts *c, bool all)
{
    static const struct wml_column columns[] = {{.key = "op_type", .label = "Operator"},
                                                {.key = "count", .label = "Nodes", .right = true}};
    struct op_row **row = wml_xcalloc(c->ops.len + 1, sizeof *row);
    for (size_t i = 0; i < c->ops.len; i++) row[i] = c->ops.entry[i].value;
    if (c->ops.len) qsort(row, c->ops.len, sizeof *row, by_count);
    struct wml_item *table = wml_item_table(root, "operators", "Operators", columns, WML_COUNT(columns));
    for (size_t i = 0; i < c->ops.len; i++) {
        struct wml_item *r = wml_table_row(table);
        wml_item_str(r, "op_type", NULL, row[i]->name);
        wml_item_int(r, "count", NULL, (int64_t)row[i]->n, WML_SHOW_COUNT);
    }
    if (!all) wml_table_limit(table, TOP_OPS);
    free(row);
}

static bool count_tensor(void *arg, struct wml_tensor *t)
{
    struct counts *c = arg;
    uint64_t bytes = 0, n = 0;
    c->tensors++;
    if (!wml_tensor_count(t, &n, NULL)) return true;
    c->parameters += n;
    if (wml_dtype_bytes(t->dtype, n, &bytes)) c->bytes += bytes;
    return true;
}

static void put_files(struct wml_item *root, struct wml_model *m, const char *path)
{
    static const struct wml_column columns[] = {{.key = "location", .label = "File", .max_width = 60},
                                                {.key = "bytes", .label = "Size", .right = true},
                                                {.key = "state", .label = "State"}};
    struct wml_onnx_files files = wml_onnx_files(m);
    if (!files.len) {
        wml_item_array(root, "external_files", NULL);
        return;
    }
    struct wml_item *table = wml_item_table(root, "external_files", "Files it needs beside it", columns,
                                            WML_COUNT(columns));
    for (size_t i = 0; i < files.len; i++) {
        struct wml_buf full = {0};
        struct wml_item *row = wml_table_row(table);
        bool inside = wml_path_is_inside(files.location[i]);
        wml_path_join(&full, wml_path_dir(wml_str(path)), files.location[i]);
        struct wml_file_info info = inside ? wml_file_info(wml_buf_text(&full)) : (struct wml_file_info){0};
        const char *state = !inside ? "refused: leaves the model's folder"
                          : info.kind == WML_FILE_REGULAR ? "present" : "missing";
        wml_item_str(row, "location", NULL, files.location[i]);
        if (info.kind == WML_FILE_REGULAR) wml_item_int(row, "bytes", NULL, (int64_t)info.size, WML_SHOW_BYTES);
        else wml_item_null(row, "bytes", NULL);
        wml_item_cstr(row, "state", NULL, state);
        if (info.kind != WML_FILE_REGULAR) wml_item_tone(row, WML_TONE_BAD);
        wml_buf_release(&full);
    }
}

static void put_contexts(struct wml_item *root, struct wml_model *m)
{
    static const struct wml_column columns[] = {
        {.key = "node", .label = "Node", .max_width = 40}, {.key = "source", .label = "Compiled for"},
        {.key = "main", .label = "Main"}, {.key = "state", .label = "Context"},
        {.key = "bytes", .label = "Size", .right = true}, {.key = "file", .label = "File", .max_width = 40},
        {.key = "partition"}, {.key = "sdk_version"}, {.key = "hardware"}, {.key = "embedded"}};
    struct wml_epctx_list list = {0};
    wml_epctx_find(m, &list);
    if (!list.v.len) wml_item_array(root, "ep_contexts", NULL);
    else {
        struct wml_item *table = wml_item_table(root, "ep_contexts", "Compiled parts (EPContext)", columns,
                                                WML_COUNT(columns));
        for (size_t i = 0; i < list.v.len; i++) {
            const struct wml_epctx *e = &list.v.at[i];
            struct wml_item *row = wml_table_row(table);
            bool broken = e->state >= WML_EPCTX_MISSING;
            wml_item_str(row, "node", NULL, e->node->name);
            wml_item_str(row, "source", NULL, e->source);
            wml_item_bool(row, "main", NULL, e->main);
            wml_item_bool(row, "embedded", NULL, e->embedded);
            wml_item_cstr(row, "state", NULL, wml_epctx_state_name(e->state));
            if (broken) wml_item_tone(row, WML_TONE_BAD);
            if (e->bytes) wml_item_int(row, "bytes", NULL, (int64_t)e->bytes, WML_SHOW_BYTES);
            else wml_item_null(row, "bytes", NULL);
            wml_item_str(row, "file", NULL, e->file);
            wml_item_str(row, "partition", NULL, e->partition);
            wml_item_str(row, "sdk_version", NULL, e->sdk_version);
            wml_item_str(row, "hardware", NULL, e->hardware);
        }
        struct wml_err bad = {0};
        if (!wml_epctx_check(&list, &bad)) wml_item_line(root, WML_TONE_BAD, "%s", bad.msg);
    }
    wml_epctx_list_release(&list);
}

static void put_entries(struct wml_item *root, const struct wml_model *m)
{
    struct wml_item *meta = wml_item_object(root, "metadata", m->metadata.len ? "Metadata" : NULL);
    for (size_t i = 0; i < m->metadata.len; i++) {
        const struct wml_entry *e = &m->metadata.at[i];
        const char *key = wml_item_name(meta, e->key);
        wml_item_str(meta, key, key, e->value);
    }
}

static void put_opsets(struct wml_item *root, const struct wml_model *m)
{
    struct wml_item *opsets = wml_item_array(root, "opsets", NULL);
    struct wml_buf text = {0};
    for (size_t i = 0; i < m->opset.len; i++) {
        struct wml_str domain = m->opset.at[i].domain;
        struct wml_item *o = wml_item_object(opsets, NULL, NULL);
        if (!domain.len) domain = WML_STR("ai.onnx");
        wml_item_str(o, "domain", NULL, domain);
        wml_item_int(o, "version", NULL, m->opset.at[i].version, WML_SHOW_PLAIN);
        wml_buf_fmt(&text, "%s%.*s %" PRId64, i ? ", " : "", WML_ARG(domain), m->opset.at[i].version);
    }
    wml_item_cstr(root, NULL, "Opsets", text.len ? wml_buf_text(&text) : "none imported");
    wml_buf_release(&text);
}

static void put_head(struct wml_item *root, const char *path, struct wml_model *m)
{
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "kind", NULL, "onnx");
    wml_item_cstr(root, "model", "Model", path);
    wml_item_int(root, "file_bytes", "File size", (int64_t)wml_file_info(path).size, WML_SHOW_BYTES);
    wml_item_int(root, "ir_version", "IR version", m->ir_version, WML_SHOW_PLAIN);
    put_opsets(root, m);
    wml_item_str(root, "producer", m->producer_name.len ? "Producer" : NULL, m->producer_name);
    wml_item_str(root, "producer_version", m->producer_version.len ? "Producer version" : NULL,
                 m->producer_version);
    wml_item_str(root, "graph_name", "Graph", m->graph->name);
}

static bool inspect_onnx(const struct wml_inspect_args *a, const char *path, struct wml_report *r, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_item *root = wml_report_root(r);
    struct counts c = {0};
    if (!wml_onnx_load(path, &m, err)) return false;
    put_head(root, path, m);
    wml_graph_walk(m->graph, count_node, &c);
    wml_model_each_graph(m, count_graph, &c);
    wml_model_each_tensor(m, count_tensor, &c);
    wml_item_int(root, "nodes", "Nodes", (int64_t)m->graph->n_nodes, WML_SHOW_COUNT);
    wml_item_int(root, "nodes_with_subgraphs", c.subgraphs > 1 ? "with sub-graphs" : NULL, (int64_t)c.nodes,
                 WML_SHOW_COUNT);
    wml_item_int(root, "subgraphs", c.subgraphs > 1 ? "Sub-graphs" : NULL, (int64_t)c.subgraphs - 1, WML_SHOW_COUNT);
    wml_item_int(root, "functions", m->function.len ? "Functions" : NULL, (int64_t)m->function.len, WML_SHOW_COUNT);
    wml_item_int(root, "parameters", "Parameters", (int64_t)c.parameters, WML_SHOW_COUNT);
    wml_item_int(root, "weight_bytes", "Weights", (int64_t)c.bytes, WML_SHOW_BYTES);
    put_values(root, "inputs", "Inputs", m->graph->inputs.at, m->graph->inputs.len, true);
    put_values(root, "outputs", "Outputs", m->graph->outputs.at, m->graph->outputs.len, false);
    put_ops(root, &c, a->all);
    put_contexts(root, m);
    put_files(root, m, path);
    put_entries(root, m);
    wml_map_release(&c.ops);
    wml_arena_release(&c.arena);
    wml_model_free(m);
    return true;
}

/* The one model of a folder that is no checkpoint; absent: there is none, or several. */
static bool only_model(const char *dir, struct wml_buf *path)
{
    struct wml_dir_list l = {0};
    size_t n = 0;
    if (wml_dir_list(dir, &l, NULL))
        for (size_t i = 0; i < l.v.len; i++) {
            if (l.v.at[i].is_dir || !wml_str_ends(l.v.at[i].name, ".onnx") || n++) continue;
            wml_path_join(path, wml_str(dir), l.v.at[i].name);
        }
    wml_dir_list_release(&l);
    return n == 1;
}

static bool has_config(const char *dir)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(dir), WML_STR("config.json"));
    const bool there = wml_file_exists(wml_buf_text(&path));
    wml_buf_release(&path);
    return there;
}

static bool inspect_folder(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct wml_buf path = {0};
    if (wml_bundle_is(a->model)) return wml_flow_inspect_bundle(a->model, r, err);
    const bool onnx = !has_config(a->model) && only_model(a->model, &path);
    const bool ok = onnx ? inspect_onnx(a, wml_buf_text(&path), r, err) : wml_flow_inspect_hf(a, cx, r, err);
    wml_buf_release(&path);
    return ok;
}

static bool check(const struct wml_inspect_args *a, struct wml_err *err)
{
    if (!a->model && !a->model_type && !a->model_class && !a->list_tasks) {
        wml_fail(err, WML_E_USAGE, "nothing to inspect: one of -m, --model-type, --model-class or --list-tasks is needed");
        return wml_hint(err, "winml inspect -m MODEL: an ONNX file, a folder, or a model id");
    }
    if (!a->task || wml_task_is_known(wml_str(a->task))) return true;
    size_t n = 0;
    while (wml_task_name(n)) n++;
    wml_fail(err, WML_E_USAGE, "Invalid task '%s'. Valid: %s, %s, %s, %s, %s, ... (%zu total). See 'winml inspect --list-tasks' for the full list.",
                    a->task, wml_task_name(0), wml_task_name(1), wml_task_name(2), wml_task_name(3), wml_task_name(4), n);
    return wml_hint(err, "with -m MODEL, --list-tasks names those the model can do");
}

bool wml_flow_inspect(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    if (!check(a, err)) return false;
    if (a->list_tasks) return wml_flow_inspect_tasks(a, cx, r, err);
    if (!a->model) return wml_flow_inspect_hf(a, cx, r, err);
    const enum wml_file_kind kind = wml_file_info(a->model).kind;
    const bool hf = kind == WML_FILE_NONE && wml_model_ref(a->model, NULL) == WML_REF_ID;
    if (kind == WML_FILE_DIR) return inspect_folder(a, cx, r, err);
    if (hf) return wml_flow_inspect_hf(a, cx, r, err);
    if (a->task || a->model_type || a->model_class || a->hierarchy)
        wml_log(cx, WML_LOG_WARN, "--task, --hierarchy, --model-type and --model-class are for Hugging Face models: an ONNX file is shown as it is");
    return inspect_onnx(a, a->model, r, err);
}
