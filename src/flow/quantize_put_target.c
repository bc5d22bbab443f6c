/* The target in the report of `quantize`: how many nodes it takes, and what stays float for its sake. */
#include "flow/quantize_internal.h"

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

static void put_count(struct wml_item *root, const struct wml_quantize_run *r, struct wml_str ep, bool simulated)
{
    const struct wml_quantize_target *t = &r->target;
    int64_t all = t->on + t->elsewhere - t->boundary;
    struct wml_buf names = {0};
    wml_item_fmt(root, NULL, "Target", "%" PRId64 " of %" PRId64 " nodes on %.*s%s%s", t->on, all, WML_ARG(ep),
                 t->boundary ? " (boundary Q/DQ apart)" : "", simulated ? ", simulated here" : "");
    if (t->on < all) wml_item_tone(root, WML_TONE_WARN);
    put_names(&names, t->left.at, t->left.len, NULL);
    if (t->left.len)
        wml_item_fmt(root, NULL, "Left float", "%zu node%s refused as integers: %s", t->left.len, t->left.len > 1 ? "s" : "", wml_buf_text(&names));
    names.len = 0;
    size_t n = put_names(&names, t->other.at, t->other.len, &t->left);
    if (n) wml_item_fmt(root, NULL, "On others", "%s", wml_buf_text(&names));
    if ((t->refuses_most || !t->on) && has_open_sizes(r->model->graph))
        wml_item_line(root, WML_TONE_WARN, "Warning: inputs have open sizes, of which %.*s takes little: fix them with "
                      "winml optimize --input-shape or --input-dim first", WML_ARG(ep));
    else if (t->refuses_most)
        wml_item_line(root, WML_TONE_WARN, "Warning: %.*s refuses more than half of the nodes: none was left float for it", WML_ARG(ep));
    wml_buf_release(&names);
}

static void put_unasked(struct wml_item *root, const struct wml_quantize_run *r, struct wml_str ep)
{
    const struct wml_quantize_target *t = &r->target;
    bool has_rules = wml_quantize_rules(r) != NULL;
    const char *what = has_rules ? "rules applied without asking" : "not asked what it takes";
    if (!t->status) wml_item_fmt(root, NULL, "Target", "%.*s: %s", WML_ARG(ep), what);
    else if (strcmp(t->status, "not asked") == 0) wml_item_fmt(root, NULL, "Target", "%.*s: %s: EP not on this machine", WML_ARG(ep), what);
    else if (strcmp(t->status, "failed") == 0) wml_item_fmt(root, NULL, "Target", "%.*s does not load the result", WML_ARG(ep));
    else wml_item_fmt(root, NULL, "Target", "%.*s loads the result; this ONNX Runtime does not tell which nodes it takes", WML_ARG(ep));
    if (t->status) wml_item_tone(root, WML_TONE_WARN);
    if (t->note) wml_item_line(root, WML_TONE_WARN, "Warning: %s", t->note);
}

void wml_quantize_put_target(const struct wml_quantize_run *r, struct wml_item *root)
{
    const struct wml_quantize_target *t = &r->target;
    const struct wml_json_val *reply = t->reply ? wml_json_root(t->reply) : NULL, *facts = wml_json_get(reply, "target");
    if (!r->args->has_target) {
        wml_item_null(root, "target", NULL);
        return;
    }
    struct wml_item *target = wml_item_object(root, "target", NULL);
    struct wml_str ep = wml_json_get_str(facts, "ep"), device = wml_json_get_str(facts, "device");
    bool simulated = wml_json_get_bool(facts, "simulated", false), known = t->status && t->on >= 0;
    if (!ep.ptr) ep = wml_str(r->ep_row ? r->ep_row->name : r->args->target.ep);
    wml_item_str(target, "ep", NULL, ep);
    if (!ep.ptr) ep = WML_STR("the device's EP");
    wml_item_str(target, "device", NULL, device.ptr ? device : wml_str(r->args->target.device));
    wml_item_bool(target, "simulated", NULL, simulated);
    wml_item_str(target, "ep_version", NULL, wml_json_get_str(facts, "ep_version"));
    wml_item_cstr(target, "rules", NULL, wml_quantize_rules(r));
    wml_item_cstr(target, "status", NULL, t->status ? t->status : "not asked");
    wml_item_cstr(target, "reason", NULL, t->note);
    if (known) {
        wml_item_int(target, "nodes", NULL, t->on + t->elsewhere - t->boundary, WML_SHOW_PLAIN);
        wml_item_int(target, "nodes_on_target", NULL, t->on, WML_SHOW_PLAIN);
        wml_item_int(target, "boundary_qdq", NULL, t->boundary, WML_SHOW_PLAIN);
        wml_item_json(target, "placement", wml_json_get(reply, "placement"));
        put_nodes(target, "elsewhere", t->other.at, t->other.len);
        put_count(root, r, ep, simulated);
        if (t->note) wml_item_line(root, WML_TONE_WARN, "Warning: %s", t->note);
    } else {
        put_unasked(root, r, ep);
    }
    wml_item_bool(target, "refuses_most", NULL, t->refuses_most);
    put_nodes(target, "left_in_float", t->left.at, t->left.len);
}
