/* flow/export/report.c - what `export` says: on the terminal, in JSON, and in the Markdown file of --with-report. */
#include "flow/export/internal.h"

#include "os/file.h"
#include "os/path.h"

static void shape_text(struct wml_buf *b, const struct wml_family_input *in)
{
    wml_buf_char(b, '[');
    for (size_t i = 0; i < in->rank; i++) {
        if (i) wml_buf_cstr(b, ", ");
        if (in->axis[i].size >= 0) wml_buf_fmt(b, "%lld", (long long)in->axis[i].size);
        else wml_buf_str(b, in->axis[i].symbol);
    }
    wml_buf_char(b, ']');
}

/* -------------------------------------------------------------------- terminal */

static void report_inputs(struct wml_export_part *p, struct wml_item *o)
{
    static const struct wml_column columns[] = {{"name", "Input", false, 0}, {"dtype", "Type", false, 0}, {"shape", "Shape", false, 0}};
    struct wml_item *t = wml_item_table(o, "inputs", NULL, columns, WML_COUNT(columns));
    for (size_t i = 0; i < p->made.n_inputs; i++) {
        struct wml_buf shape = {0};
        shape_text(&shape, &p->made.input[i]);
        struct wml_item *row = wml_table_row(t);
        wml_item_str(row, "name", NULL, p->made.input[i].name);
        wml_item_cstr(row, "dtype", NULL, wml_dtype_name(p->made.input[i].dtype));
        wml_item_cstr(row, "shape", NULL, wml_buf_text(&shape));
        wml_buf_release(&shape);
    }
}

static void report_outputs(struct wml_export_part *p, struct wml_item *o)
{
    static const struct wml_column columns[] = {{"name", "Output", false, 0}, {"dtype", "Type", false, 0}, {"shape", "Shape", false, 0}};
    const struct wml_graph *g = p->made.model->graph;
    struct wml_item *t = wml_item_table(o, "outputs", NULL, columns, WML_COUNT(columns));
    for (size_t i = 0; i < g->outputs.len; i++) {
        const struct wml_nn_shape s = wml_nn_shape(g->outputs.at[i]);
        struct wml_family_input io = {.rank = s.rank};
        struct wml_buf shape = {0};
        memcpy(io.axis, s.at, sizeof io.axis);
        for (size_t k = 0; k < s.rank; k++)
            if (io.axis[k].size < 0 && !io.axis[k].symbol.len) io.axis[k].symbol = WML_STR("?");
        shape_text(&shape, &io);
        struct wml_item *row = wml_table_row(t);
        wml_item_str(row, "name", NULL, g->outputs.at[i]->name);
        wml_item_cstr(row, "dtype", NULL, wml_dtype_name(wml_value_elem(g->outputs.at[i])));
        wml_item_cstr(row, "shape", NULL, wml_buf_text(&shape));
        wml_buf_release(&shape);
    }
}

static void report_verified(struct wml_export_part *p, struct wml_item *o)
{
    static const struct wml_column columns[] = {{"output", "Against the reference", false, 0}, {"max_abs_diff", "Largest difference", true, 0},
                                                {"largest_value", "Largest value", true, 0}, {"cosine", "Cosine", true, 0}};
    if (!p->verified.len) return;
    struct wml_item *t = wml_item_table(o, "verified", NULL, columns, WML_COUNT(columns));
    for (size_t i = 0; i < p->verified.len; i++) {
        const struct wml_export_verified *v = &p->verified.at[i];
        struct wml_item *row = wml_table_row(t);
        wml_item_cstr(row, "output", NULL, v->name);
        wml_item_num(row, "max_abs_diff", NULL, v->max_abs, 9, WML_SHOW_SCIENCE);
        wml_item_num(row, "largest_value", NULL, v->largest, 6, WML_SHOW_PLAIN);
        wml_item_num(row, "cosine", NULL, v->cosine, 9, WML_SHOW_PLAIN);
    }
}

/* Weights that the model had no place for; tables of positions and counters are always left. */
static void report_unused(struct wml_export_part *p, struct wml_item *o)
{
    struct wml_weights *w = p->run->checkpoint.weights;
    struct wml_item *list = NULL;
    size_t n = 0;
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        const struct wml_weight *t = wml_weights_at(w, i);
        if (t->used || wml_str_ends(t->name, "position_ids") || wml_str_ends(t->name, "num_batches_tracked")) continue;
        if (!list) list = wml_item_array(o, "unused_weights", NULL);
        wml_item_str(list, NULL, NULL, t->name);
        n++;
    }
    if (n) wml_item_line(o, WML_TONE_DIM, "%zu weights of the checkpoint are not part of this model (-f json lists them)", n);
}

void wml_export_report(struct wml_export_part *p)
{
    const struct wml_export_run *r = p->run;
    struct wml_item *root = wml_report_root(r->r), *o = root;
    if (!wml_item_find(root, "model")) {
        wml_item_cstr(root, "model", "Model", r->a->model);
        wml_item_cstr(root, "model_type", "Family", r->plan.type->model_type);
        wml_item_str(root, "task", r->a->task ? "Task (override)" : "Detected task", r->plan.task);
    }
    if (p->name) {
        struct wml_item *parts = wml_item_find(root, "parts");
        if (!parts) parts = wml_item_array(root, "parts", NULL);
        o = wml_item_object(parts, NULL, p->name);
        wml_item_cstr(o, "name", NULL, p->name);
        wml_item_cstr(o, "task", NULL, p->task->task);
    }
    wml_item_str(o, "class_name", "Class", p->made.class_name);
    wml_item_cstr(o, "output", "Output", p->path);
    wml_item_int(o, "opset", "Opset", wml_model_opset(p->made.model, ""), WML_SHOW_PLAIN);
    wml_item_int(o, "nodes", "Nodes", (int64_t)p->counts.nodes, WML_SHOW_COUNT);
    wml_item_int(o, "parameters", "Parameters", (int64_t)p->size.params, WML_SHOW_COUNT);
    wml_item_int(o, "output_bytes", "Size", (int64_t)p->staged.bytes_after, WML_SHOW_BYTES);
    if (p->staged.saved.data_name[0]) wml_item_cstr(o, "data_file", "Weights in", p->staged.saved.data_name);
    wml_item_num(o, "build_ms", "Building", p->seconds[WML_EXPORT_BUILD] * 1e3, 3, WML_SHOW_MS);
    wml_item_num(o, "write_ms", "Writing", p->seconds[WML_EXPORT_WRITE] * 1e3, 3, WML_SHOW_MS);
    wml_item_cstr(o, "metadata", NULL, p->sidecar);
    if (r->a->with_report) wml_item_cstr(o, "report", "Report", p->markdown);
    report_inputs(p, o);
    report_outputs(p, o);
    report_verified(p, o);
    report_unused(p, o);
    if (p->name) wml_item_line(root, WML_TONE_PLAIN, "Sub-model: %s (task=%s)", p->name, p->task->task);
    wml_item_line(root, WML_TONE_GOOD, "Success! Model exported to: %s (%zu nodes, %.1f MB)", p->path, p->counts.nodes,
                  (double)p->staged.bytes_after / 1e6);
}

/* -------------------------------------------------------------------- Markdown */

static void step(struct wml_buf *b, unsigned n, const char *title)
{
    wml_buf_fmt(b, "\n### %s Step %u/6\n\n", title, n);
}

static void markdown_process(const struct wml_export_part *p, struct wml_buf *b)
{
    const struct wml_export_counts *c = &p->counts;
    const double all = c->nodes ? 100.0 / (double)c->nodes : 0;
    wml_buf_cstr(b, "\n## Export Process\n");
    step(b, 1, "Model Preparation");
    wml_buf_fmt(b, "Class %.*s, task %.*s, %zu modules, %llu parameters\n", WML_ARG(p->made.class_name), WML_ARG(p->run->plan.task),
                p->made.n_modules, (unsigned long long)p->size.params);
    step(b, 2, "Input Generation");
    wml_buf_cstr(b, "| Input Name | Shape | Data Type |\n|---|---|---|\n");
    for (size_t i = 0; i < p->made.n_inputs; i++) {
        wml_buf_fmt(b, "| %.*s | ", WML_ARG(p->made.input[i].name));
        shape_text(b, &p->made.input[i]);
        wml_buf_fmt(b, " | %s |\n", wml_dtype_name(p->made.input[i].dtype));
    }
    step(b, 3, "Hierarchy Building");
    wml_buf_fmt(b, "%zu modules of the architecture\n\n<details><summary>Module tree</summary>\n\n```\n", c->modules);
    for (size_t i = 0; i < p->made.n_modules; i++)
        if (!p->made.module[i].layer) wml_buf_fmt(b, "%.*s\n", WML_ARG(p->made.module[i].tag));
    wml_buf_cstr(b, "```\n\n</details>\n");
    step(b, 4, "ONNX Export");
    wml_buf_fmt(b, "- opset %lld\n- %zu nodes\n- built in %.3f s, written in %.3f s\n", (long long)wml_model_opset(p->made.model, ""), c->nodes,
                p->seconds[WML_EXPORT_BUILD], p->seconds[WML_EXPORT_WRITE]);
    step(b, 5, "ONNX Node Tagging");
    wml_buf_cstr(b, "| Match Type | Count | Percentage |\n|---|---|---|\n");
    wml_buf_fmt(b, "| Direct Matches | %zu | %.1f %% |\n| Parent Matches | %zu | %.1f %% |\n| Root Fallbacks | %zu | %.1f %% |\n", c->direct,
                (double)c->direct * all, c->parent, (double)c->parent * all, c->root_fallbacks, (double)c->root_fallbacks * all);
    step(b, 6, "Tag Injection");
    wml_buf_fmt(b, "%zu tags %s\n", c->nodes, p->run->a->hierarchy ? "in the nodes' metadata" : "left out (--no-hierarchy)");
}

static void module_nodes(const struct wml_export_part *p, size_t i, size_t *direct, size_t *total)
{
    const struct wml_str tag = p->made.module[i].tag;
    *direct = *total = 0;
    for (size_t k = 0; k < p->counts.nodes; k++) {
        const bool below = p->tag[k].len > tag.len && p->tag[k].ptr[tag.len] == '/' && memcmp(p->tag[k].ptr, tag.ptr, tag.len) == 0;
        *direct += wml_str_eq(p->tag[k], tag);
        *total += below || wml_str_eq(p->tag[k], tag);
    }
}

static void markdown_modules(const struct wml_export_part *p, struct wml_buf *b)
{
    wml_buf_cstr(b, "\n## Module Hierarchy\n\n### Module List (Sorted by Execution Order)\n\n"
                    "| Execution Order | Class Name | Nodes (direct/total) | Tag | Scope |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < p->made.n_modules; i++) {
        const struct wml_nn_module *m = &p->made.module[i];
        size_t direct = 0, total = 0;
        if (m->layer) continue;
        module_nodes(p, i, &direct, &total);
        wml_buf_fmt(b, "| %zu | %s | %zu/%zu | %.*s | %.*s |\n", i, m->class_name, direct, total, WML_ARG(m->tag),
                    WML_ARG(m->path.len ? m->path : WML_STR("[ROOT]")));
    }
}

static void markdown_nodes(const struct wml_export_part *p, struct wml_buf *b)
{
    size_t i = 0;
    wml_buf_fmt(b, "\n## Complete Node Mappings\n\n<details><summary>%zu nodes</summary>\n\n```\n", p->counts.nodes);
    for (const struct wml_node *n = p->made.model->graph->first; n; n = n->next, i++)
        wml_buf_fmt(b, "%.*s -> %.*s\n", WML_ARG(n->name), WML_ARG(p->tag[i]));
    wml_buf_cstr(b, "```\n\n</details>\n");
}

static void markdown_summary(const struct wml_export_part *p, struct wml_buf *b)
{
    static const char *const phases[WML_EXPORT_PHASES] = {"Reading", "Building", "Writing", "Verifying", "Total"};
    wml_buf_cstr(b, "\n## Export Summary\n\n### Performance Metrics\n\n");
    for (size_t i = 0; i < WML_EXPORT_PHASES; i++)
        if (i != WML_EXPORT_VERIFY || p->verified.len) wml_buf_fmt(b, "- %s: %.3f s\n", phases[i], p->seconds[i]);
    wml_buf_fmt(b, "\n### Coverage Statistics\n\n- Nodes: %zu\n- Tagged: %zu (100 %%)\n", p->counts.nodes, p->counts.nodes);
    wml_buf_fmt(b, "\n### Output Files\n\n- Model: %s (%.2f MB)\n", p->path, (double)p->staged.bytes_after / 1048576.0);
    if (p->staged.saved.data_name[0]) wml_buf_fmt(b, "- Weights: %s\n", p->staged.saved.data_name);
    wml_buf_fmt(b, "- Metadata: %s\n- Report: %s\n\n---\n\nwinml, HTP form v1.0\n", p->sidecar, p->markdown);
}

bool wml_export_write_markdown(const struct wml_export_part *p, struct wml_err *err)
{
    struct wml_buf b = {0};
    wml_buf_fmt(&b, "# HTP ONNX Export Report\n\nGenerated: %s\n\nModel: %s\n\nOutput: %s\n\n", p->timestamp, p->run->a->model, p->path);
    wml_buf_fmt(&b, "Strategy: HTP (Hierarchical Tracing and Projection)\n\nExport Time: %.3f s\n", p->seconds[WML_EXPORT_TOTAL]);
    markdown_process(p, &b);
    markdown_modules(p, &b);
    markdown_nodes(p, &b);
    markdown_summary(p, &b);
    const bool ok = wml_file_write(wml_export_staged(p, p->markdown), wml_buf_view(&b), err);
    wml_buf_release(&b);
    return ok;
}
