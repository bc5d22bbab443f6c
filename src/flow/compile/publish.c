/* Moves what was staged to its final place. Context binaries go first and the model last, so a model under
 * its final name is always complete. Only files that a model refers to are moved, and the schematic that
 * detailed tracing needs; the rest of what a compiler drops goes away with the private folder. */
#include "base/map.h"
#include "flow/compile_steps.h"
#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

struct moves { /* every file once, models excluded */
    struct wml_arena arena;
    struct wml_map seen;
    WML_VEC(const char *) name; /* relative to the folder */
};

static void add(struct moves *mv, struct wml_str name)
{
    struct wml_str copy = wml_arena_str(&mv->arena, name);
    if (wml_map_has(&mv->seen, copy)) return;
    wml_map_put(&mv->seen, copy, mv);
    WML_PUSH(&mv->name, copy.ptr);
}

static bool collect(struct wml_compile_run *r, struct wml_compile_unit *u, struct moves *mv, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    if (!wml_onnx_load(u->staged, &m, err)) return false;
    wml_epctx_find(m, &contexts);
    u->bytes = wml_file_info(u->staged).size;
    struct wml_onnx_files files = wml_onnx_files(m);
    for (size_t i = 0; i < files.len; i++) {
        const char *name = wml_arena_cstr(&r->arena, files.location[i]);
        add(mv, wml_str(name));
        u->bytes += wml_file_info(wml_path_in(&r->arena, r->stage, name)).size;
        if (!u->sidecar) u->sidecar = wml_path_in(&r->arena, r->dir, name);
    }
    for (size_t i = 0; i < contexts.v.len; i++) {
        struct wml_str part = contexts.v.at[i].partition;
        struct wml_str schematic = wml_arena_fmt(&r->arena, "%.*s_schematic.bin", WML_ARG(part));
        if (part.len && wml_path_is_inside(part) && wml_file_exists(wml_path_in(&r->arena, r->stage, schematic.ptr)))
            add(mv, schematic);
    }
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    return true;
}

/* A file that is in the way and that is no older generation of this very output. */
static bool check_free(struct wml_compile_run *r, const char *name, struct wml_err *err)
{
    const char *target = wml_path_in(&r->arena, r->dir, name);
    if (r->args->overwrite || !wml_file_exists(target)) return true;
    wml_fail(err, WML_E_EXISTS, "Context binary '%s' already exists. Re-run with --overwrite to replace it.", target);
    return wml_hint(err, "or give another output name with -o, or put the context into the model with --embed");
}

bool wml_compile_publish(struct wml_compile_run *r, struct wml_err *err)
{
    struct moves mv = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < r->n; i++) ok = collect(r, &r->unit[i], &mv, err);
    for (size_t i = 0; ok && i < mv.name.len; i++) ok = check_free(r, mv.name.at[i], err);
    for (size_t i = 0; ok && i < mv.name.len; i++) {
        const char *to = wml_path_in(&r->arena, r->dir, mv.name.at[i]);
        struct wml_buf parent = {0};
        wml_buf_str(&parent, wml_path_dir(wml_str(to)));
        ok = wml_dir_make(wml_buf_text(&parent), err) &&
             wml_file_rename(wml_path_in(&r->arena, r->stage, mv.name.at[i]), to, err);
        wml_buf_release(&parent);
    }
    for (size_t i = 0; ok && i < r->n; i++) ok = wml_file_rename(r->unit[i].staged, r->unit[i].output, err);
    WML_VEC_RELEASE(&mv.name);
    wml_map_release(&mv.seen);
    wml_arena_release(&mv.arena);
    return ok;
}
