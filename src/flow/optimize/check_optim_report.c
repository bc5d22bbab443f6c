/* The report of `--check-optim`: the default run first, then one section per finding, then what was left out and why. */
#include "flow/optimize/check_optim.h"

#include "graph/edit.h"

enum { SHOWN = 6, SHOWN_OPS = 12 };

static size_t shown(const struct wml_check_optim *c, size_t n)
{
    return c->r->args->verbose ? n : WML_MIN(n, SHOWN);
}

struct op { struct wml_str name; size_t n; };

static int by_count(const void *a, const void *b)
{
    const struct op *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : wml_str_cmp(x->name, y->name);
}

/* Rows counted by operator, the most frequent first. */
static struct op *histogram(struct wml_arena *a, const struct wml_diff_rows *rows, size_t *n)
{
    struct op *op = WML_NEW_ARRAY(a, struct op, rows->len + 1);
    struct wml_map at = {0};
    *n = 0;
    for (size_t i = 0; i < rows->len; i++) {
        struct op *o = wml_map_get(&at, rows->at[i].op_type);
        if (!o) {
            o = &op[(*n)++];
            o->name = rows->at[i].op_type;
            wml_map_put(&at, o->name, o);
        }
        o->n++;
    }
    wml_map_release(&at);
    qsort(op, *n, sizeof *op, by_count);
    return op;
}

static void put_rows(struct wml_item *nodes, const char *key, struct wml_arena *a, const struct wml_diff_rows *rows)
{
    struct wml_item *o = wml_item_object(nodes, key, NULL), *ops, *list;
    size_t n;
    struct op *op = histogram(a, rows, &n);
    wml_item_int(o, "count", NULL, (int64_t)rows->len, WML_SHOW_PLAIN);
    ops = wml_item_object(o, "by_op", NULL);
    for (size_t i = 0; i < n; i++) wml_item_int(ops, wml_item_name(ops, op[i].name), NULL, (int64_t)op[i].n, WML_SHOW_PLAIN);
    list = wml_item_array(o, "nodes", NULL);
    for (size_t i = 0; i < rows->len; i++) {
        struct wml_item *row = wml_item_object(list, NULL, NULL);
        wml_item_str(row, "op_type", NULL, rows->at[i].op_type);
        wml_item_str(row, "name", NULL, rows->at[i].name);
        if (rows->at[i].was.len) wml_item_str(row, "was", NULL, rows->at[i].was);
    }
}

static void put_names(struct wml_item *in, const char *key, const struct wml_diff_names *v)
{
    struct wml_item *list = wml_item_array(in, key, NULL);
    for (size_t i = 0; i < v->len; i++) wml_item_str(list, NULL, NULL, v->at[i]);
}

static void put_diff(struct wml_item *o, struct wml_arena *a, const struct wml_graph_diff *d)
{
    struct wml_item *nodes = wml_item_object(o, "nodes", NULL), *constants;
    put_rows(nodes, "removed", a, &d->removed);
    put_rows(nodes, "added", a, &d->added);
    put_rows(nodes, "modified", a, &d->modified);
    constants = wml_item_object(o, "constants", NULL);
    put_names(constants, "removed", &d->constants_removed);
    put_names(constants, "added", &d->constants_added);
    put_names(constants, "modified", &d->constants_modified);
}

static void show_rows(const struct wml_check_optim *c, struct wml_item *root, const char *what, const struct wml_diff_rows *rows)
{
    struct wml_buf b = {0};
    struct wml_arena *a = &c->r->arena;
    size_t n, k;
    if (!rows->len) return;
    struct op *op = histogram(a, rows, &n);
    for (k = 0; k < n && k < SHOWN_OPS; k++) wml_buf_fmt(&b, "%s%.*s (%zu)", k ? ", " : "", WML_ARG(op[k].name), op[k].n);
    wml_item_line(root, WML_TONE_PLAIN, "    %s: %s%s", what, wml_buf_text(&b), k < n ? ", ..." : "");
    n = shown(c, rows->len);
    for (size_t i = 0; i < n; i++) {
        const struct wml_diff_row *row = &rows->at[i];
        if (row->was.len) wml_item_line(root, WML_TONE_DIM, "      %.*s '%.*s', was %.*s", WML_ARG(row->op_type), WML_ARG(row->name),
                                        WML_ARG(row->was));
        else wml_item_line(root, WML_TONE_DIM, "      %.*s '%.*s'", WML_ARG(row->op_type), WML_ARG(row->name));
    }
    if (n < rows->len) wml_item_line(root, WML_TONE_DIM, "      ... and %zu more", rows->len - n);
    wml_buf_release(&b);
}

static void show_constants(const struct wml_check_optim *c, struct wml_item *root, const struct wml_graph_diff *d)
{
    const struct wml_diff_names *v[] = {&d->constants_modified, &d->constants_added, &d->constants_removed};
    struct wml_buf b = {0};
    size_t total = v[0]->len + v[1]->len + v[2]->len, n = 0;
    if (!total) return;
    for (size_t k = 0; k < WML_COUNT(v); k++)
        for (size_t i = 0; i < v[k]->len && n < shown(c, total); i++, n++)
            wml_buf_fmt(&b, "%s%.*s", n ? ", " : "", WML_ARG(v[k]->at[i]));
    wml_item_line(root, WML_TONE_PLAIN, "    constants: ~%zu +%zu -%zu: %s%s", v[0]->len, v[1]->len, v[2]->len, wml_buf_text(&b),
                  n < total ? ", ..." : "");
    wml_buf_release(&b);
}

static bool is_wanted(const struct wml_check_optim *c, size_t pass)
{
    for (size_t i = 0; i < c->r->n_wants; i++)
        if (c->r->want[i].on && c->r->want[i].pass == pass) return true;
    return false;
}

/* What the capability does already without a flag: not the case for the others. */
static bool is_default(const struct wml_check_optim *c, size_t pass)
{
    return (wml_passes[pass]->on && !wml_passes[pass]->wider) || is_wanted(c, pass);
}

static void put_head(struct wml_item *o, const struct wml_check_optim *c, size_t i)
{
    const struct wml_pass *p = wml_passes[i];
    const struct wml_finding *f = &c->finding[i];
    wml_item_cstr(o, "name", NULL, p->name);
    wml_item_cstr(o, "category", NULL, p->category);
    wml_item_cstr(o, "pipe", NULL, p->pipe ? p->pipe : "winml");
    wml_item_cstr(o, "summary", NULL, p->summary);
    wml_item_bool(o, "default", NULL, p->on);
    wml_item_bool(o, "wanted", NULL, is_wanted(c, i));
    wml_item_bool(o, "lossy", NULL, p->lossy);
    wml_item_cstr(o, "compared_with", NULL, f->parent == SIZE_MAX ? NULL : wml_passes[f->parent]->name);
    wml_item_int(o, "matches", NULL, (int64_t)f->matches, WML_SHOW_PLAIN);
    wml_item_num(o, "ms", NULL, f->ms, 3, WML_SHOW_PLAIN);
}

static void show_finding(const struct wml_check_optim *c, struct wml_item *root, size_t i)
{
    const struct wml_pass *p = wml_passes[i];
    const struct wml_finding *f = &c->finding[i];
    const struct wml_graph_diff *d = &f->diff;
    wml_item_gap(root);
    wml_item_line(root, WML_TONE_VALUE, "--%s-%s  (%s)%s%s%s", is_default(c, i) ? "disable" : "enable", p->name, p->category,
                  p->on && !p->wider ? ", on by default" : p->wider ? ", does more when asked for" : is_wanted(c, i) ? ", done for this target" : "", p->lossy ? ", changes answers" : "",
                  f->parent == SIZE_MAX ? "" : ", beyond what it needs:");
    if (f->parent != SIZE_MAX) wml_item_line(root, WML_TONE_DIM, "  %s is on with it", wml_passes[f->parent]->name);
    wml_item_line(root, WML_TONE_PLAIN, "  %s", p->summary);
    wml_item_line(root, WML_TONE_PLAIN, "  nodes: -%zu +%zu ~%zu", d->removed.len, d->added.len, d->modified.len);
    show_rows(c, root, "removed", &d->removed);
    show_rows(c, root, "added", &d->added);
    show_rows(c, root, "modified", &d->modified);
    show_constants(c, root, d);
}

static void put_findings(const struct wml_check_optim *c, struct wml_item *root, size_t n)
{
    struct wml_item *list = wml_item_array(root, "findings", NULL);
    wml_item_gap(root);
    if (!n) wml_item_line(root, WML_TONE_PLAIN, "No other capability applies to this model.");
    else wml_item_line(root, WML_TONE_PLAIN, "%zu %s this model:", n, n == 1 ? "capability would change" : "capabilities would change");
    for (size_t i = 0; i < wml_n_passes; i++) {
        if (c->finding[i].kind != WML_FINDING_FOUND) continue;
        struct wml_item *o = wml_item_object(list, NULL, NULL);
        put_head(o, c, i);
        put_diff(o, &c->r->arena, &c->finding[i].diff);
        show_finding(c, root, i);
    }
}

static void put_skipped(const struct wml_check_optim *c, struct wml_item *root)
{
    static const struct wml_column columns[] = {{.key = "name", .label = "Left out"}, {.key = "status"}, {.key = "reason", .label = "Reason"}};
    bool any = false;
    for (size_t i = 0; i < wml_n_passes; i++) any = any || c->finding[i].kind == WML_FINDING_SKIPPED || c->finding[i].kind == WML_FINDING_FAILED;
    struct wml_item *table = any ? wml_item_table(root, "skipped", NULL, columns, WML_COUNT(columns)) : wml_item_array(root, "skipped", NULL);
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_finding *f = &c->finding[i];
        if (f->kind != WML_FINDING_SKIPPED && f->kind != WML_FINDING_FAILED) continue;
        struct wml_item *row = wml_table_row(table);
        wml_item_cstr(row, "name", NULL, wml_passes[i]->name);
        wml_item_cstr(row, "status", NULL, f->kind == WML_FINDING_FAILED ? "failed" : "skipped");
        wml_item_cstr(row, "reason", NULL, f->reason);
    }
}

static void put_nothing(const struct wml_check_optim *c, struct wml_item *root)
{
    struct wml_item *list = wml_item_array(root, "nothing", NULL);
    size_t n = 0;
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_finding *f = &c->finding[i];
        if (f->kind != WML_FINDING_NOTHING) continue;
        struct wml_item *o = wml_item_object(list, NULL, NULL);
        wml_item_cstr(o, "name", NULL, wml_passes[i]->name);
        wml_item_cstr(o, "reason", NULL, f->reason[0] ? f->reason : NULL);
        n++;
    }
    wml_item_line(root, WML_TONE_DIM, "%zu more find nothing in this model.", n);
}

/* What happens without any flag. */
static void put_standard(const struct wml_check_optim *c, struct wml_item *root)
{
    static const struct wml_column columns[] = {{.label = "By default"}, {.label = "Changes", .right = true}, {.label = "Nodes", .right = true}};
    struct wml_item *o = wml_item_object(root, "baseline", NULL), *list, *table;
    wml_item_int(o, "nodes_before", NULL, (int64_t)c->r->before.top, WML_SHOW_COUNT);
    wml_item_int(o, "nodes_after", NULL, (int64_t)c->r->after.top, WML_SHOW_COUNT);
    wml_item_fmt(root, NULL, "By default", "%zu -> %zu nodes, without ONNX Runtime's optimiser", c->r->before.top, c->r->after.top);
    list = wml_item_array(o, "passes", NULL);
    table = wml_item_table(root, NULL, NULL, columns, WML_COUNT(columns));
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_pass_result *p = &c->standard_result[i];
        if (!wml_passes[i]->on || c->r->choice[i] == WML_PASS_OFF) continue;
        struct wml_item *row = wml_item_object(list, NULL, NULL);
        wml_item_cstr(row, "name", NULL, wml_passes[i]->name);
        wml_item_cstr(row, "status", NULL, wml_pass_status_name(p->status));
        wml_item_int(row, "applied", NULL, (int64_t)p->applied, WML_SHOW_PLAIN);
        wml_item_int(row, "removed", NULL, p->nodes_removed, WML_SHOW_PLAIN);
        wml_item_cstr(row, "reason", NULL, p->reason[0] ? p->reason : NULL);
        if (p->status != WML_PASS_APPLIED) continue;
        row = wml_table_row(table);
        wml_item_cstr(row, NULL, "By default", wml_passes[i]->name);
        wml_item_int(row, NULL, "Changes", (int64_t)p->applied, WML_SHOW_COUNT);
        wml_item_int(row, NULL, "Nodes", -p->nodes_removed, WML_SHOW_PLAIN);
    }
    put_diff(o, &c->r->arena, &c->standard);
}

static void put_target(const struct wml_check_optim *c, struct wml_item *root)
{
    const struct wml_optimize_run *r = c->r;
    const char *device = r->args->target.device;
    if (!r->args->has_target) {
        wml_item_null(root, "target", NULL);
        return;
    }
    struct wml_item *target = wml_item_object(root, "target", NULL);
    const char *name = r->ep ? r->ep->name : r->args->target.ep ? r->args->target.ep : "not known here";
    wml_item_cstr(target, "ep", NULL, r->ep ? r->ep->name : r->args->target.ep);
    wml_item_cstr(target, "device", NULL, device);
    wml_item_fmt(root, NULL, "Target", "%s%s%s", name, device ? " on " : "", device ? device : "");
    wml_optimize_wants_report(r, target, root);
}

void wml_check_optim_report(const struct wml_check_optim *c, struct wml_report *out)
{
    struct wml_item *root = wml_report_root(out);
    size_t n = 0;
    for (size_t i = 0; i < wml_n_passes; i++) n += c->finding[i].kind == WML_FINDING_FOUND;
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "input", "Input", c->r->args->model);
    wml_item_null(root, "output", NULL);
    wml_item_cstr(root, NULL, "Output", "none: a check, nothing is written");
    put_target(c, root);
    wml_item_int(root, "probed", "Capabilities tried", (int64_t)c->n_probed, WML_SHOW_COUNT);
    wml_item_num(root, "ms", "Time", c->ms, 3, WML_SHOW_MS);
    put_standard(c, root);
    put_findings(c, root, n);
    put_skipped(c, root);
    put_nothing(c, root);
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < c->r->warning.len; i++) {
        wml_item_cstr(warnings, NULL, NULL, c->r->warning.at[i]);
        wml_item_line(root, WML_TONE_WARN, "Warning: %s", c->r->warning.at[i]);
    }
    if (n) wml_item_line(root, WML_TONE_DIM, "Add the flags to `winml optimize -m %s`; -v lists every node.", c->r->args->model);
}
