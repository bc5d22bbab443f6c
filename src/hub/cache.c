/* The cache's layout, as huggingface_hub has it:
 *
 *     models--org--name/blobs/ETAG                      a file's content; ETAG.incomplete while it comes
 *     models--org--name/snapshots/COMMIT/NAME           -> ../../blobs/ETAG
 *     models--org--name/refs/REVISION                   text: the commit
 *     models--org--name/.no_exist/COMMIT/NAME           empty: the model has no such file
 *     .locks/models--org--name/ETAG.lock                held while a blob is made
 *
 * Texts that others wrote there are believed only where they can do no harm. */
#include "hub/internal.h"

#include "os/file.h"
#include "os/path.h"

enum { DEEPEST = 8, REF_MAX = 256 };

static const char *join(struct wml_hub *h, const char *dir, struct wml_str name)
{
    struct wml_buf b = {0};
    wml_path_join(&b, wml_str(dir), name);
    const char *out = wml_arena_cstr(&h->arena, wml_buf_view(&b));
    wml_buf_release(&b);
    return out;
}

const char *wml_hub_path(struct wml_hub *h, const char *folder, struct wml_str name)
{
    return join(h, join(h, h->repo, wml_str(folder)), name);
}

const char *wml_hub_snapshot(struct wml_hub *h, const char *commit, struct wml_str name)
{
    const char *dir = wml_hub_path(h, "snapshots", wml_str(commit));
    return name.len ? join(h, dir, name) : dir;
}

/* The folder that a file will lie in. */
static bool make_parent(const char *path, struct wml_err *err)
{
    struct wml_buf dir = {0};
    wml_buf_str(&dir, wml_path_dir(wml_str(path)));
    bool ok = wml_dir_make(wml_buf_text(&dir), err);
    wml_buf_release(&dir);
    return ok;
}

const char *wml_hub_read_ref(struct wml_hub *h)
{
    struct wml_buf b = {0};
    const char *out = NULL;
    if (wml_hub_is_commit(wml_str(h->revision))) return h->revision;
    if (wml_file_read(wml_hub_path(h, "refs", wml_str(h->revision)), REF_MAX, &b, NULL)) {
        struct wml_str commit = wml_str_trim(wml_buf_view(&b));
        if (wml_hub_is_word(commit)) out = wml_arena_cstr(&h->arena, commit);
    }
    wml_buf_release(&b);
    return out;
}

/* One that is right already is left alone: the cache may be readable only. */
void wml_hub_write_ref(struct wml_hub *h, const char *commit)
{
    struct wml_err err = {0};
    const char *path = wml_hub_path(h, "refs", wml_str(h->revision)), *old = wml_hub_read_ref(h);
    if (strcmp(h->revision, commit) == 0 || (old && strcmp(old, commit) == 0)) return;
    if (!make_parent(path, &err) || !wml_file_write(path, wml_str(commit), &err))
        wml_log(h->cx, WML_LOG_WARN, "the cache does not remember what '%s' of %s is: %s", h->revision, h->id, err.msg);
}

static const char *absent_path(struct wml_hub *h, const char *commit, struct wml_str name)
{
    return join(h, wml_hub_path(h, ".no_exist", wml_str(commit)), name);
}

bool wml_hub_known_absent(struct wml_hub *h, const char *commit, struct wml_str name)
{
    return wml_file_exists(absent_path(h, commit, name));
}

void wml_hub_note_absent(struct wml_hub *h, const char *commit, struct wml_str name)
{
    const char *path = absent_path(h, commit, name);
    if (wml_file_exists(path)) return;
    if (!make_parent(path, NULL) || !wml_file_append(path, WML_STR(""), NULL))
        wml_log(h->cx, WML_LOG_DEBUG, "cannot write %s", path);
}

/* `prefix`: the names so far, "a/b/". */
static void list_folder(struct wml_hub *h, const char *dir, struct wml_str prefix, unsigned depth, struct wml_hub_names *names)
{
    struct wml_dir_list list = {0};
    if (depth > DEEPEST || !wml_dir_list(dir, &list, NULL)) return;
    for (size_t i = 0; i < list.v.len; i++) {
        const struct wml_dir_entry *e = &list.v.at[i];
        struct wml_str name = wml_arena_fmt(&h->arena, "%.*s%.*s", WML_ARG(prefix), WML_ARG(e->name));
        const char *path = join(h, dir, e->name);
        if (wml_dir_exists(path)) list_folder(h, path, wml_arena_fmt(&h->arena, "%.*s/", WML_ARG(name)), depth + 1, names);
        else if (wml_file_exists(path)) WML_PUSH(&names->v, name); /* a link whose blob is gone is no file */
    }
    wml_dir_list_release(&list);
}

bool wml_hub_list_snapshot(struct wml_hub *h, const char *commit, struct wml_hub_names *names)
{
    const char *dir = wml_hub_snapshot(h, commit, WML_NO_STR);
    if (!wml_dir_exists(dir)) return false;
    list_folder(h, dir, WML_NO_STR, 0, names);
    return true;
}

bool wml_hub_place(struct wml_hub *h, const char *commit, struct wml_str name, struct wml_str etag, bool fresh,
                   struct wml_err *err)
{
    const char *blob = wml_hub_path(h, "blobs", etag), *path = wml_hub_snapshot(h, commit, name);
    struct wml_buf target = {0};
    struct wml_err why = {0};
    if (!make_parent(path, err)) return false;
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '/') wml_buf_cstr(&target, "../");
    wml_buf_fmt(&target, "../../blobs/%.*s", WML_ARG(etag));
    if (!wml_file_exists(path)) wml_file_remove(path); /* a link whose blob is gone */
    bool linked = wml_file_link(wml_buf_text(&target), path, &why);
    wml_buf_release(&target);
    if (linked || wml_file_exists(path)) return true; /* by another process just now */
    if (why.code != WML_E_UNSUPPORTED) {
        if (err) *err = why;
        return false;
    }
    return fresh ? wml_file_rename(blob, path, err) : wml_file_copy(blob, path, err);
}
