/* Whether a compiled stage is still what would be made of its source: the meta file beside it tells what it was made of. */
#include <ctype.h>

#include "flow/compile_steps.h"
#include "flow/genai/compile.h"
#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"

const char *wml_genai_artifact(struct wml_genai_run *r, size_t stage, const struct wml_bundle_provider *p)
{
    const char *ep = p->ep && p->ep->provider_token ? p->ep->provider_token : "ep", *name = r->bundle.stage[stage].name;
    bool plain = *name != 0;
    for (const char *c = name; *c; c++) plain = plain && (isalnum((unsigned char)*c) || *c == '_' || *c == '-');
    for (size_t i = 0; i < r->bundle.n_stages; i++) plain = plain && (i == stage || strcmp(r->bundle.stage[i].name, name) != 0);
    if (!plain) return wml_arena_fmt(&r->arena, "stage%zu_%s_ctx.onnx", stage, ep).ptr;
    return wml_arena_fmt(&r->arena, "%s_%s_ctx.onnx", name, ep).ptr;
}

void wml_genai_make_key(struct wml_genai_run *r, struct wml_genai_group *g)
{
    const struct wml_json_val *target = wml_genai_target_of(r, g->provider->ep);
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text};
    struct wml_file_info library = wml_file_info(wml_arena_cstr(&r->arena, wml_json_get_str(target, "library")));
    wml_json_begin(&j, '{');
    wml_json_key(&j, "target");
    wml_json_put_val(&j, target);
    wml_json_key(&j, "library_size");
    wml_json_put_uint(&j, library.size);
    wml_json_key(&j, "library_modified");
    wml_json_put_int(&j, library.modified_ns);
    wml_json_key(&j, "provider_options");
    wml_json_put_pairs(&j, g->provider->option, g->provider->n_options);
    wml_json_key(&j, "stages");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < g->n; i++) wml_json_put_cstr(&j, r->bundle.stage[g->stage[i]].name);
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
    g->key = wml_arena_cstr(&r->arena, wml_buf_view(&text));
    wml_buf_release(&text);
}

const char *wml_genai_meta_path(struct wml_genai_run *r, const char *dir, const char *artifact)
{
    return wml_path_in(&r->arena, dir, wml_arena_fmt(&r->arena, "%s.meta.json", artifact).ptr);
}

/* The files that a model refers to, itself first. false: it cannot be read, or a compiled part of it is not whole. */
struct files { WML_VEC(const char *) v; };
static bool list_files(struct wml_genai_run *r, const char *dir, const char *name, bool compiled, struct files *out)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    struct wml_err ignored = {0};
    if (!wml_onnx_load(wml_path_in(&r->arena, dir, name), &m, &ignored)) return false;
    wml_epctx_find(m, &contexts);
    bool ok = !compiled || (contexts.v.len > 0 && wml_epctx_check(&contexts, &ignored));
    struct wml_onnx_files files = wml_onnx_files(m);
    WML_PUSH_IN(&r->arena, &out->v, name);
    for (size_t i = 0; i < files.len; i++) {
        const char *file = wml_arena_cstr(&r->arena, files.location[i]);
        ok = ok && wml_path_is_inside(wml_str(file));
        WML_PUSH_IN(&r->arena, &out->v, file);
    }
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    return ok;
}

static void put_files(struct wml_genai_run *r, struct wml_json *j, const char *key, const char *dir, const struct files *f)
{
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < f->v.len; i++) {
        struct wml_file_info info = wml_file_info(wml_path_in(&r->arena, dir, f->v.at[i]));
        wml_json_begin(j, '{');
        wml_json_key(j, "name");
        wml_json_put_cstr(j, f->v.at[i]);
        wml_json_key(j, "size");
        wml_json_put_uint(j, info.size);
        wml_json_key(j, "modified_ns");
        wml_json_put_int(j, info.modified_ns);
        wml_json_end(j, '}');
    }
    wml_json_end(j, ']');
}

bool wml_genai_write_meta(struct wml_genai_run *r, const struct wml_genai_group *g, size_t stage, const char *sha, const char *dir, struct wml_err *err)
{
    const char *artifact = wml_genai_artifact(r, stage, g->provider), *source = r->bundle.stage[stage].source;
    struct files made = {0}, from = {0};
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text, .indent = 2};
    if (!list_files(r, dir, artifact, true, &made) || !list_files(r, r->dir, source, false, &from))
        return wml_fail(err, WML_E_FORMAT, "%s cannot be read again", artifact);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "ep");
    wml_json_put_cstr(&j, g->provider->name);
    wml_json_key(&j, "provider_options");
    wml_json_put_pairs(&j, g->provider->option, g->provider->n_options);
    wml_json_key(&j, "key");
    wml_json_put_raw(&j, wml_str(g->key));
    wml_json_key(&j, "source_sha256");
    wml_json_put_cstr(&j, sha);
    put_files(r, &j, "source_files", r->dir, &from);
    put_files(r, &j, "artifacts", dir, &made);
    wml_json_end(&j, '}');
    wml_buf_char(&text, '\n');
    bool ok = wml_file_write(wml_genai_meta_path(r, dir, artifact), wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}

/* Sizes, and with `times` the moments of their last change. */
static bool same_files(struct wml_genai_run *r, const struct wml_json_val *list, const char *dir, bool times)
{
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *v = wml_json_at(list, i);
        const char *name = wml_arena_cstr(&r->arena, wml_json_get_str(v, "name"));
        if (!*name || !wml_path_is_inside(wml_str(name))) return false;
        struct wml_file_info info = wml_file_info(wml_path_in(&r->arena, dir, name));
        if (info.kind != WML_FILE_REGULAR || (int64_t)info.size != wml_json_get_int(v, "size", -1)) return false;
        if (times && info.modified_ns != wml_json_get_int(v, "modified_ns", -1)) return false;
    }
    return wml_json_len(list) > 0;
}

static bool same_key(const struct wml_json_val *old, const char *key)
{
    struct wml_json_doc *doc = NULL;
    struct wml_buf a = {0}, b = {0};
    struct wml_err ignored = {0};
    if (!wml_json_parse(wml_str(key), &doc, &ignored)) return false;
    wml_json_print(old, &a);
    wml_json_print(wml_json_root(doc), &b);
    bool same = wml_str_eq(wml_buf_view(&a), wml_buf_view(&b));
    wml_json_free(doc);
    wml_buf_release(&a);
    wml_buf_release(&b);
    return same;
}

/* A source that was only touched, or copied, is the same when its bytes are. */
static bool same_source(struct wml_genai_run *r, const struct wml_json_val *meta, const char *source)
{
    char sha[WML_SHA256_HEX];
    struct wml_err ignored = {0};
    if (same_files(r, wml_json_get(meta, "source_files"), r->dir, true)) return true;
    return wml_compile_source_sha(wml_path_in(&r->arena, r->dir, source), sha, &ignored) && wml_str_is(wml_json_get_str(meta, "source_sha256"), sha);
}

bool wml_genai_is_fresh(struct wml_genai_run *r, const struct wml_genai_group *g, const char *dir)
{
    bool fresh = true;
    for (size_t i = 0; fresh && i < g->n; i++) {
        const char *artifact = wml_genai_artifact(r, g->stage[i], g->provider);
        struct wml_json_doc *doc = NULL;
        struct files made = {0};
        struct wml_err ignored = {0};
        fresh = wml_json_load(wml_genai_meta_path(r, dir, artifact), &doc, &ignored);
        const struct wml_json_val *meta = wml_json_root(doc);
        fresh = fresh && same_key(wml_json_get(meta, "key"), g->key) && same_files(r, wml_json_get(meta, "artifacts"), dir, false) &&
                same_source(r, meta, r->bundle.stage[g->stage[i]].source) && list_files(r, dir, artifact, true, &made);
        wml_json_free(doc);
    }
    return fresh;
}

bool wml_genai_copy_stage(struct wml_genai_run *r, const struct wml_genai_group *g, size_t stage, const char *from, const char *to,
                          struct wml_err *err)
{
    const char *artifact = wml_genai_artifact(r, stage, g->provider);
    struct files f = {0};
    bool ok = list_files(r, from, artifact, true, &f) || wml_fail(err, WML_E_FORMAT, "%s cannot be read again", artifact);
    for (size_t i = 0; ok && i < f.v.len; i++)
        if (!wml_file_exists(wml_path_in(&r->arena, to, f.v.at[i])))
            ok = wml_file_copy(wml_path_in(&r->arena, from, f.v.at[i]), wml_path_in(&r->arena, to, f.v.at[i]), err);
    return ok && wml_file_copy(wml_genai_meta_path(r, from, artifact), wml_genai_meta_path(r, to, artifact), err);
}
