/* The report of `optimize`: passes, nodes before and after, verification, target. */
#include <inttypes.h>
#include <math.h>

#include "flow/optimize/internal.h"
#include "flow/placement.h"
#include "graph/edit.h"

static size_t count_in(const struct wml_op_counts *c, struct wml_str name)
{
    const size_t *n = wml_map_get(&c->map, name);
    return n ? *n : 0;
}

static void put_op(struct wml_item *table, struct wml_str name, size_t before, size_t after)
{
    struct wml_item *row = wml_table_row(table);
    wml_item_str(row, "op_type", NULL, name);
    wml_item_int(row, "before", NULL, (int64_t)before, WML_SHOW_COUNT);
    wml_item_int(row, "after", NULL, (int64_t)after, WML_SHOW_COUNT);
}

/* Operators whose number changed, the largest change first. */
struct change { struct wml_str name; size_t before, after; };

static int by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int64_t dx = llabs((int64_t)x->before - (int64_t)x->after), dy = llabs((int64_t)y->before - (int64_t)y->after);
    return dx != dy ? (dx < dy ? 1 : -1) : wml_str_cmp(x->name, y->name);
}

static void put_ops(struct wml_item *nodes, const struct wml_optimize_run *r)
{
    static const struct wml_column columns[] = {{.key = "op_type", .label = "Operator"},
                                                {.key = "before", .label = "Before", .right = true},
                                                {.key = "after", .label = "After", .right = true}};
    WML_VEC(struct change) v = {0};
    for (size_t i = 0; i < r->before.map.len; i++) {
        struct wml_str name = r->before.map.entry[i].key;
        struct change c = {name, count_in(&r->before, name), count_in(&r->after, name)};
        if (c.before != c.after) WML_PUSH(&v, c);
    }
    for (size_t i = 0; i < r->after.map.len; i++) {
        struct wml_str name = r->after.map.entry[i].key;
        struct change c = {name, 0, count_in(&r->after, name)};
        if (!wml_map_has(&r->before.map, name)) WML_PUSH(&v, c);
    }
    if (!v.len) {
        wml_item_array(nodes, "by_op", NULL);
        return;
    }
    qsort(v.at, v.len, sizeof *v.at, by_change);
    struct wml_item *table = wml_item_table(nodes, "by_op", "Operators that changed", columns, WML_COUNT(columns));
    for (size_t i = 0; i < v.len; i++) put_op(table, v.at[i].name, v.at[i].before, v.at[i].after);
    wml_table_limit(table, 16);
    WML_VEC_RELEASE(&v);
}

static void put_nodes(struct wml_item *root, const struct wml_optimize_run *r)
{
    size_t a = r->before.top, b = r->after.top;
    double percent = a ? 100.0 * fabs((double)a - (double)b) / (double)a : 0;
    if (a == b) wml_item_fmt(root, NULL, "Nodes", "%zu -> %zu (no change)", a, b);
    else wml_item_fmt(root, NULL, "Nodes", "%zu -> %zu (%.1f%% %s)", a, b, percent, b < a ? "reduction" : "increase");
    if (r->before.all != a) wml_item_fmt(root, NULL, "with sub-graphs", "%zu -> %zu", r->before.all, r->after.all);
    struct wml_item *nodes = wml_item_object(root, "nodes", NULL);
    wml_item_int(nodes, "before", NULL, (int64_t)a, WML_SHOW_COUNT);
    wml_item_int(nodes, "after", NULL, (int64_t)b, WML_SHOW_COUNT);
    wml_item_int(nodes, "all_before", NULL, (int64_t)r->before.all, WML_SHOW_COUNT);
    wml_item_int(nodes, "all_after", NULL, (int64_t)r->after.all, WML_SHOW_COUNT);
    put_ops(nodes, r);
}

static void put_size(struct wml_item *root, const struct wml_optimize_run *r)
{
    struct wml_buf a = {0}, b = {0};
    struct wml_item *size = wml_item_object(root, "size", NULL);
    wml_item_int(size, "before", NULL, (int64_t)r->staged.bytes_before, WML_SHOW_BYTES);
    wml_item_int(size, "after", NULL, (int64_t)r->staged.bytes_after, WML_SHOW_BYTES);
    wml_item_int(root, NULL, "Size before", (int64_t)r->staged.bytes_before, WML_SHOW_BYTES);
    wml_item_int(root, NULL, "Size after", (int64_t)r->staged.bytes_after, WML_SHOW_BYTES);
    wml_item_cstr(root, "data_file", r->staged.saved.data_name[0] ? "Weights" : NULL,
                  r->staged.saved.data_name[0] ? r->staged.saved.data_name : NULL);
    wml_buf_release(&a);
    wml_buf_release(&b);
}

static void put_opset(struct wml_item *root, const struct wml_optimize_run *r)
{
    int64_t now = wml_model_opset(r->model, "");
    wml_item_int(root, "opset_before", NULL, r->opset_before, WML_SHOW_PLAIN);
    wml_item_int(root, "opset", NULL, now, WML_SHOW_PLAIN);
    wml_item_int(root, "ir_version", NULL, r->model->ir_version, WML_SHOW_PLAIN);
    if (now == r->opset_before) wml_item_int(root, NULL, "Opset", now, WML_SHOW_PLAIN);
    else wml_item_fmt(root, NULL, "Opset", "%" PRId64 " -> %" PRId64, r->opset_before, now);
}

static void put_pass(struct wml_item *list, const struct wml_pass *pass, enum wml_pass_status status, const struct wml_pass_result *p,
                     const char *reason)
{
    struct wml_item *o = wml_item_object(list, NULL, NULL);
    wml_item_cstr(o, "name", NULL, pass->name);
    wml_item_cstr(o, "pipe", NULL, pass->pipe ? pass->pipe : "winml");
    wml_item_cstr(o, "status", NULL, wml_pass_status_name(status));
    wml_item_int(o, "applied", NULL, p ? (int64_t)p->applied : 0, WML_SHOW_PLAIN);
    wml_item_int(o, "removed", NULL, p ? p->nodes_removed : 0, WML_SHOW_PLAIN);
    wml_item_num(o, "ms", NULL, p ? p->ms : 0, 3, WML_SHOW_PLAIN);
    wml_item_cstr(o, "reason", NULL, reason && reason[0] ? reason : NULL);
}

static void show_pass(struct wml_item *table, const char *name, enum wml_pass_status status,
                      const struct wml_pass_result *p, const char *reason)
{
    struct wml_item *row = wml_table_row(table);
    wml_item_cstr(row, NULL, "Pass", name);
    wml_item_cstr(row, NULL, "Status", wml_pass_status_name(status));
    wml_item_tone(row, status == WML_PASS_APPLIED ? WML_TONE_GOOD : status == WML_PASS_FAILED ? WML_TONE_BAD : WML_TONE_WARN);
    wml_item_int(row, NULL, "Changes", p ? (int64_t)p->applied : 0, WML_SHOW_COUNT);
    wml_item_int(row, NULL, "Nodes", p ? -p->nodes_removed : 0, WML_SHOW_PLAIN);
    wml_item_cstr(row, NULL, "Reason", reason && reason[0] ? reason : "");
}

/* JSON lists every pass; text those that did something or were kept from it. */
static void put_passes(struct wml_item *root, const struct wml_optimize_run *r)
{
    static const struct wml_column columns[] = {{.label = "Pass"}, {.label = "Status"}, {.label = "Changes", .right = true},
                                                {.label = "Nodes", .right = true}, {.label = "Reason"}};
    struct wml_item *list = wml_item_array(root, "passes", NULL);
    struct wml_item *table = wml_item_table(root, NULL, "Passes", columns, WML_COUNT(columns));
    size_t idle = 0, n_off = 0;
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_pass_result *p = &r->result[i];
        put_pass(list, wml_passes[i], r->undone[i] ? WML_PASS_FAILED : p->status, p, r->undone[i] ? r->undone[i] : p->reason);
        bool off = p->status == WML_PASS_SKIPPED && r->choice[i] != WML_PASS_ON && !wml_passes[i]->on;
        if (r->undone[i]) show_pass(table, wml_passes[i]->name, WML_PASS_FAILED, p, r->undone[i]);
        else if (off) n_off++;
        else if (p->status == WML_PASS_NOTHING || (p->status == WML_PASS_SKIPPED && !r->args->verbose && r->choice[i] == WML_PASS_DEFAULT)) idle++;
        else show_pass(table, wml_passes[i]->name, p->status, p, p->reason);
    }
    wml_item_line(root, WML_TONE_DIM, "%zu more found nothing to do, %zu are off (--list-capabilities).", idle, n_off);
}

static void put_verify(struct wml_item *root, const struct wml_optimize_run *r)
{
    static const struct wml_column columns[] = {
        {.key = "name", .label = "Output", .max_width = 40}, {.key = "cosine", .label = "Cosine", .right = true},
        {.key = "max_abs", .label = "Max abs", .right = true}, {.key = "max_rel", .label = "Max rel", .right = true},
        {.key = "sqnr_db", .label = "SQNR dB", .right = true},
        {.key = "equal"}};
    struct wml_item *verify = wml_item_object(root, "verify", NULL), *cpu = wml_item_object(verify, "cpu", NULL);
    wml_item_cstr(cpu, "status", NULL, r->verified ? "passed" : "not verified");
    wml_item_cstr(cpu, "reason", NULL, r->verify_note);
    if (r->verified || r->load_error) wml_item_bool(cpu, "source_loads", NULL, !r->load_error);
    else wml_item_null(cpu, "source_loads", NULL);
    wml_item_cstr(cpu, "load_error", NULL, r->load_error);
    if (r->verify_note) wml_item_cstr(root, NULL, "Verified", r->load_error ? "not verified" : r->verify_note);
    if (r->verify_note && r->args->verify != WML_VERIFY_OFF) wml_item_tone(root, WML_TONE_WARN);
    if (!r->verified) return;
    struct wml_item *table = wml_item_table(cpu, "outputs", "Verified on the CPU: same inputs, before and after", columns,
                                            WML_COUNT(columns));
    for (size_t i = 0; i < r->verify.row.len; i++) {
        const struct wml_verify_row *v = &r->verify.row.at[i];
        struct wml_item *row = wml_table_row(table);
        wml_item_cstr(row, "name", NULL, v->name);
        wml_item_num(row, "cosine", NULL, v->comparable ? v->c.cosine : NAN, 8, WML_SHOW_PLAIN);
        wml_item_num(row, "max_abs", NULL, v->comparable ? v->c.max_abs : NAN, 12, WML_SHOW_SCIENCE);
        wml_item_num(row, "max_rel", NULL, v->comparable ? v->max_rel : NAN, 12, WML_SHOW_SCIENCE);
        if (v->comparable && v->c.equal) wml_item_cstr(row, "sqnr_db", NULL, "equal");
        else wml_item_num(row, "sqnr_db", NULL, v->comparable ? v->c.sqnr_db : NAN, 1, WML_SHOW_PLAIN);
        wml_item_bool(row, "equal", NULL, v->comparable && v->c.equal);
    }
}

static void put_placed(struct wml_item *target, const char *key, const struct wml_placed_count *n)
{
    if (n->on < 0) {
        wml_item_null(target, key, NULL);
        return;
    }
    struct wml_item *o = wml_item_object(target, key, NULL);
    wml_item_int(o, "on_target", NULL, n->on, WML_SHOW_PLAIN);
    wml_item_int(o, "elsewhere", NULL, n->elsewhere, WML_SHOW_PLAIN);
}

static void put_target(struct wml_item *root, const struct wml_optimize_run *r)
{
    const struct wml_json_val *reply = r->placement ? wml_json_root(r->placement) : NULL;
    const struct wml_json_val *t = wml_json_get(reply, "target");
    if (!r->args->has_target) {
        wml_item_null(root, "target", NULL);
        return;
    }
    struct wml_item *target = wml_item_object(root, "target", NULL);
    struct wml_str ep = wml_json_get_str(t, "ep"), device = wml_json_get_str(t, "device");
    if (!ep.ptr) ep = wml_str(r->ep ? r->ep->name : r->args->target.ep);
    if (!device.ptr) device = wml_str(r->args->target.device);
    wml_item_str(target, "ep", NULL, ep);
    wml_item_str(target, "device", NULL, device);
    wml_item_bool(target, "simulated", NULL, wml_json_get_bool(t, "simulated", false));
    wml_item_str(target, "ep_version", NULL, wml_json_get_str(t, "ep_version"));
    wml_item_cstr(target, "status", NULL, r->target_status ? r->target_status : "not verified");
    wml_item_cstr(target, "reason", NULL, r->target_note);
    wml_item_fmt(root, NULL, "Target", "%.*s%s%.*s: %s%s%s", WML_ARG(ep), device.len ? " on " : "", WML_ARG(device),
                 r->target_status ? r->target_status : "not verified", r->target_note ? ", " : "",
                 r->target_note ? r->target_note : "");
    if (r->target_note) wml_item_tone(root, WML_TONE_WARN);
    if (r->target_hint) wml_item_cstr(root, "hint", "Next", r->target_hint);
    put_placed(target, "placed_before", &r->placed_before);
    put_placed(target, "placed_after", &r->placed_after);
    if (r->placed_before.on >= 0 && r->placed_after.on >= 0)
        wml_item_fmt(root, NULL, "On the target", "%" PRId64 " of %" PRId64 " nodes before, %" PRId64 " of %" PRId64 " after",
                     r->placed_before.on, r->placed_before.on + r->placed_before.elsewhere, r->placed_after.on,
                     r->placed_after.on + r->placed_after.elsewhere);
    wml_optimize_wants_report(r, target, root);
}

void wml_optimize_report(const struct wml_optimize_run *r, struct wml_report *out)
{
    struct wml_item *root = wml_report_root(out);
    wml_report_tells_of_file(out);
    const struct wml_json_val *reply = r->placement ? wml_json_root(r->placement) : NULL;
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "input", "Input", r->args->model);
    wml_item_cstr(root, "output", "Output", r->staged.output);
    put_target(root, r);
    put_nodes(root, r);
    put_size(root, r);
    put_opset(root, r);
    put_passes(root, r);
    wml_optimize_explain(r, root);
    put_verify(root, r);
    if (r->args->has_target)
        wml_item_placement(wml_item_find(root, "target"), "placement", root, "Where the nodes run on the target",
                           wml_json_get(reply, "placement"));
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < r->warning.len; i++) {
        wml_item_cstr(warnings, NULL, NULL, r->warning.at[i]);
        wml_item_line(root, WML_TONE_WARN, "Warning: %s", r->warning.at[i]);
    }
    if (r->args->diff) wml_item_cstr(root, "diff", "Before and after", r->args->diff);
}
