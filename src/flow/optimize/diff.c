/* --diff FILE.html: before and after side by side: sizes, operators, what the passes did, nodes that went, came and
 * changed. */
#include <inttypes.h>

#include "flow/optimize/graph_diff.h"
#include "flow/html.h"
#include "flow/optimize/internal.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "os/file.h"
#include "text/words.h"

static void heading(struct wml_buf *b, const struct wml_optimize_run *r)
{
    wml_buf_fmt(b, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
                   "<title>winml optimize</title><style>%s</style><main>\n<h1>", wml_html_style);
    wml_html_escape(b, wml_str(r->staged.name));
    wml_buf_cstr(b, "</h1><p class=sub>optimized from ");
    wml_html_escape(b, wml_str(r->args->model));
    wml_buf_fmt(b, "</p>\n<div class=cards><div class=card><b>%zu &rarr; %zu</b><span>nodes</span></div>\n", r->before.top, r->after.top);
    wml_buf_fmt(b, "<div class=card><b>%zu &rarr; %zu</b><span>with sub-graphs</span></div>\n", r->before.all, r->after.all);
    wml_buf_cstr(b, "<div class=card><b>");
    wml_size_text(b, r->staged.bytes_before);
    wml_buf_cstr(b, " &rarr; ");
    wml_size_text(b, r->staged.bytes_after);
    wml_buf_cstr(b, "</b><span>size</span></div>\n");
    wml_buf_fmt(b, "<div class=card><b>%s</b><span>answers</span></div></div>\n", r->verified ? "equal" : "not verified");
}

static void bar(struct wml_buf *b, size_t n, size_t most, const char *style)
{
    if (n) wml_buf_fmt(b, "<div class=bar style=\"width:%.1f%%%s\"></div>", 100.0 * (double)n / (double)most, style);
}

static void operators(struct wml_buf *b, const struct wml_optimize_run *r)
{
    size_t most = 1;
    wml_buf_cstr(b, "<h2>Operators</h2><table><tr><th>Operator</th><th class=n>Before</th><th class=n>After</th><th></th></tr>\n");
    const struct wml_map *maps[] = {&r->before.map, &r->after.map};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < maps[k]->len; i++) most = WML_MAX(most, *(const size_t *)maps[k]->entry[i].value);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < maps[k]->len; i++) {
            struct wml_str name = maps[k]->entry[i].key;
            if (k && wml_map_has(maps[0], name)) continue;
            const size_t *x = wml_map_get(maps[0], name), *y = wml_map_get(maps[1], name);
            size_t before = x ? *x : 0, after = y ? *y : 0;
            wml_buf_cstr(b, "<tr><td>");
            wml_html_escape(b, name);
            wml_buf_fmt(b, "</td><td class=n>%zu</td><td class=n>%zu</td><td style=\"width:45%%\">", before, after);
            bar(b, before, most, "");
            bar(b, after, most, ";background:var(--a);margin-top:2px");
            wml_buf_cstr(b, "</td></tr>\n");
        }
    wml_buf_cstr(b, "</table>\n");
}

static void passes(struct wml_buf *b, const struct wml_optimize_run *r)
{
    wml_buf_cstr(b, "<h2>Passes</h2><table><tr><th>Pass</th><th class=n>Changes</th><th class=n>Nodes</th><th>What it does</th></tr>\n");
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_pass_result *p = &r->result[i];
        if (p->status != WML_PASS_APPLIED) continue;
        wml_buf_fmt(b, "<tr><td>%s</td><td class=n>%zu</td><td class=n>%" PRId64 "</td><td>", wml_passes[i]->name, p->applied, -p->nodes_removed);
        wml_html_escape(b, wml_str(wml_passes[i]->summary));
        wml_buf_cstr(b, "</td></tr>\n");
    }
    wml_buf_cstr(b, "</table>\n");
}

static void nodes(struct wml_buf *b, const char *title, const struct wml_diff_rows *rows)
{
    wml_buf_fmt(b, "<details><summary><h2 style=\"display:inline\">%s <small>%zu</small></h2></summary><table>\n", title, rows->len);
    for (size_t i = 0; i < rows->len; i++) {
        const struct wml_diff_row *row = &rows->at[i];
        wml_buf_cstr(b, "<tr><td>");
        if (row->was.len) {
            wml_html_escape(b, row->was);
            wml_buf_cstr(b, " &rarr; ");
        }
        wml_html_escape(b, row->op_type);
        wml_buf_cstr(b, "</td><td>");
        wml_html_escape(b, row->name);
        wml_buf_cstr(b, "</td></tr>\n");
    }
    wml_buf_cstr(b, "</table></details>\n");
}

bool wml_optimize_diff(struct wml_optimize_run *r, struct wml_err *err)
{
    struct wml_model *before = NULL;
    struct wml_graph_diff d = {0};
    struct wml_buf b = {0};
    if (!wml_onnx_load(r->args->model, &before, err)) return false;
    wml_model_unique_node_names(before);
    wml_graph_diff(before, r->model, &d);
    heading(&b, r);
    operators(&b, r);
    passes(&b, r);
    nodes(&b, "Nodes removed", &d.removed);
    nodes(&b, "Nodes added", &d.added);
    nodes(&b, "Nodes changed", &d.modified);
    wml_buf_cstr(&b, "</main></html>\n");
    bool ok = wml_file_write(r->args->diff, wml_buf_view(&b), err);
    wml_buf_release(&b);
    wml_graph_diff_release(&d);
    wml_model_free(before);
    return ok;
}
