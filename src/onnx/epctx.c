/* onnx/epctx.c - EPContext nodes, and the files a model needs beside it. Only the existence and size of
 * files are looked at; a path that leaves the folder is never followed. */
#include "onnx/epctx.h"

#include "base/map.h"
#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

void wml_epctx_list_release(struct wml_epctx_list *l)
{
    WML_VEC_RELEASE(&l->v);
    *l = (struct wml_epctx_list){0};
}

static bool is_context(const struct wml_node *n)
{
    return wml_node_is_in(n, "com.microsoft", "EPContext");
}

static void locate(const struct wml_model *m, struct wml_epctx *e)
{
    struct wml_buf path = {0};
    if (!wml_path_is_inside(e->file)) {
        e->state = WML_EPCTX_ESCAPES;
        return;
    }
    wml_path_join(&path, m->store->folder, e->file);
    struct wml_file_info info = wml_file_info(wml_buf_text(&path));
    bool there = info.kind == WML_FILE_REGULAR && info.size > 0;
    e->bytes = there ? info.size : 0;
    e->state = there ? WML_EPCTX_BESIDE : WML_EPCTX_MISSING;
    wml_buf_release(&path);
}

static bool find(void *arg, struct wml_node *n)
{
    struct wml_epctx_list *l = arg;
    if (!is_context(n)) {
        l->other_nodes++;
        return true;
    }
    struct wml_str context = wml_attr_str(n, "ep_cache_context", WML_NO_STR);
    struct wml_epctx e = {.node = n,
                          .source = wml_attr_str(n, "source", WML_NO_STR),
                          .partition = wml_attr_str(n, "partition_name", WML_NO_STR),
                          .sdk_version = wml_attr_str(n, "ep_sdk_version", WML_NO_STR),
                          .hardware = wml_attr_str(n, "hardware_architecture", WML_NO_STR),
                          .notes = wml_attr_str(n, "notes", WML_NO_STR),
                          .max_size = wml_attr_int(n, "max_size", 0),
                          .main = wml_attr_int(n, "main_context", 1) != 0,
                          .embedded = wml_attr_int(n, "embed_mode", 1) != 0};
    if (!context.len) e.state = e.main ? WML_EPCTX_INCOMPLETE : WML_EPCTX_SECONDARY;
    else if (e.embedded) {
        e.state = WML_EPCTX_EMBEDDED;
        e.bytes = context.len;
    } else {
        e.file = context;
        locate(n->graph->model, &e);
    }
    WML_PUSH(&l->v, e);
    return true;
}

void wml_epctx_find(struct wml_model *m, struct wml_epctx_list *out)
{
    *out = (struct wml_epctx_list){0};
    wml_graph_walk(m->graph, find, out);
}

static bool none(void *arg, struct wml_node *n)
{
    (void)arg;
    return !is_context(n);
}

bool wml_model_has_epctx(const struct wml_model *m)
{
    return !wml_graph_walk(m->graph, none, NULL);
}

bool wml_epctx_check(const struct wml_epctx_list *l, struct wml_err *err)
{
    for (size_t i = 0; i < l->v.len; i++) {
        const struct wml_epctx *e = &l->v.at[i];
        const char *label = wml_node_label(e->node);
        if (e->state == WML_EPCTX_MISSING) {
            struct wml_buf path = {0};
            wml_path_join(&path, e->node->graph->model->store->folder, e->file);
            wml_fail(err, WML_E_NOT_FOUND, "%s: its context binary '%s' is not there", label, wml_buf_text(&path));
            wml_buf_release(&path);
            return wml_hint(err, "a compiled model and its context binary are two files: copy them together");
        }
        if (e->state == WML_EPCTX_INCOMPLETE) {
            wml_fail(err, WML_E_FORMAT, "%s: it holds no context (ep_cache_context is empty)", label);
            return wml_hint(err, "the compilation was not finished: compile the original model again");
        }
        if (e->state == WML_EPCTX_ESCAPES) {
            wml_fail(err, WML_E_FORMAT, "%s: its context path '%.*s' is absolute or leaves the model's folder: refused",
                     label, WML_ARG(e->file));
            return wml_hint(err, "put the context binary beside the model and name it by its file name");
        }
    }
    return true;
}

const char *wml_epctx_state_name(enum wml_epctx_state s)
{
    static const char *const name[] = {
        [WML_EPCTX_EMBEDDED] = "embedded", [WML_EPCTX_BESIDE] = "beside", [WML_EPCTX_SECONDARY] = "secondary",
        [WML_EPCTX_MISSING] = "missing", [WML_EPCTX_INCOMPLETE] = "incomplete", [WML_EPCTX_ESCAPES] = "escapes"};
    return name[s];
}

/* --- files --- */

struct gather {
    struct wml_model *m;
    struct wml_map seen;
    WML_VEC(struct wml_str) v;
};

static void add(struct gather *g, struct wml_str location)
{
    if (!location.len || wml_map_has(&g->seen, location)) return;
    wml_map_put(&g->seen, location, g);
    WML_PUSH_IN(&g->m->arena, &g->v, location);
}

static bool add_tensor(void *arg, struct wml_tensor *t)
{
    struct wml_err ignored = {0};
    if (t->payload == WML_PAYLOAD_EXTERNAL && wml_tensor_parse_external(t, &ignored)) add(arg, t->ext.location);
    return true;
}

static bool add_context(void *arg, struct wml_node *n)
{
    if (is_context(n) && wml_attr_int(n, "embed_mode", 1) == 0)
        add(arg, wml_attr_str(n, "ep_cache_context", WML_NO_STR));
    return true;
}

struct wml_onnx_files wml_onnx_files(struct wml_model *m)
{
    struct gather g = {.m = m};
    wml_model_each_tensor(m, add_tensor, &g);
    wml_graph_walk(m->graph, add_context, &g);
    wml_map_release(&g.seen);
    return (struct wml_onnx_files){g.v.at, g.v.len};
}
