/* One run of the compiler in a child, into the private folder, and what is left when the child died: a
 * finished artifact is kept whatever happened after it, an unfinished one is never touched again. */
#include <inttypes.h>

#include "flow/compile_steps.h"
#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"
#include "worker/target.h"

static bool make_stage(struct wml_compile_run *r, struct wml_err *err)
{
    struct wml_buf path = {0}, full = {0};
    bool ok = wml_dir_temp(r->dir, ".winml-compile-", &path, err) &&
              wml_path_absolute(&full, wml_buf_view(&path), err);
    if (path.len) r->stage = wml_arena_cstr(&r->arena, wml_buf_view(ok ? &full : &path));
    for (size_t i = 0; ok && i < r->n; i++) {
        wml_buf_clear(&path);
        wml_path_join(&path, wml_str(r->stage), wml_str(r->unit[i].name));
        r->unit[i].staged = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    }
    wml_buf_release(&path);
    wml_buf_release(&full);
    return ok;
}

static void write_request(const struct wml_compile_run *r, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    struct wml_target_spec spec = r->args->target;
    spec.for_compile = true;
    wml_json_begin(&j, '{');
    wml_target_spec_put(&j, &spec);
    wml_json_key(&j, "embed");
    wml_json_put_bool(&j, r->args->embed);
    wml_json_key(&j, "session");
    wml_json_put_bool(&j, strcmp(r->args->compiler, "ort_session") == 0);
    wml_json_key(&j, "models");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < r->n; i++) {
        wml_json_begin(&j, '{');
        wml_json_key(&j, "model");
        wml_json_put_path(&j, r->unit[i].model);
        wml_json_key(&j, "output");
        wml_json_put_path(&j, r->unit[i].staged);
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
}

/* The staged model is whole: it parses, holds compiled parts, and every part has its context. Then the
 * place of the source is written into its metadata, so that later commands find names and types. */
static bool finish_unit(struct wml_compile_run *r, struct wml_compile_unit *u, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    struct wml_buf source = {0}, dir = {0}, relative = {0};
    struct wml_onnx_save_opts keep = {.external = WML_EXTERNAL_KEEP};
    bool ok = wml_onnx_load(u->staged, &m, err);
    if (!ok) goto done;
    wml_epctx_find(m, &contexts);
    if (!contexts.v.len) {
        ok = wml_fail(err, WML_E_RUNTIME, "the compiler wrote %s without a compiled part: no node of the model was "
                      "taken by the EP", u->name);
        goto done;
    }
    ok = wml_epctx_check(&contexts, err) && wml_path_absolute(&source, wml_str(u->model), err) &&
         wml_path_absolute(&dir, wml_str(r->dir), err);
    if (!ok) goto done;
    wml_path_relative(&relative, wml_buf_view(&source), wml_buf_view(&dir));
    wml_entries_set(m, &m->metadata, "winml.source_model", wml_buf_view(&relative));
    wml_entries_set(m, &m->metadata, "winml.source_sha256", wml_str(u->source_sha));
    ok = wml_onnx_save(m, u->staged, &keep, NULL, err);
done:
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    wml_buf_release(&source);
    wml_buf_release(&dir);
    wml_buf_release(&relative);
    return ok;
}

bool wml_compile_finish(struct wml_compile_run *r, struct wml_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        if (!wml_file_exists(r->unit[i].staged))
            return wml_fail(err, WML_E_RUNTIME, "the compiler wrote no model for %s", r->unit[i].model);
        if (!finish_unit(r, &r->unit[i], err)) return false;
    }
    return true;
}

bool wml_compile_stage(struct wml_compile_run *r, struct wml_err *err)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply = {0};
    struct wml_err child = {0}, unfinished = {0};
    bool ok = false;
    if (!make_stage(r, err)) goto done;
    write_request(r, &request);
    wml_note_progress(r->cx, "Compiling", r->unit[0].name, 0, 0, NULL);
    struct wml_worker_call call = {.job = "compile", .request = wml_buf_view(&request), .dir = r->stage,
                                   .timeout_ms = r->args->timeout_ms, .in_process = !r->args->isolate};
    bool told = wml_worker_call(r->cx, &call, &reply, &child);
    snprintf(r->ended, sizeof r->ended, "%s", reply.name);
    if (child.code == WML_E_CANCELLED || (r->of_bundle && child.code == WML_E_TIMEOUT)) {
        *err = child;
        goto done;
    }
    /* A reply that says "failed" is the compiler's own word: what it left is not looked at. */
    bool died = !told && reply.end != WML_CHILD_OK && !reply.json;
    if (!told && !died) {
        *err = child;
        wml_wrap(err, "compile %s", r->unit[0].model);
        goto done;
    }
    if (!wml_compile_finish(r, &unfinished)) {
        *err = told ? unfinished : child;
        wml_wrap(err, "compile %s", r->unit[0].model);
        goto done;
    }
    if (died || reply.salvaged) {
        struct wml_str how = wml_arena_fmt(&r->arena, "the compiler's process %s; its finished result was kept",
                                           reply.ended);
        r->salvaged = how.ptr;
        WML_PUSH(&r->warning, how.ptr);
        if (!r->of_bundle) wml_log(r->cx, WML_LOG_WARN, "%s", how.ptr);
    }
    const struct wml_json_val *ms = wml_json_get(wml_json_root(reply.json), "compile_ms");
    for (size_t i = 0; i < r->n; i++)
        r->unit[i].compile_ms = told ? wml_json_num(wml_json_at(ms, i), 0) : reply.wall_ms;
    ok = true;
done:
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
}
