/* What each pass did to which nodes, and which it left alone although they looked right. */
#include "flow/optimize/internal.h"

enum { SHOWN = 12 };

static void put_event(struct wml_item *row, const struct wml_pass_event *e)
{
    wml_item_cstr(row, "pass", NULL, e->pass->name);
    wml_item_int(row, "round", NULL, (int64_t)e->round, WML_SHOW_PLAIN);
    wml_item_str(row, "op_type", NULL, e->op_type);
    wml_item_str(row, "node", NULL, e->node.len ? e->node : WML_STR("-"));
    wml_item_str(row, "reason", NULL, e->reason.ptr ? e->reason : WML_STR(""));
}

static void put_table(const struct wml_optimize_run *r, struct wml_item *root, bool refused, const char *key, const char *title)
{
    static const struct wml_column done[] = {{.key = "pass", .label = "Pass"}, {.key = "round", .label = "Round", .right = true},
                                             {.key = "op_type", .label = "Operator"}, {.key = "node", .label = "Node", .max_width = 48}};
    static const struct wml_column left[] = {{.key = "pass", .label = "Pass"}, {.key = "op_type", .label = "Operator"},
                                             {.key = "node", .label = "Node", .max_width = 40}, {.key = "reason", .label = "Reason"}};
    struct wml_item *table = refused ? wml_item_table(root, key, title, left, WML_COUNT(left))
                                     : wml_item_table(root, key, title, done, WML_COUNT(done));
    for (size_t i = 0; i < r->log.v.len; i++)
        if ((r->log.v.at[i].reason.ptr != NULL) == refused) put_event(wml_table_row(table), &r->log.v.at[i]);
    if (!r->args->explain) wml_table_limit(table, SHOWN);
}

static bool has(const struct wml_optimize_run *r, bool refused)
{
    for (size_t i = 0; i < r->log.v.len; i++)
        if ((r->log.v.at[i].reason.ptr != NULL) == refused) return true;
    return false;
}

void wml_optimize_explain(const struct wml_optimize_run *r, struct wml_item *root)
{
    if (r->args->explain && has(r, false)) put_table(r, root, false, "changes", "What the passes did");
    if (has(r, true)) put_table(r, root, true, "left_alone", "Left alone, although it looked right");
}
