/* flow/checkpoint.c - see checkpoint.h. */
#include "flow/checkpoint.h"

#include "graph/store.h"
#include "os/file.h"
#include "os/path.h"

/* What can only be a path: "./x", "../x", "~/x", "C:\x", "a/b/c". */
static bool is_path(struct wml_str s)
{
    size_t slashes = 0;
    for (size_t i = 0; i < s.len; i++) {
        slashes += s.ptr[i] == '/';
        if (s.ptr[i] == '\\') return true;
    }
    return slashes > 1 || wml_path_is_absolute(s) || wml_str_starts(s, "./") || wml_str_starts(s, "../") || wml_str_starts(s, "~/") ||
           (s.len > 1 && s.ptr[1] == ':');
}

enum wml_model_ref wml_model_ref(const char *text, struct wml_err *err)
{
    const struct wml_str s = wml_str(text);
    const struct wml_file_info info = wml_file_info(text);
    const bool onnx = wml_str_ends(s, ".onnx");
    if (!wml_str_trim(s).len) {
        wml_fail(err, WML_E_USAGE, "Model input cannot be empty.");
        return WML_REF_INVALID;
    }
    if (info.kind == WML_FILE_DIR) return WML_REF_FOLDER;
    if (onnx) return WML_REF_ONNX;
    if (info.kind != WML_FILE_NONE) wml_fail(err, WML_E_USAGE, "Unsupported model file: '%s'. Only .onnx files are supported.", text);
    else if (is_path(s)) wml_fail(err, WML_E_USAGE, "Model path does not exist: %s", text);
    else if (wml_hub_is_id(s)) return WML_REF_ID;
    else wml_fail(err, WML_E_USAGE, "'%s' is not a valid HuggingFace model identifier (expected 'name' or 'org/name').", text);
    wml_hint(err, "give the folder of a Hugging Face model (config.json and weights) or its id, org/name");
    return WML_REF_INVALID;
}

bool wml_checkpoint_folder(struct wml_ctx *cx, const char *text, const char *verb, enum wml_hub_what what, struct wml_buf *folder,
                           struct wml_err *err)
{
    const struct wml_hub_opts opts = {.what = what};
    switch (wml_model_ref(text, err)) {
    case WML_REF_FOLDER: wml_buf_cstr(folder, text); return true;
    case WML_REF_ID: return wml_hub_fetch(cx, text, &opts, folder, err);
    case WML_REF_ONNX:
        wml_fail(err, WML_E_USAGE, "%s needs a Hugging Face folder or model id, not an ONNX file: %s", verb, text);
        return wml_hint(err, "`winml inspect -m %s` shows what is in it", text);
    case WML_REF_INVALID: break;
    }
    return false;
}

const char *wml_model_slug(const char *name, struct wml_arena *arena)
{
    char *slug = wml_arena_cstr(arena, wml_str(name));
    for (char *c = slug; *c; c++)
        if (*c == '/' || *c == '\\') *c = '_';
    return slug;
}

const char *wml_model_artifacts(const struct wml_ctx *cx, const char *name, struct wml_arena *arena)
{
    return cx->cache_dir ? wml_arena_fmt(arena, "%s/artifacts/%s", cx->cache_dir, wml_model_slug(name, arena)).ptr : NULL;
}

/* ------------------------------------------------------------- what is in it */

static bool load_json(struct wml_checkpoint *c, const char *name, bool required, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_buf_view(&c->folder), wml_str(name));
    bool there = wml_file_exists(wml_buf_text(&path)), ok = !there || wml_json_load(wml_buf_text(&path), out, err);
    if (!there && required) {
        ok = wml_fail(err, WML_E_NOT_FOUND, "%s has no %s", c->name, name);
        wml_hint(err, "give the folder of a Hugging Face model: config.json and *.safetensors");
    }
    wml_buf_release(&path);
    return ok;
}

bool wml_checkpoint_open(struct wml_ctx *cx, const char *text, const char *verb, struct wml_checkpoint *out, struct wml_err *err)
{
    out->name = text;
    return wml_checkpoint_folder(cx, text, verb, WML_HUB_MODEL, &out->folder, err) && load_json(out, "config.json", true, &out->config, err) &&
           load_json(out, "preprocessor_config.json", false, &out->preprocessor, err);
}

bool wml_checkpoint_weights(struct wml_checkpoint *c, struct wml_err *err)
{
    return c->weights || wml_weights_open(wml_buf_text(&c->folder), &c->weights, err);
}

static void close_weights(void *handle)
{
    wml_weights_close(handle);
}

void wml_checkpoint_lend(const struct wml_checkpoint *c, struct wml_model *m)
{
    for (size_t i = 0; i < wml_weights_n_files(c->weights); i++) {
        const struct wml_weights_file *f = wml_weights_file(c->weights, i);
        wml_model_add_source(m, &(struct wml_source){.path = f->path, .bytes = f->map.bytes, .file = f->map.file,
                                                     .handle = wml_weights_hold(c->weights), .close = close_weights, .drop = wml_map_drop});
    }
}

void wml_checkpoint_close(struct wml_checkpoint *c)
{
    wml_weights_close(c->weights);
    wml_json_free(c->config);
    wml_json_free(c->preprocessor);
    wml_buf_release(&c->folder);
    *c = (struct wml_checkpoint){0};
}
