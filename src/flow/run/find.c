/* Which file, which task, which tokenizer. */
#include "flow/run/internal.h"

#include "graph/type.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

static bool no_model(const char *path, struct wml_err *err)
{
    struct wml_arena arena = {0};
    if (wml_dir_exists(path)) {
        bool bundle = wml_file_exists(wml_path_in(&arena, path, "genai_config.json"));
        wml_fail(err, bundle ? WML_E_UNSUPPORTED : WML_E_NOT_FOUND, bundle ? "%s is a GenAI bundle" : "no model.onnx in %s", path);
        if (bundle) wml_hint(err, "winml generate -m %s", path);
        else if (wml_file_exists(wml_path_in(&arena, path, "config.json"))) wml_hint(err, "export it first: winml export -m %s -o model.onnx", path);
        else wml_hint(err, "name the .onnx file");
    } else {
        wml_fail(err, WML_E_NOT_FOUND, "no model at %s", path);
        wml_hint(err, "a file or a folder is wanted; a model id is exported first: winml export -m ID -o model.onnx");
    }
    wml_arena_release(&arena);
    return false;
}

/* model.onnx, or the folder's only .onnx file; NULL: neither. */
static const char *file_in(struct wml_arena *arena, const char *folder)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    const char *path = wml_path_in(arena, folder, "model.onnx"), *only = NULL;
    size_t n = 0;
    if (wml_file_exists(path)) return path;
    if (!wml_dir_list(folder, &list, &ignored)) return NULL;
    for (size_t i = 0; i < list.v.len; i++) {
        if (list.v.at[i].is_dir || !wml_str_ends(list.v.at[i].name, ".onnx")) continue;
        n++;
        only = wml_path_in(arena, folder, wml_arena_cstr(arena, list.v.at[i].name));
    }
    wml_dir_list_release(&list);
    return n == 1 ? only : NULL;
}

static const char *task_of_build(struct wml_arena *arena, const char *folder)
{
    struct wml_json_doc *doc = NULL;
    struct wml_err ignored = {0};
    const char *task = NULL;
    if (!wml_json_load(wml_path_in(arena, folder, "build_manifest.json"), &doc, &ignored)) return NULL;
    struct wml_str s = wml_json_get_str(wml_json_root(doc), "task");
    if (s.len) task = wml_arena_cstr(arena, s);
    wml_json_free(doc);
    return task;
}

static void read_inputs(struct wml_run_call *c)
{
    const struct wml_graph *g = c->model->graph;
    struct wml_task_input *in = WML_NEW_ARRAY(&c->arena, struct wml_task_input, g->inputs.len + 1);
    struct wml_task_field *f = WML_NEW_ARRAY(&c->arena, struct wml_task_field, g->inputs.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->inputs.len; i++) {
        const struct wml_value *v = g->inputs.at[i];
        int64_t rank = wml_value_rank(v);
        if (v->init) continue; /* a weight, or a default */
        int64_t *dim = WML_NEW_ARRAY(&c->arena, int64_t, (size_t)(rank > 0 ? rank : 0) + 1);
        struct wml_buf about = {0};
        wml_type_text(v->type, &about);
        for (int64_t k = 0; k < rank; k++) dim[k] = wml_value_axis(v, (size_t)k).size;
        in[n] = (struct wml_task_input){v->name, wml_value_elem(v), dim, rank > 0 ? (size_t)rank : 0};
        f[n++] = (struct wml_task_field){wml_arena_cstr(&c->arena, v->name), WML_FIELD_JSON, false, wml_arena_cstr(&c->arena, wml_buf_view(&about))};
        wml_buf_release(&about);
    }
    c->work.input = in;
    c->work.n_inputs = n;
    if (c->task == &wml_task_tensors) {
        c->field = f;
        return;
    }
    size_t n_fields = 0;
    while (c->task->field[n_fields].name) n_fields++;
    c->field = WML_NEW_ARRAY(&c->arena, struct wml_task_field, n_fields + 1);
    memcpy(c->field, c->task->field, n_fields * sizeof *c->field);
}

bool wml_run_find(struct wml_run_call *c, struct wml_err *err)
{
    const char *task = c->args->task, *given = c->args->model;
    bool folder = wml_dir_exists(given);
    c->path = folder ? file_in(&c->arena, given) : wml_file_exists(given) ? given : NULL;
    if (folder && !task) task = task_of_build(&c->arena, given);
    c->task = task ? wml_task_find(task, err) : &wml_task_tensors;
    if (!c->task) return false;
    if (!c->path) return no_model(given, err);
    if (!wml_onnx_load(c->path, &c->model, err)) {
        err->code = WML_E_LOAD;
        return false;
    }
    read_inputs(c);
    return true;
}
