/* Picture files of a folder, one sample after another; what cannot be read is named and left out. */
#include "task/image_internal.h"

#include "os/file.h"
#include "os/path.h"

enum { DEEP = 16, FILES = 10000000, NAMED = 10 };

void wml_images_release(struct wml_images *l)
{
    if (!l) return;
    WML_VEC_RELEASE(&l->path);
    wml_arena_release(&l->arena);
    *l = (struct wml_images){0};
}

/* Formats that are not decoded are listed too, so that a folder full of them says why it gives nothing. */
bool wml_image_is_picture(struct wml_str name)
{
    static const char *const known[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".dib", ".gif", ".webp", ".tif",
                                        ".tiff", ".heic", ".heif", ".avif", ".jp2"};
    struct wml_str ext = wml_path_ext(name);
    for (size_t i = 0; i < WML_COUNT(known); i++)
        if (wml_str_ieq(ext, wml_str(known[i]))) return true;
    return false;
}

static bool walk(struct wml_images *l, const char *folder, unsigned depth, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    if (!wml_dir_list(folder, &list, err)) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < list.v.len; i++) {
        const struct wml_dir_entry *e = &list.v.at[i];
        if (e->name.ptr[0] == '.' || (!e->is_dir && !wml_image_is_picture(e->name))) continue;
        struct wml_buf path = {0};
        wml_path_join(&path, wml_str(folder), e->name);
        if (e->is_dir) {
            ok = depth < DEEP ? walk(l, wml_buf_text(&path), depth + 1, err)
                              : wml_fail(err, WML_E_UNSUPPORTED, "%s: folders inside of folders, over %d deep", folder, DEEP);
        } else {
            WML_PUSH(&l->path, wml_arena_cstr(&l->arena, wml_buf_view(&path)));
            if (l->path.len > FILES) ok = wml_fail(err, WML_E_UNSUPPORTED, "%s: over %d pictures", folder, FILES);
        }
        wml_buf_release(&path);
    }
    wml_dir_list_release(&list);
    return ok;
}

bool wml_images_list(const char *path, struct wml_images *out, struct wml_err *err)
{
    *out = (struct wml_images){0};
    struct wml_file_info info = wml_file_info(path);
    if (info.kind == WML_FILE_NONE) {
        wml_fail(err, WML_E_NOT_FOUND, "%s: no such file or folder", path);
        return wml_hint(err, "name a picture, or a folder of pictures");
    }
    if (info.kind != WML_FILE_DIR) {
        WML_PUSH(&out->path, wml_arena_cstr(&out->arena, wml_str(path)));
        return true;
    }
    bool ok = walk(out, path, 0, err);
    if (ok && !out->path.len) {
        ok = wml_fail(err, WML_E_NOT_FOUND, "%s: no pictures in it", path);
        wml_hint(err, "files that end in .jpg, .jpeg, .png, .bmp or .gif are looked for, in its folders too");
    }
    if (!ok) wml_images_release(out);
    return ok;
}

void wml_images_thin(struct wml_images *l, size_t n)
{
    size_t all = l->path.len;
    if (n >= all) return;
    for (size_t i = 0; i < n; i++) l->path.at[i] = l->path.at[(size_t)((uint64_t)i * all / n)];
    l->path.len = n;
}

static bool load(const struct wml_image_plan *p, const char *path, struct wml_picture *out, struct wml_err *err)
{
    struct wml_picture whole = {0};
    bool ok = wml_picture_load(path, &whole, err) && (wml_image_prepare(p, &whole, out, err) || wml_wrap(err, "%s", path));
    wml_picture_release(&whole);
    return ok;
}

static bool none_readable(const struct wml_images *l, struct wml_err *err)
{
    *err = l->path.len == 1 ? l->why : (struct wml_err){0};
    if (err->code || !l->bad || l->bad < l->path.len) return false; /* the end */
    wml_fail(err, l->why.code, "none of %zu pictures can be read; the last: %s", l->path.len, l->why.msg);
    return l->why.hint[0] ? wml_hint(err, "%s", l->why.hint) : false;
}

bool wml_images_next(struct wml_images *l, const struct wml_image_plan *p, struct wml_ctx *cx, struct wml_picture *out,
                     const char **path, struct wml_err *err)
{
    *out = (struct wml_picture){0};
    while (l->next < l->path.len) {
        l->why = (struct wml_err){0};
        *path = l->path.at[l->next++];
        if (load(p, *path, out, &l->why)) return true;
        if (l->why.code == WML_E_MEMORY) {
            *err = l->why;
            return false;
        }
        if (l->path.len == 1) continue; /* an error of its own */
        if (l->bad++ < NAMED) wml_log(cx, WML_LOG_WARN, "left out: %s", l->why.msg);
        else if (l->bad == NAMED + 1) wml_log(cx, WML_LOG_WARN, "more pictures are left out, which are not named");
    }
    return none_readable(l, err);
}
