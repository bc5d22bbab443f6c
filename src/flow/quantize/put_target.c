/* The target in the report of `quantize`: how many nodes it takes, and what stays float for its sake. */
#include "flow/quantize/internal.h"

#include <inttypes.h>

#include "flow/placement.h"
#include "graph/edit.h"
#include "graph/graph.h"

enum { NAMES_SHOWN = 4 };

static void put_nodes(struct wml_item *in, const char *key, const struct wml_refused_node *node, size_t n)
{
    struct wml_item *list = wml_item_array(in, key, NULL);
    for (size_t i = 0; i < n; i++) {
        struct wml_item *row = wml_item_object(list, NULL, NULL);
        wml_item_cstr(row, "name", NULL, node[i].name);
        wml_item_cstr(row, "op", NULL, node[i].op);
    }
}

/* "'Erf_12' (Erf), 'Erf_31' (Erf) and 4 more", without those of `but`; how many. */
static size_t put_names(struct wml_buf *out, const struct wml_refused_node *node, size_t n, const struct wml_refused_nodes *but)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        bool skip = false;
        for (size_t k = 0; but && k < but->len; k++) skip = skip || strcmp(but->at[k].name, node[i].name) == 0;
        if (!skip && count++ < NAMES_SHOWN) wml_buf_fmt(out, "%s'%s' (%s)", count > 1 ? ", " : "", node[i].name, node[i].op);
    }
    if (count > NAMES_SHOWN) wml_buf_fmt(out, " and %zu more", count - NAMES_SHOWN);
    return count;
}

const char *wml_quantize_rules(const struct wml_quantize_run *r)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (r->step[i].method->wanted) return wml_quant_has_rules(r->ep) ? r->ep : NULL;
    return NULL;
}

static bool has_open_sizes(const struct wml_graph *g)
{
    for (size_t i = 0; i < g->inputs.len; i++) {
        const struct wml_value *v = g->inputs.at[i];
        for (int64_t k = 0; k < wml_value_rank(v); k++)
            if (wml_value_axis(v, (size_t)k).size < 0) return true;
    }
    return false;
}

static const struct wml_json_val *facts_of(const struct wml_quantize_run *r)
{
    return wml_json_get(r->target.reply ? wml_json_root(r->target.reply) : NULL, "target");
}

/* Absent: no EP is known. */
static struct wml_str ep_of(const struct wml_quantize_run *r)
{
    struct wml_str ep = wml_json_get_str(facts_of(r), "ep");
    return ep.ptr ? ep : wml_str(r->ep_row ? r->ep_row->name : r->args->target.ep);
}

static bool is_counted(const struct wml_quantize_target *t)
{
    return t->status && t->on >= 0;
}

void wml_quantize_target_line(const struct wml_quantize_run *r, struct wml_buf *out)
{
    const struct wml_quantize_target *t = &r->target;
    struct wml_str ep = ep_of(r);
    const char *what = wml_quantize_rules(r) ? "rules applied without asking" : "not asked what it takes";
    if (!ep.ptr) ep = WML_STR("the device's EP");
    if (is_counted(t))
        wml_buf_fmt(out, "%" PRId64 " of %" PRId64 " nodes on %.*s%s%s", t->on, t->on + t->elsewhere - t->boundary, WML_ARG(ep),
                    t->boundary ? " (boundary Q/DQ apart)" : "", wml_json_get_bool(facts_of(r), "simulated", false) ? ", simulated here" : "");
    else if (!t->status) wml_buf_fmt(out, "%.*s: %s", WML_ARG(ep), what);
    else if (strcmp(t->status, "not asked") == 0) wml_buf_fmt(out, "%.*s: %s: EP not on this machine", WML_ARG(ep), what);
    else if (strcmp(t->status, "failed") == 0) wml_buf_fmt(out, "%.*s does not load the result", WML_ARG(ep));
    else wml_buf_fmt(out, "%.*s loads the result; this ONNX Runtime does not tell which nodes it takes", WML_ARG(ep));
}

void wml_quantize_left_line(const struct wml_quantize_run *r, struct wml_buf *out)
{
    const struct wml_quantize_target *t = &r->target;
    if (!t->left.len) return;
    wml_buf_fmt(out, "%zu node%s refused as integers: ", t->left.len, t->left.len > 1 ? "s" : "");
    put_names(out, t->left.at, t->left.len, NULL);
}

static void put_elsewhere(struct wml_item *root, const struct wml_quantize_run *r, struct wml_str ep)
{
    const struct wml_quantize_target *t = &r->target;
    struct wml_buf names = {0};
    size_t n = put_names(&names, t->other.at, t->other.len, &t->left);
    if (n) wml_item_fmt(root, NULL, "On others", "%s", wml_buf_text(&names));
    if ((t->refuses_most || !t->on) && has_open_sizes(r->model->graph))
        wml_item_line(root, WML_TONE_WARN, "Warning: inputs have open sizes, of which %.*s takes little: fix them with "
                      "winml optimize --input-shape or --input-dim first", WML_ARG(ep));
    else if (t->refuses_most)
        wml_item_line(root, WML_TONE_WARN, "Warning: %.*s refuses more than half of the nodes: none was left float for it", WML_ARG(ep));
    wml_buf_release(&names);
}

static void put_counts(struct wml_item *target, const struct wml_quantize_target *t)
{
    wml_item_int(target, "nodes", NULL, t->on + t->elsewhere - t->boundary, WML_SHOW_PLAIN);
    wml_item_int(target, "nodes_on_target", NULL, t->on, WML_SHOW_PLAIN);
    wml_item_int(target, "boundary_qdq", NULL, t->boundary, WML_SHOW_PLAIN);
    wml_item_json(target, "placement", wml_json_get(wml_json_root(t->reply), "placement"));
    put_nodes(target, "elsewhere", t->other.at, t->other.len);
}

void wml_quantize_put_target(const struct wml_quantize_run *r, struct wml_item *root)
{
    const struct wml_quantize_target *t = &r->target;
    const struct wml_json_val *facts = facts_of(r);
    struct wml_buf line = {0};
    if (!r->args->has_target) {
        wml_item_null(root, "target", NULL);
        return;
    }
    struct wml_item *target = wml_item_object(root, "target", NULL);
    struct wml_str ep = ep_of(r), device = wml_json_get_str(facts, "device");
    wml_item_str(target, "ep", NULL, ep);
    wml_item_str(target, "device", NULL, device.ptr ? device : wml_str(r->args->target.device));
    wml_item_bool(target, "simulated", NULL, wml_json_get_bool(facts, "simulated", false));
    wml_item_str(target, "ep_version", NULL, wml_json_get_str(facts, "ep_version"));
    wml_item_cstr(target, "rules", NULL, wml_quantize_rules(r));
    wml_item_cstr(target, "status", NULL, t->status ? t->status : "not asked");
    wml_item_cstr(target, "reason", NULL, t->note);
    wml_quantize_target_line(r, &line);
    wml_item_str(root, NULL, "Target", wml_buf_view(&line));
    if (t->status && (!is_counted(t) || t->elsewhere > t->boundary)) wml_item_tone(root, WML_TONE_WARN);
    if (t->note) wml_item_line(root, WML_TONE_WARN, "Warning: %s", t->note);
    line.len = 0;
    wml_quantize_left_line(r, &line);
    if (line.len) wml_item_str(root, NULL, "Left float", wml_buf_view(&line));
    wml_buf_release(&line);
    if (is_counted(t)) {
        put_counts(target, t);
        put_elsewhere(root, r, ep);
    }
    wml_item_bool(target, "refuses_most", NULL, t->refuses_most);
    put_nodes(target, "left_in_float", t->left.at, t->left.len);
}
