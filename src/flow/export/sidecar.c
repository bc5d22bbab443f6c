/* flow/export/sidecar.c - <stem>_htp_metadata.json: which module every node is of, in the Python tool's form. Times are
 * measured, counts are counted. */
#include <inttypes.h>
#include "flow/export/internal.h"
#include "graph/edit.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

/* ------------------------------------------------------------- what is counted */

/* Nodes that a conversion added have no tag of their own. */
static struct wml_str tag_of(const struct wml_export_part *p, const struct wml_node *n)
{
    const struct wml_str tag = wml_entries_get(&n->metadata, "winml.hierarchy.tag");
    return tag.len ? tag : p->made.module[0].tag;
}

/* "/encoder/layer.0/MatMul" -> "/encoder/layer.0"; "" at the root. */
static struct wml_str scope_of(const struct wml_node *n)
{
    const size_t slash = wml_str_rfind(n->name, '/');
    return wml_str_sub(n->name, 0, slash == SIZE_MAX ? 0 : slash);
}

void wml_export_count(struct wml_export_part *p)
{
    struct wml_export_counts *c = &p->counts;
    struct wml_map scopes = {0}, modules = {0};
    for (size_t i = 0; i < p->made.n_modules; i++) wml_map_put(&modules, p->made.module[i].name, (void *)(uintptr_t)&p->made.module[i]);
    p->tag = WML_NEW_ARRAY(&p->run->arena, struct wml_str, p->made.model->graph->n_nodes);
    for (const struct wml_node *n = p->made.model->graph->first; n; n = n->next) {
        const struct wml_str scope = scope_of(n);
        const struct wml_nn_module *m = wml_map_get(&modules, scope); /* NULL: its parent is the nearest */
        p->tag[c->nodes++] = tag_of(p, n);
        c->root_nodes += scope.len == 0;
        wml_map_put(&scopes, scope, (void *)(uintptr_t)1);
        if (!scope.len) c->root_fallbacks++;
        else if (m && !m->layer) c->direct++;
        else c->parent++;
    }
    for (size_t i = 0; i < p->made.n_modules; i++) c->modules += !p->made.module[i].layer;
    c->scopes = scopes.live;
    wml_map_release(&scopes);
    wml_map_release(&modules);
}

/* ------------------------------------------------------------------ the parts */

static void put_text(struct wml_json *j, const char *key, struct wml_str v)
{
    wml_json_key(j, key);
    wml_json_put_str(j, v);
}

static void put_int(struct wml_json *j, const char *key, uint64_t v)
{
    wml_json_key(j, key);
    wml_json_put_uint(j, v);
}

static void put_num(struct wml_json *j, const char *key, double v)
{
    wml_json_key(j, key);
    wml_json_put_fixed(j, v, 6);
}

static void open_object(struct wml_json *j, const char *key)
{
    wml_json_key(j, key);
    wml_json_begin(j, '{');
}

static void put_context(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "export_context");
    put_text(j, "timestamp", wml_str(p->timestamp));
    put_text(j, "strategy", WML_STR("htp"));
    put_text(j, "version", WML_STR("1.0"));
    put_text(j, "exporter", WML_STR("HTPExporter"));
    wml_json_key(j, "embed_hierarchy_attributes");
    wml_json_put_bool(j, p->run->a->hierarchy);
    put_num(j, "export_time_seconds", p->seconds[WML_EXPORT_TOTAL]);
    wml_json_end(j, '}');
}

static void put_model(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "model");
    put_text(j, "name_or_path", wml_str(p->run->a->model));
    put_text(j, "class_name", p->made.class_name);
    put_text(j, "framework", WML_STR("transformers"));
    put_int(j, "total_modules", p->made.n_modules);
    put_int(j, "total_parameters", p->size.params);
    wml_json_end(j, '}');
}

static void put_inputs(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "inputs");
    for (size_t i = 0; i < p->made.n_inputs; i++) {
        const struct wml_family_input *in = &p->made.input[i];
        wml_json_key_str(j, in->name);
        wml_json_begin(j, '{');
        wml_json_key(j, "shape");
        wml_json_begin(j, '[');
        for (size_t k = 0; k < in->rank; k++) {
            if (in->axis[k].size >= 0) wml_json_put_int(j, in->axis[k].size);
            else wml_json_put_str(j, in->axis[k].symbol);
        }
        wml_json_end(j, ']');
        char dtype[48];
        snprintf(dtype, sizeof dtype, "torch.%s", wml_dtype_name(in->dtype));
        put_text(j, "dtype", wml_str(dtype));
        wml_json_end(j, '}');
    }
    wml_json_end(j, '}');
}

static void put_output_names(struct wml_json *j, const char *key, const struct wml_export_part *p)
{
    const struct wml_graph *g = p->made.model->graph;
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < g->outputs.len; i++) wml_json_put_str(j, g->outputs.at[i]->name);
    wml_json_end(j, ']');
}

static void put_tracing(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "tracing");
    put_text(j, "builder", WML_STR("winml"));
    put_text(j, "source", WML_STR("config"));
    put_int(j, "modules_traced", p->counts.modules);
    put_int(j, "execution_steps", p->made.n_modules);
    put_text(j, "model_type", wml_str(p->run->plan.type->model_type));
    put_text(j, "task", p->run->plan.task);
    put_inputs(j, p);
    put_output_names(j, "outputs", p);
    wml_json_end(j, '}');
}

static bool is_child(const struct wml_export_part *p, size_t i, size_t parent)
{
    size_t up = p->made.module[i].parent;
    while (up && p->made.module[up].layer) up = p->made.module[up].parent; /* containers are passed through */
    return i && !p->made.module[i].layer && up == parent;
}

/* "BertLayer.3" as in its tag; where two of a class have no index, the second is "Class.attribute". */
static void put_module_key(struct wml_json *j, const struct wml_export_part *p, size_t i, size_t parent)
{
    const struct wml_nn_module *m = &p->made.module[i];
    const struct wml_str name = wml_str_sub(m->tag, wml_str_rfind(m->tag, '/') + 1, m->tag.len);
    for (size_t k = 1; k < i; k++) {
        if (!is_child(p, k, parent) || !wml_str_eq(p->made.module[k].tag, m->tag)) continue;
        const size_t dot = wml_str_rfind(m->path, '.');
        const struct wml_str attr = wml_str_sub(m->path, dot == SIZE_MAX ? 0 : dot + 1, m->path.len);
        wml_json_key_str(j, wml_arena_fmt(&p->run->arena, "%s.%.*s", m->class_name, WML_ARG(attr)));
        return;
    }
    wml_json_key_str(j, name);
}

static void put_module(struct wml_json *j, const struct wml_export_part *p, size_t i)
{
    const struct wml_nn_module *m = &p->made.module[i];
    wml_json_begin(j, '{');
    put_text(j, "class_name", wml_str(m->class_name));
    put_text(j, "traced_tag", m->tag);
    put_text(j, "scope", m->path);
    put_int(j, "execution_order", i);
    bool any = false;
    for (size_t k = i + 1; k < p->made.n_modules; k++) {
        if (!is_child(p, k, i)) continue;
        if (!any) open_object(j, "children");
        any = true;
        put_module_key(j, p, k, i);
        put_module(j, p, k);
    }
    if (any) wml_json_end(j, '}');
    wml_json_end(j, '}');
}

static void put_nodes(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "nodes");
    size_t i = 0;
    for (const struct wml_node *n = p->made.model->graph->first; n; n = n->next) {
        wml_json_key_str(j, n->name);
        wml_json_put_str(j, p->tag[i++]);
    }
    wml_json_end(j, '}');
}

static void put_outputs(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "outputs");
    open_object(j, "onnx_model");
    put_text(j, "path", wml_path_stem(wml_str(p->path)));
    put_num(j, "size_mb", (double)p->staged.bytes_after / (1024.0 * 1024.0));
    put_int(j, "opset_version", (uint64_t)wml_model_opset(p->made.model, ""));
    put_output_names(j, "output_names", p);
    wml_json_end(j, '}');
    open_object(j, "metadata");
    put_text(j, "path", wml_path_name(wml_str(p->sidecar)));
    wml_json_end(j, '}');
    if (p->run->a->with_report) {
        open_object(j, "report");
        put_text(j, "path", wml_path_name(wml_str(p->markdown)));
        wml_json_end(j, '}');
    }
    wml_json_end(j, '}');
}

static void open_step(struct wml_json *j, const char *name, const struct wml_export_part *p)
{
    open_object(j, name);
    put_text(j, "timestamp", wml_str(p->timestamp));
    wml_json_key(j, "completed");
    wml_json_put_bool(j, true);
}

static void put_steps(struct wml_json *j, const struct wml_export_part *p)
{
    const struct wml_export_counts *c = &p->counts;
    open_object(j, "report");
    open_object(j, "steps");
    open_step(j, "model_preparation", p);
    put_num(j, "seconds", p->seconds[WML_EXPORT_OPEN]);
    wml_json_end(j, '}');
    open_step(j, "input_generation", p);
    put_int(j, "inputs", p->made.n_inputs);
    wml_json_end(j, '}');
    open_step(j, "hierarchy_building", p);
    put_int(j, "modules_traced", c->modules);
    wml_json_end(j, '}');
    open_step(j, "onnx_export", p);
    put_num(j, "build_seconds", p->seconds[WML_EXPORT_BUILD]);
    put_num(j, "write_seconds", p->seconds[WML_EXPORT_WRITE]);
    wml_json_end(j, '}');
    open_step(j, "node_tagging", p);
    open_object(j, "statistics");
    put_int(j, "root_nodes", c->root_nodes);
    put_int(j, "scoped_nodes", c->nodes - c->root_nodes);
    put_int(j, "unique_scopes", c->scopes);
    put_int(j, "direct_matches", c->direct);
    put_int(j, "parent_matches", c->parent);
    put_int(j, "operation_matches", 0);
    put_int(j, "root_fallbacks", c->root_fallbacks);
    wml_json_end(j, '}');
    open_object(j, "coverage");
    put_num(j, "percentage", 100);
    put_int(j, "total_onnx_nodes", c->nodes);
    put_int(j, "tagged_nodes", c->nodes);
    wml_json_end(j, '}');
    wml_json_end(j, '}');
    wml_json_end(j, '}');
    open_object(j, "tag_injection");
    put_int(j, "tags_injected", p->run->a->hierarchy ? c->nodes : 0);
    put_int(j, "tags_stripped", p->run->a->hierarchy ? 0 : c->nodes);
    wml_json_end(j, '}');
    wml_json_end(j, '}');
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_statistics(struct wml_json *j, const struct wml_export_part *p)
{
    open_object(j, "statistics");
    put_num(j, "export_time", p->seconds[WML_EXPORT_TOTAL]);
    put_int(j, "hierarchy_modules", p->made.n_modules);
    put_int(j, "traced_modules", p->counts.modules);
    put_int(j, "onnx_nodes", p->counts.nodes);
    put_int(j, "tagged_nodes", p->counts.nodes);
    put_int(j, "empty_tags", 0);
    put_num(j, "coverage_percentage", 100);
    const char **name = WML_NEW_ARRAY(&p->run->arena, const char *, p->made.n_modules);
    for (size_t i = 0; i < p->made.n_modules; i++) name[i] = p->made.module[i].class_name;
    qsort(name, p->made.n_modules, sizeof *name, by_text);
    wml_json_key(j, "module_types");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < p->made.n_modules; i++)
        if (!i || strcmp(name[i], name[i - 1]) != 0) wml_json_put_cstr(j, name[i]);
    wml_json_end(j, ']');
    wml_json_end(j, '}');
}

bool wml_export_write_sidecar(const struct wml_export_part *p, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text, .indent = 2};
    wml_json_begin(&j, '{');
    put_context(&j, p);
    put_model(&j, p);
    put_tracing(&j, p);
    wml_json_key(&j, "modules");
    put_module(&j, p, 0);
    put_nodes(&j, p);
    put_outputs(&j, p);
    put_steps(&j, p);
    put_statistics(&j, p);
    wml_json_end(&j, '}');
    wml_buf_char(&text, '\n');
    const bool ok = wml_file_write(wml_export_staged(p, p->sidecar), wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}
