/* weights/weights.c - the set: files, names, owners; which reader a file is for. */
#include "weights/weights.h"

#include <inttypes.h>
#include "base/magic.h"
#include "base/num.h"
#include "os/file.h"
#include "os/path.h"
#include "weights/internal.h"

bool wml_weights_size(const int64_t *dims, size_t rank, unsigned bits, uint64_t *bytes)
{
    uint64_t n;
    if (!wml_dims_count(dims, rank, &n) || n > UINT64_MAX / bits || n * bits % 8) return false;
    *bytes = n * bits / 8;
    return true;
}

bool wml_weights_add(struct wml_weights *w, const struct wml_weight *t, struct wml_err *err)
{
    const struct wml_str *shard = w->shard_of ? wml_map_get(w->shard_of, t->name) : NULL;
    if (shard && !wml_str_eq(*shard, w->shard)) return true; /* the index takes it from another one */
    if (wml_map_has(&w->by_name, t->name)) return wml_fail(err, WML_E_FORMAT, "there are two tensors '%.*s'", WML_ARG(t->name));
    struct wml_weight *copy = WML_NEW(&w->arena, struct wml_weight);
    int64_t *dims = t->rank ? WML_NEW_ARRAY(&w->arena, int64_t, t->rank) : NULL;
    if (dims) memcpy(dims, t->dims, t->rank * sizeof *dims);
    *copy = *t;
    copy->name = wml_arena_str(&w->arena, t->name);
    copy->dims = dims;
    copy->used = false;
    wml_map_put(&w->by_name, copy->name, copy);
    w->bytes += t->bytes.len;
    return true;
}

/* By its first bytes. safetensors first: a header of 640 bytes begins as a pickle does. */
static bool read_bytes(struct wml_weights *w, struct wml_span s, struct wml_err *err)
{
    const struct wml_magic *other = wml_magic(s);
    if (!s.len) {
        wml_fail(err, WML_E_FORMAT, "the file is empty (0 bytes)");
        return wml_hint(err, "the download was cut: fetch it again");
    }
    if (s.len > 8 && s.ptr[8] == '{') return wml_weights_read_safetensors(w, s, err);
    if (s.len >= 4 && memcmp(s.ptr, "PK\3\4", 4) == 0) return wml_weights_read_torch_zip(w, s, err);
    if (s.len >= 2 && s.ptr[0] == 0x80 && s.ptr[1] >= 2 && s.ptr[1] <= 5) return wml_weights_read_torch_old(w, s, err);
    wml_fail(err, WML_E_UNSUPPORTED, "this is %s, not weights that winml reads", other ? other->what : "an unknown kind of file");
    return wml_hint(err, "%s", other && other->todo ? other->todo
                                                    : "what is read: safetensors, and PyTorch checkpoints (.bin, .pt, .pth)");
}

bool wml_weights_add_file(struct wml_weights *w, const char *path, struct wml_err *err)
{
    struct wml_weights_file f = {.path = wml_arena_str(&w->arena, wml_str(path))};
    if (!wml_map_open(path, &f.map, err)) return false;
    WML_PUSH(&w->file, f);
    return read_bytes(w, f.map.bytes, err) || wml_wrap(err, "%s", path);
}

static bool finish(struct wml_weights *w, bool ok, struct wml_weights **out)
{
    if (!ok) wml_weights_close(w);
    *out = ok ? w : NULL;
    return ok;
}

struct wml_weights *wml_weights_blank(void)
{
    struct wml_weights *w = wml_xcalloc(1, sizeof *w);
    w->owners = 1;
    return w;
}

bool wml_weights_open(const char *path, struct wml_weights **out, struct wml_err *err)
{
    struct wml_weights *w = wml_weights_blank();
    struct wml_buf chosen = {0};
    bool ok = true;
    if (wml_dir_exists(path)) {
        ok = wml_weights_choose(path, &chosen, err);
        path = wml_buf_text(&chosen);
    }
    if (ok && wml_str_ends(wml_str(path), ".index.json")) ok = wml_weights_read_index(w, path, err);
    else if (ok) ok = wml_weights_add_file(w, path, err);
    wml_buf_release(&chosen);
    return finish(w, ok, out);
}

bool wml_weights_parse(struct wml_span bytes, struct wml_weights **out, struct wml_err *err)
{
    struct wml_weights *w = wml_weights_blank();
    return finish(w, read_bytes(w, bytes, err), out);
}

struct wml_weights *wml_weights_hold(struct wml_weights *w)
{
    w->owners++;
    return w;
}

void wml_weights_close(struct wml_weights *w)
{
    if (!w || --w->owners) return;
    for (size_t i = 0; i < w->file.len; i++) wml_map_close(&w->file.at[i].map);
    for (size_t i = 0; i < w->block.len; i++) free(w->block.at[i]);
    WML_VEC_RELEASE(&w->file);
    WML_VEC_RELEASE(&w->block);
    wml_map_release(&w->by_name);
    wml_arena_release(&w->arena);
    free(w);
}

const struct wml_weight *wml_weights_find(const struct wml_weights *w, struct wml_str name)
{
    return wml_map_get(&w->by_name, name);
}

const struct wml_weight *wml_weights_use(struct wml_weights *w, struct wml_str name)
{
    struct wml_weight *t = wml_map_get(&w->by_name, name);
    if (t) t->used = true;
    return t;
}

void wml_weights_forget_use(struct wml_weights *w)
{
    for (size_t i = 0; i < w->by_name.len; i++) ((struct wml_weight *)w->by_name.entry[i].value)->used = false;
}

size_t wml_weights_len(const struct wml_weights *w)
{
    return w->by_name.len;
}

const struct wml_weight *wml_weights_at(const struct wml_weights *w, size_t i)
{
    return w->by_name.entry[i].value;
}

uint64_t wml_weights_bytes(const struct wml_weights *w)
{
    return w->bytes;
}

const char *wml_weights_format(const struct wml_weights *w)
{
    return w->format;
}

size_t wml_weights_n_files(const struct wml_weights *w)
{
    return w->file.len;
}

const struct wml_weights_file *wml_weights_file(const struct wml_weights *w, size_t i)
{
    return &w->file.at[i];
}
