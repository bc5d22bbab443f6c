/* flow/build/manifest.c - manifest.json of a bundle: what was made of what, and how far a build came. */
#include "flow/build/internal.h"

#include "genai/bundle.h"
#include "os/file.h"
#include "os/path.h"

static const char manifest_name[] = "manifest.json";
enum { SCHEMA = 1, SMALL = 64 << 20 /* files that are hashed; of larger ones name, size and time stand for the content */ };

/* ----------------------------------------------------------------- identities */

static bool hash_file(const char *path, char hex[WML_SHA256_HEX], struct wml_err *err)
{
    struct wml_map_file map = {0};
    struct wml_sha256 s;
    if (!wml_map_open(path, &map, err)) return false;
    wml_sha256_init(&s);
    wml_sha256_add(&s, map.bytes.ptr, map.bytes.len);
    wml_sha256_hex(&s, hex);
    wml_map_close(&map);
    return true;
}

static void put_str(struct wml_json *w, const char *key, const char *v)
{
    wml_json_key(w, key);
    wml_json_put_cstr(w, v);
}

static bool put_file(struct wml_json *w, const char *name, const char *path, struct wml_err *err)
{
    const struct wml_file_info info = wml_file_info(path);
    char hex[WML_SHA256_HEX];
    if (info.size <= SMALL && !hash_file(path, hex, err)) return false;
    wml_json_begin(w, '{');
    put_str(w, "file", name);
    wml_json_key(w, "bytes");
    wml_json_put_uint(w, info.size);
    wml_json_key(w, "modified_ns");
    wml_json_put_int(w, info.modified_ns);
    if (info.size <= SMALL) put_str(w, "sha256", hex);
    wml_json_end(w, '}');
    return true;
}

/* Every file of the checkpoint's folder that can matter: what `build` reads by name, and all weights. */
static bool is_input(struct wml_str name)
{
    return wml_str_ends(name, ".json") || wml_str_ends(name, ".safetensors") || wml_str_ends(name, ".bin") || wml_str_ends(name, ".txt") ||
           wml_str_ends(name, ".jinja") || wml_str_ends(name, ".model");
}

static bool put_inputs(struct wml_build_run *r, struct wml_json *w, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    bool ok = wml_dir_list(wml_buf_text(&r->checkpoint.folder), &list, err);
    wml_json_begin(w, '[');
    for (size_t i = 0; ok && i < list.v.len; i++) {
        const char *name = wml_arena_cstr(&r->arena, list.v.at[i].name);
        if (!list.v.at[i].is_dir && is_input(list.v.at[i].name)) ok = put_file(w, name, wml_build_in(r, name), err);
    }
    wml_json_end(w, ']');
    wml_dir_list_release(&list);
    return ok;
}

static void put_target(const struct wml_build_run *r, struct wml_json *w)
{
    wml_json_key(w, "prefill_len");
    wml_json_put_int(w, r->window);
    put_str(w, "head_precision", r->head_auto ? "auto" : wml_build_head_name(r));
    wml_json_key(w, "samples");
    wml_json_put_int(w, r->precision->bits ? r->a->samples : 0);
    put_str(w, "text_file", r->precision->bits ? r->a->text_file : NULL);
    put_str(w, "ep", r->ep->alias[0]);
    wml_json_key(w, "ep_options");
    wml_json_put_pairs(w, r->a->target.option, r->a->target.n_options);
}

static void put_options(const struct wml_build_run *r, struct wml_json *w)
{
    wml_json_begin(w, '{');
    put_str(w, "export_type", r->staged ? "optimized" : "plain");
    put_str(w, "precision", r->precision->name);
    wml_json_key(w, "max_cache_len");
    wml_json_put_int(w, r->context);
    wml_json_key(w, "block_size");
    wml_json_put_int(w, r->precision->bits ? r->a->block_size : 0);
    if (r->staged) put_target(r, w);
    wml_json_end(w, '}');
}

static bool make_key(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text};
    struct wml_sha256 s;
    wml_json_begin(&w, '[');
    wml_json_put_cstr(&w, WML_VERSION);
    put_options(r, &w);
    bool ok = put_inputs(r, &w, err);
    if (ok && r->staged && r->precision->bits && r->a->text_file) ok = put_file(&w, r->a->text_file, r->a->text_file, err);
    wml_json_end(&w, ']');
    wml_sha256_init(&s);
    wml_sha256_add(&s, text.ptr, text.len);
    wml_sha256_hex(&s, r->key);
    wml_buf_release(&text);
    return ok;
}

/* ------------------------------------------------------------------ an earlier build */

static bool is_ours(const struct wml_json_val *manifest)
{
    return wml_str_is(wml_json_get_str(manifest, "tool"), "winml") && wml_json_get_int(manifest, "schema_version", 0) == SCHEMA;
}

/* Files of the earlier build, and what was compiled of them: a bundle of another kind has none of their names, and would keep
 * them for good. */
static void remove_earlier(struct wml_build_run *r)
{
    const struct wml_json_val *stages = wml_json_get(wml_json_root(r->before), "stages"), *s, *f;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!is_ours(wml_json_root(r->before))) return;
    while (wml_json_next(stages, &it, &key, &s)) {
        struct wml_json_iter files = {0};
        while (wml_json_next(wml_json_get(s, "files"), &files, &key, &f)) {
            const struct wml_str name = wml_json_get_str(f, "file");
            if (name.len && wml_path_is_inside(name)) wml_file_remove(wml_build_out(r, wml_arena_cstr(&r->arena, name)));
        }
    }
    wml_dir_remove(wml_build_out(r, WML_BUILD_WORK));
    wml_dir_remove(wml_build_out(r, WML_COMPILED_DIR));
}

bool wml_build_resume(struct wml_build_run *r, struct wml_err *err)
{
    const char *path = wml_build_out(r, manifest_name);
    if (!wml_dir_make(r->a->output, err) || !make_key(r, err)) return false;
    if (wml_file_exists(path) && !wml_json_load(path, &r->before, NULL)) r->before = NULL; /* damaged: as if it were not there */
    if (!is_ours(wml_json_root(r->before)) && wml_bundle_is(r->a->output) && !r->a->rebuild) {
        wml_fail(err, WML_E_EXISTS, "%s holds a bundle that was not made by this command", r->a->output);
        return wml_hint(err, "give another folder with -o, or --rebuild to replace it");
    }
    const bool same = wml_str_is(wml_json_get_str(wml_json_root(r->before), "key"), r->key);
    if (r->before && !same && !r->a->rebuild)
        wml_log(r->cx, WML_LOG_WARN, "%s holds a bundle of other inputs or options: it is replaced", r->a->output);
    if (r->before && (!same || r->a->rebuild)) {
        remove_earlier(r);
        wml_json_free(r->before);
        r->before = NULL;
    }
    const struct wml_json_val *head = wml_json_get(wml_json_root(r->before), "head");
    if (r->head_auto && head) {
        r->head_bits = wml_str_is(wml_json_get_str(head, "precision"), "w8a32") ? 8 : 4;
        r->head_agreement = wml_json_get_num(head, "agreement_of_4_bits", 0);
    }
    if (!r->before) wml_file_remove(wml_build_out(r, WML_BUNDLE_CONFIG)); /* no bundle while its parts change */
    return true;
}

static const struct wml_json_val *find(const struct wml_json_val *list, const char *key, const char *name)
{
    struct wml_json_iter it = {0};
    struct wml_str k;
    const struct wml_json_val *v;
    while (wml_json_next(list, &it, &k, &v))
        if (wml_str_is(wml_json_get_str(v, key), name)) return v;
    return NULL;
}

bool wml_build_is_made(const struct wml_build_run *r, const char *stage, const char *const *file, size_t n)
{
    const struct wml_json_val *s = find(wml_json_get(wml_json_root(r->before), "stages"), "name", stage);
    const struct wml_json_val *files = wml_json_get(s, "files");
    struct wml_buf path = {0};
    bool made = wml_json_len(files) > 0; /* those of work that is done are no more */
    for (size_t i = 0; made && i < n; i++) {
        const struct wml_json_val *f = find(files, "file", file[i]);
        wml_buf_clear(&path);
        wml_path_join(&path, wml_str(r->a->output), wml_str(file[i]));
        const struct wml_file_info info = wml_file_info(wml_buf_text(&path));
        made = f ? info.kind == WML_FILE_REGULAR && (int64_t)info.size == wml_json_get_int(f, "bytes", -1) &&
                       info.modified_ns == wml_json_get_int(f, "modified_ns", -1)
                 : info.kind == WML_FILE_NONE;
    }
    wml_buf_release(&path);
    return made;
}

/* ------------------------------------------------------------------ this one */

static bool put_stage(const struct wml_build_run *r, const struct wml_build_stage *s, struct wml_json *w, struct wml_err *err)
{
    struct wml_buf path = {0};
    bool ok = true;
    wml_json_begin(w, '{');
    put_str(w, "name", s->name);
    put_str(w, "status", s->reused ? "reused" : "completed");
    wml_json_key(w, "elapsed_seconds");
    wml_json_put_fixed(w, s->seconds, 3);
    wml_json_key(w, "files");
    wml_json_begin(w, '[');
    for (size_t i = 0; ok && i < s->file.len; i++) {
        wml_buf_clear(&path);
        wml_path_join(&path, wml_str(r->a->output), wml_str(s->file.at[i].name));
        ok = put_file(w, s->file.at[i].name, wml_buf_text(&path), err);
    }
    wml_json_end(w, ']');
    wml_json_end(w, '}');
    wml_buf_release(&path);
    return ok;
}

/* What became of the head, by this build or by the earlier one. */
static void put_head(const struct wml_build_run *r, struct wml_json *w)
{
    wml_json_key(w, "head");
    wml_json_begin(w, '{');
    put_str(w, "precision", wml_build_head_name(r));
    wml_json_key(w, "agreement_of_4_bits");
    if (r->head_agreement > 0) wml_json_put_fixed(w, r->head_agreement, 4);
    else wml_json_put_null(w);
    wml_json_end(w, '}');
}

/* Stages of the earlier build that this one has not come to: should it end before, the next one finds them. */
static void put_later(const struct wml_build_run *r, struct wml_json *w)
{
    const struct wml_json_val *list = wml_json_get(wml_json_root(r->before), "stages"), *s;
    struct wml_json_iter it = {0};
    struct wml_str key;
    while (wml_json_next(list, &it, &key, &s)) {
        bool known = false;
        for (size_t i = 0; i < r->stage.len; i++) known = known || wml_str_is(wml_json_get_str(s, "name"), r->stage.at[i].name);
        if (!known) wml_json_put_val(w, s);
    }
}

bool wml_build_write_manifest(const struct wml_build_run *r, bool complete, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text, .indent = 2};
    char now[WML_TIME_TEXT];
    wml_time_utc(now);
    wml_json_begin(&w, '{');
    wml_json_key(&w, "schema_version");
    wml_json_put_int(&w, SCHEMA);
    put_str(&w, "tool", "winml");
    put_str(&w, "version", WML_VERSION);
    put_str(&w, "model_id", r->a->model);
    put_str(&w, "model_type", r->plan.type->model_type);
    put_str(&w, "key", r->key);
    wml_json_key(&w, "complete");
    wml_json_put_bool(&w, complete);
    wml_json_key(&w, "options");
    put_options(r, &w);
    if (r->staged) put_head(r, &w);
    wml_json_key(&w, "inputs");
    bool ok = put_inputs((struct wml_build_run *)(uintptr_t)r, &w, err);
    wml_json_key(&w, "stages");
    wml_json_begin(&w, '[');
    for (size_t i = 0; ok && i < r->stage.len; i++) ok = put_stage(r, &r->stage.at[i], &w, err);
    if (!complete) put_later(r, &w);
    wml_json_end(&w, ']');
    wml_json_key(&w, "elapsed_seconds");
    wml_json_put_fixed(&w, (double)(wml_now_ns() - r->start) / 1e9, 3);
    put_str(&w, "timestamp", now);
    wml_json_end(&w, '}');
    wml_buf_char(&text, '\n');
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(r->a->output), wml_str(manifest_name));
    ok = ok && wml_file_write(wml_buf_text(&path), wml_buf_view(&text), err);
    wml_buf_release(&path);
    wml_buf_release(&text);
    return ok;
}

/* ------------------------------------------------------------------ what is shown */

void wml_build_report(const struct wml_build_run *r, struct wml_report *out)
{
    static const struct wml_column column[] = {{"file", "File", false, 0}, {"bytes", "Size", true, 0}, {"stage", "Part", false, 0}, {"status", "", false, 0}};
    struct wml_item *root = wml_report_root(out);
    uint64_t bytes = 0;
    bool reused = true;
    wml_item_cstr(root, "output_dir", "Bundle", r->a->output);
    wml_item_cstr(root, "export_type", "Export type", r->staged ? "optimized" : "plain");
    if (r->staged) wml_item_cstr(root, "ep", "EP", r->ep->alias[0]);
    if (r->staged) wml_item_cstr(root, "head_precision", "Head", wml_build_head_name(r));
    if (r->head_agreement > 0) wml_item_num(root, "head_agreement", NULL, r->head_agreement, 4, WML_SHOW_PLAIN);
    wml_item_cstr(root, "model_type", "Model type", r->plan.type->model_type);
    wml_item_cstr(root, "precision", "Precision", r->precision->name);
    wml_item_int(root, "context_length", "Context length", r->context, WML_SHOW_COUNT);
    struct wml_item *table = wml_item_table(root, "files", "Files", column, WML_COUNT(column));
    for (size_t i = 0; i < r->stage.len; i++) {
        const struct wml_build_stage *s = &r->stage.at[i];
        reused = reused && s->reused;
        for (size_t k = 0; k < s->file.len; k++) {
            struct wml_item *row = wml_table_row(table);
            wml_item_cstr(row, "file", NULL, s->file.at[k].name);
            wml_item_int(row, "bytes", NULL, (int64_t)s->file.at[k].bytes, WML_SHOW_BYTES);
            wml_item_cstr(row, "stage", NULL, s->name);
            wml_item_cstr(row, "status", NULL, s->reused ? "reused" : "completed");
            bytes += s->file.at[k].bytes;
        }
    }
    wml_item_int(root, "total_bytes", "Total", (int64_t)bytes, WML_SHOW_BYTES);
    wml_item_bool(root, "reused", NULL, reused);
    wml_item_num(root, "elapsed_seconds", NULL, (double)(wml_now_ns() - r->start) / 1e9, 3, WML_SHOW_PLAIN);
    wml_item_num(root, NULL, "Time", (double)(wml_now_ns() - r->start) / 1e6, 1, WML_SHOW_MS);
}
