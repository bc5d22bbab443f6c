/* The compile cache. The identity is the SHA-256 over everything that decides the result: the content of
 * the sources, the EP with version and library, the hardware as the EP names it, every option, the
 * embedding, the ORT version, and the names of the outputs, since context binaries carry them. An entry
 * is a folder that is renamed into place whole; the newest entries are kept. */
#include <inttypes.h>

#include "flow/compile_steps.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/map.h"
#include "os/path.h"
#include "text/json.h"

enum { CACHE_KEEP = 16 };

static bool hash_file(struct wml_sha256 *s, const char *path, struct wml_err *err)
{
    struct wml_map_file map = {0};
    if (!wml_map_open(path, &map, err)) return false;
    wml_map_will_read(&map, 0, map.bytes.len);
    wml_sha256_add(s, map.bytes.ptr, map.bytes.len);
    wml_map_close(&map);
    return true;
}

bool wml_compile_source_sha(const char *model, char hex[WML_SHA256_HEX], struct wml_err *err)
{
    struct wml_sha256 s;
    struct wml_model *m = NULL;
    if (!wml_onnx_load(model, &m, err)) return false;
    wml_sha256_init(&s);
    bool ok = hash_file(&s, model, err);
    struct wml_onnx_files files = wml_onnx_files(m);
    for (size_t i = 0; ok && i < files.len; i++) {
        struct wml_buf path = {0};
        wml_path_join(&path, wml_path_dir(wml_str(model)), files.location[i]);
        ok = hash_file(&s, wml_buf_text(&path), err);
        wml_buf_release(&path);
    }
    wml_sha256_hex(&s, hex);
    wml_model_free(m);
    return ok;
}

static void put_library(struct wml_json *j, struct wml_str path)
{
    struct wml_buf text = {0};
    wml_buf_str(&text, path);
    struct wml_file_info info = wml_file_info(wml_buf_text(&text));
    wml_json_key(j, "library_size");
    wml_json_put_uint(j, info.size);
    wml_json_key(j, "library_modified");
    wml_json_put_int(j, info.modified_ns);
    wml_buf_release(&text);
}

bool wml_compile_identify(struct wml_compile_run *r, struct wml_err *err)
{
    const struct wml_json_val *target = wml_json_get(wml_json_root(r->target), "target");
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text};
    struct wml_sha256 s;
    wml_note_progress(r->cx, "Hashing", r->unit[0].model, 0, 0, NULL);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "schema");
    wml_json_put_int(&j, 1);
    wml_json_key(&j, "target");
    wml_json_put_val(&j, target);
    put_library(&j, wml_json_get_str(target, "library"));
    wml_json_key(&j, "compiler");
    wml_json_put_cstr(&j, r->args->compiler);
    wml_json_key(&j, "embed");
    wml_json_put_bool(&j, r->args->embed);
    wml_json_key(&j, "models");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < r->n; i++) {
        if (!wml_compile_source_sha(r->unit[i].model, r->unit[i].source_sha, err)) {
            wml_buf_release(&text);
            return false;
        }
        wml_json_put_cstr(&j, r->unit[i].source_sha);
        wml_json_put_cstr(&j, r->unit[i].name);
    }
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
    wml_sha256_init(&s);
    wml_sha256_add(&s, text.ptr, text.len);
    wml_sha256_hex(&s, r->identity);
    wml_buf_release(&text);
    return true;
}

static void entry_path(const struct wml_compile_run *r, struct wml_buf *root, struct wml_buf *entry)
{
    char name[17];
    snprintf(name, sizeof name, "%.16s", r->identity);
    wml_path_join(root, wml_str(r->cx->cache_dir), WML_STR("compiled"));
    wml_path_join(entry, wml_buf_view(root), wml_str(name));
}

static bool copy_dir(const char *from, const char *to, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    bool ok = wml_dir_list(from, &list, err);
    for (size_t i = 0; ok && i < list.v.len; i++) {
        struct wml_buf a = {0}, b = {0};
        wml_path_join(&a, wml_str(from), list.v.at[i].name);
        wml_path_join(&b, wml_str(to), list.v.at[i].name);
        if (!list.v.at[i].is_dir) ok = wml_file_copy(wml_buf_text(&a), wml_buf_text(&b), err);
        wml_buf_release(&a);
        wml_buf_release(&b);
    }
    wml_dir_list_release(&list);
    return ok;
}

bool wml_compile_cache_get(struct wml_compile_run *r, struct wml_err *err)
{
    struct wml_buf root = {0}, entry = {0}, path = {0}, stage = {0};
    bool ok = false;
    if (!r->cx->cache_dir) return false;
    entry_path(r, &root, &entry);
    if (!wml_dir_exists(wml_buf_text(&entry))) goto done;
    if (!wml_dir_temp(r->dir, ".winml-compile-", &stage, err)) goto done;
    if (!wml_path_absolute(&path, wml_buf_view(&stage), err)) goto done;
    r->stage = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    if (!copy_dir(wml_buf_text(&entry), r->stage, err)) goto done;
    ok = true;
    for (size_t i = 0; i < r->n; i++) {
        wml_buf_clear(&path);
        wml_path_join(&path, wml_str(r->stage), wml_str(r->unit[i].name));
        r->unit[i].staged = wml_arena_cstr(&r->arena, wml_buf_view(&path));
        ok = ok && wml_file_exists(r->unit[i].staged);
    }
done:
    if (!ok && r->stage) {
        wml_dir_remove(r->stage);
        r->stage = NULL;
    }
    wml_buf_release(&root);
    wml_buf_release(&entry);
    wml_buf_release(&path);
    wml_buf_release(&stage);
    return ok;
}

/* Oldest entries go first. */
static void prune(const char *root)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    if (!wml_dir_list(root, &list, &ignored)) return;
    for (size_t left = list.v.len; left > CACHE_KEEP; left--) {
        struct wml_buf oldest = {0};
        int64_t when = INT64_MAX;
        for (size_t i = 0; i < list.v.len; i++) {
            struct wml_buf path = {0};
            wml_path_join(&path, wml_str(root), list.v.at[i].name);
            struct wml_file_info info = wml_file_info(wml_buf_text(&path));
            if (info.kind == WML_FILE_DIR && info.modified_ns < when) {
                when = info.modified_ns;
                wml_buf_clear(&oldest);
                wml_buf_str(&oldest, wml_buf_view(&path));
            }
            wml_buf_release(&path);
        }
        if (oldest.len) wml_dir_remove(wml_buf_text(&oldest));
        wml_buf_release(&oldest);
    }
    wml_dir_list_release(&list);
}

void wml_compile_cache_put(struct wml_compile_run *r)
{
    struct wml_buf root = {0}, entry = {0}, temp = {0};
    struct wml_err err = {0};
    if (!r->cx->cache_dir) return;
    entry_path(r, &root, &entry);
    bool ok = wml_dir_make(wml_buf_text(&root), &err) && wml_dir_temp(wml_buf_text(&root), ".new-", &temp, &err) &&
              copy_dir(r->stage, wml_buf_text(&temp), &err) &&
              (!wml_dir_exists(wml_buf_text(&entry)) || wml_dir_remove(wml_buf_text(&entry))) &&
              wml_file_rename(wml_buf_text(&temp), wml_buf_text(&entry), &err);
    if (!ok && temp.len) wml_dir_remove(wml_buf_text(&temp));
    if (!ok) wml_log(r->cx, WML_LOG_DEBUG, "the compiled model was not put into the cache: %s", err.msg);
    else prune(wml_buf_text(&root));
    wml_buf_release(&root);
    wml_buf_release(&entry);
    wml_buf_release(&temp);
}
