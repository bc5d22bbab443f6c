/* The folder of a compiled bundle: where it is, whether it is complete, and how it comes to be, all at once. */
#include "base/hash.h"
#include "flow/genai/compile.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

const char *wml_genai_cache_place(struct wml_genai_run *r)
{
    struct wml_sha256 s;
    char hex[WML_SHA256_HEX];
    wml_sha256_init(&s);
    wml_sha256_add(&s, r->dir, strlen(r->dir));
    wml_sha256_hex(&s, hex);
    return wml_arena_fmt(&r->arena, "%s/genai/%.16s", r->cx->cache_dir, hex).ptr;
}

/* An ordinary folder with a private name: it will be the compiled bundle, which others may read as they may read the bundle. */
static bool make_temp(const char *parent, struct wml_buf *path, struct wml_err *err)
{
    wml_buf_clear(path);
    wml_file_temp(parent, WML_COMPILED_DIR ".tmp-", path);
    return wml_dir_make(wml_buf_text(path), err);
}

bool wml_genai_compiled_place(struct wml_genai_run *r, const char **parent, const char **dir, const char **temp, struct wml_err *err)
{
    struct wml_buf path = {0};
    struct wml_err denied = {0};
    *parent = r->dir;
    bool ok = make_temp(r->dir, &path, &denied);
    if (!ok && r->cx->cache_dir) {
        *parent = wml_genai_cache_place(r);
        ok = wml_dir_make(*parent, err) && make_temp(*parent, &path, err);
        if (ok) wml_log(r->cx, WML_LOG_INFO, "%s cannot be written to (%s): compiled stages are kept in %s", r->dir, denied.msg, *parent);
    } else if (!ok) {
        *err = denied;
    }
    *temp = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    *dir = wml_path_in(&r->arena, *parent, WML_COMPILED_DIR);
    wml_buf_release(&path);
    return ok;
}

/* Models of the bundle that nothing loads any more, and their weights. */
struct left_out {
    struct wml_genai_run *r;
    WML_VEC(const char *) needed; /* by stages that run as they are */
};

static bool in_list(const struct left_out *l, struct wml_str name)
{
    for (size_t i = 0; i < l->needed.len; i++)
        if (wml_str_is(name, l->needed.at[i])) return true;
    return false;
}

static bool is_left_out(void *arg, struct wml_str name)
{
    const struct left_out *l = arg;
    if (in_list(l, name)) return false;
    for (size_t i = 0; i < l->r->bundle.n_stages; i++) {
        const struct wml_bundle_stage *s = &l->r->bundle.stage[i];
        if (!s->file || strcmp(s->file, s->source) == 0) continue;
        if (wml_str_is(name, s->source) || wml_str_is(name, wml_arena_fmt(&l->r->arena, "%s.data", s->source).ptr)) return true;
    }
    return false;
}

static void find_needed(struct left_out *l)
{
    struct wml_genai_run *r = l->r;
    for (size_t i = 0; i < r->bundle.n_stages; i++) {
        const struct wml_bundle_stage *s = &r->bundle.stage[i];
        struct wml_model *m = NULL;
        struct wml_err ignored = {0};
        if (!s->file || strcmp(s->file, s->source) != 0) continue;
        WML_PUSH_IN(&r->arena, &l->needed, s->source);
        if (!wml_onnx_load(wml_path_in(&r->arena, r->dir, s->source), &m, &ignored)) continue;
        struct wml_onnx_files files = wml_onnx_files(m);
        for (size_t k = 0; k < files.len; k++) WML_PUSH_IN(&r->arena, &l->needed, wml_arena_cstr(&r->arena, files.location[k]));
        wml_model_free(m);
    }
}

static bool config_is_same(struct wml_genai_run *r, const char *dir)
{
    struct wml_buf old = {0}, now = {0};
    struct wml_err ignored = {0};
    bool same = wml_file_read(wml_path_in(&r->arena, dir, WML_BUNDLE_CONFIG), 0, &old, &ignored);
    wml_bundle_print(&r->bundle, &now);
    same = same && wml_str_eq(wml_buf_view(&old), wml_buf_view(&now));
    wml_buf_release(&old);
    wml_buf_release(&now);
    return same;
}

bool wml_genai_is_complete(struct wml_genai_run *r, const char *dir)
{
    struct left_out l = {.r = r};
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    if (!wml_file_exists(wml_path_in(&r->arena, dir, WML_COMPILED_MARK)) || !config_is_same(r, dir)) return false;
    find_needed(&l);
    bool same = wml_dir_list(r->dir, &list, &ignored);
    for (size_t i = 0; same && i < list.v.len; i++) {
        struct wml_str name = list.v.at[i].name;
        if (wml_str_is(name, WML_BUNDLE_CONFIG) || wml_str_starts(name, "_") || wml_str_starts(name, ".") || is_left_out(&l, name)) continue;
        const char *there = wml_path_in(&r->arena, dir, name.ptr), *source = wml_path_in(&r->arena, r->dir, name.ptr);
        struct wml_file_info copy = wml_file_info(there), from = wml_file_info(source);
        same = wml_file_same(there, source) || (copy.kind == from.kind && copy.size == from.size && copy.modified_ns >= from.modified_ns);
    }
    wml_dir_list_release(&list);
    return same;
}

/* An older folder goes out of the way first, into one that is removed whatever happens. */
static bool replace(struct wml_genai_run *r, const char *parent, const char *temp, const char *dir, struct wml_err *err)
{
    struct wml_buf old = {0};
    bool there = wml_dir_exists(dir);
    bool ok = !there || (wml_dir_temp(parent, WML_COMPILED_DIR ".tmp-", &old, err) &&
                         wml_file_rename(dir, wml_path_in(&r->arena, wml_buf_text(&old), "old"), err));
    ok = ok && wml_file_rename(temp, dir, err);
    if (old.len) wml_dir_remove(wml_buf_text(&old));
    wml_buf_release(&old);
    return ok;
}

bool wml_genai_complete(struct wml_genai_run *r, const char *parent, const char *temp, const char *dir, struct wml_err *err)
{
    struct left_out l = {.r = r};
    struct wml_buf config = {0};
    find_needed(&l);
    wml_bundle_print(&r->bundle, &config);
    bool ok = wml_genai_mirror(r->dir, temp, is_left_out, &l, false, err) &&
              wml_file_write(wml_path_in(&r->arena, temp, WML_BUNDLE_CONFIG), wml_buf_view(&config), err) &&
              wml_file_write(wml_path_in(&r->arena, temp, WML_COMPILED_MARK), WML_STR("complete\n"), err) &&
              replace(r, parent, temp, dir, err);
    wml_buf_release(&config);
    return ok;
}
