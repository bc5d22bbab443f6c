/* An index and its shards: {"metadata": {"total_size": n}, "weight_map": {"name": "file", ...}}. The map says which file a
 * tensor is taken from; what files hold beside it is taken as well, as other programs do. total_size is only told by
 * the writer, and is wrong in many published checkpoints (tied weights, other types): it is not compared. */
#include <inttypes.h>

#include "os/file.h"
#include "os/path.h"
#include "text/json.h"
#include "weights/internal.h"

struct index {
    struct wml_map shard_of; /* tensor to (struct wml_str *) its file */
    struct wml_map shards;   /* file to (struct wml_str *) its own name */
    WML_VEC(const struct wml_str *) order;
};

static int by_name(const void *a, const void *b)
{
    return wml_str_cmp(**(const struct wml_str *const *)a, **(const struct wml_str *const *)b);
}

static bool gather(struct wml_weights *w, const struct wml_json_val *map, struct index *out, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str name, file;
    const struct wml_json_val *v;
    if (!wml_json_is_object(map) || !wml_json_len(map)) return wml_fail(err, WML_E_FORMAT, "there is no weight_map");
    while (wml_json_next(map, &it, &name, &v)) {
        file = wml_json_str(v);
        if (!file.len) return wml_fail(err, WML_E_FORMAT, "the file of tensor '%.*s' is no name", WML_ARG(name));
        if (!wml_path_is_inside(file)) {
            wml_fail(err, WML_E_FORMAT, "tensor '%.*s' is said to be in '%.*s', outside of the folder: refused", WML_ARG(name),
                     WML_ARG(file));
            return wml_hint(err, "an index names files beside itself");
        }
        struct wml_str *shard = wml_map_get(&out->shards, file);
        if (!shard) {
            shard = WML_NEW(&w->arena, struct wml_str);
            *shard = wml_arena_str(&w->arena, file);
            wml_map_put(&out->shards, *shard, shard);
            WML_PUSH(&out->order, (const struct wml_str *)shard);
        }
        if (wml_map_put(&out->shard_of, wml_arena_str(&w->arena, name), shard))
            return wml_fail(err, WML_E_FORMAT, "tensor '%.*s' is named twice", WML_ARG(name));
    }
    qsort(out->order.at, out->order.len, sizeof *out->order.at, by_name);
    return true;
}

/* All of them are looked for before the first is read: half a download is told at once, whole. */
static bool check_present(const struct index *x, struct wml_str folder, struct wml_err *err)
{
    struct wml_buf path = {0}, missing = {0};
    size_t n = 0;
    enum { SHOWN = 5 };
    for (size_t i = 0; i < x->order.len; i++) {
        wml_buf_clear(&path);
        wml_path_join(&path, folder, *x->order.at[i]);
        if (wml_file_exists(wml_buf_text(&path))) continue;
        if (n < SHOWN) wml_buf_fmt(&missing, "%s%.*s", n ? ", " : "", WML_ARG(*x->order.at[i]));
        n++;
    }
    if (n) {
        wml_fail(err, WML_E_NOT_FOUND, "%zu of %zu files are not there: %s%s", n, x->order.len, wml_buf_text(&missing),
                 n > SHOWN ? ", ..." : "");
        wml_hint(err, "the download is not complete: all files that the index names belong beside it");
    }
    wml_buf_release(&path);
    wml_buf_release(&missing);
    return n == 0;
}

static bool check_found(const struct wml_weights *w, const struct index *x, struct wml_err *err)
{
    for (size_t i = 0; i < x->shard_of.len; i++) {
        const struct wml_map_entry *e = &x->shard_of.entry[i];
        if (wml_map_has(&w->by_name, e->key)) continue;
        wml_fail(err, WML_E_FORMAT, "tensor '%.*s' is not in %.*s, where the index says it is", WML_ARG(e->key),
                 WML_ARG(*(const struct wml_str *)e->value));
        return wml_hint(err, "the index and the files are of different checkpoints: fetch them all again");
    }
    return true;
}

bool wml_weights_read_index(struct wml_weights *w, const char *path, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct index x = {0};
    struct wml_buf shard = {0};
    struct wml_str folder = wml_path_dir(wml_str(path));
    bool ok = wml_json_load(path, &doc, err);
    if (ok)
        ok = (gather(w, wml_json_get(wml_json_root(doc), "weight_map"), &x, err) && check_present(&x, folder, err)) ||
             wml_wrap(err, "%s", path);
    w->shard_of = &x.shard_of;
    for (size_t i = 0; ok && i < x.order.len; i++) {
        w->shard = *x.order.at[i];
        wml_buf_clear(&shard);
        wml_path_join(&shard, folder, w->shard);
        ok = wml_weights_add_file(w, wml_buf_text(&shard), err);
    }
    w->shard_of = NULL;
    ok = ok && (check_found(w, &x, err) || wml_wrap(err, "%s", path));
    wml_buf_release(&shard);
    wml_map_release(&x.shard_of);
    wml_map_release(&x.shards);
    WML_VEC_RELEASE(&x.order);
    wml_json_free(doc);
    return ok;
}
