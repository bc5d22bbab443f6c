/* Atomic output: pieces are gathered, written to a temporary neighbour, flushed, renamed into place. Names
 * of open neighbours are kept in a small table so that a second Ctrl-C can remove them; it is the one piece
 * of state that outlives a call, since a signal handler can be handed nothing. */
#include "os/out_sys.h"

#include <stdatomic.h>
#include "os/path.h"

enum { DIRECT = 1 << 20, MAX_OPEN = 64 };

static _Atomic(char *) open_temp[MAX_OPEN];

void wml_out_remember(const char *temp)
{
    char *copy = wml_xstrdup(temp);
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&open_temp[i], &none, copy)) return;
    }
    free(copy);
}

/* A name is taken out before it is looked at: another thread may forget at the same time. */
void wml_out_forget(const char *temp)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *copy = atomic_exchange(&open_temp[i], NULL), *none = NULL;
        if (!copy) continue;
        if (strcmp(copy, temp) == 0) {
            free(copy);
            return;
        }
        if (!atomic_compare_exchange_strong(&open_temp[i], &none, copy)) {
            wml_out_remember(copy);
            free(copy);
        }
    }
}

void wml_out_remove_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *temp = atomic_load(&open_temp[i]);
        if (temp) wml_out_sys_remove(temp);
    }
}

/* 180: what is left of the 255 bytes of a name. */
void wml_out_temp_name(struct wml_buf *out, const char *path)
{
    struct wml_buf dir = {0}, prefix = {0};
    wml_buf_str(&dir, wml_path_dir(wml_str(path)));
    wml_buf_fmt(&prefix, ".%.*s.tmp-", WML_ARG(wml_str_sub(wml_path_name(wml_str(path)), 0, 180)));
    wml_file_temp(wml_buf_text(&dir), wml_buf_text(&prefix), out);
    wml_buf_release(&dir);
    wml_buf_release(&prefix);
}

bool wml_out_refuse_folder(const char *path, struct wml_err *err)
{
    wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
    return wml_hint(err, "give a file name inside it");
}

void wml_out_hint_folder(const char *path, struct wml_err *err)
{
    struct wml_buf dir = {0};
    wml_buf_str(&dir, wml_path_dir(wml_str(path)));
    if (!wml_dir_exists(wml_buf_text(&dir)))
        wml_hint(err, "the folder '%s' does not exist: make it first", wml_buf_text(&dir));
    wml_buf_release(&dir);
}

bool wml_out_open(struct wml_out *o, const char *path, struct wml_err *err)
{
    *o = (struct wml_out){0};
    if (!wml_out_sys_open(o, path, err)) {
        wml_out_release(o);
        return false;
    }
    o->pending = wml_xrealloc(NULL, WML_OUT_PENDING);
    return true;
}

bool wml_out_reserve(struct wml_out *o, uint64_t n, struct wml_err *err)
{
    return n < DIRECT || !o->temp || wml_out_sys_reserve(o, n, err);
}

static bool flush(struct wml_out *o, struct wml_err *err)
{
    size_t n = o->n_pending;
    o->n_pending = 0;
    return wml_out_sys_write(o, o->pending, n, err);
}

bool wml_out_write(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err)
{
    o->offset += n;
    if (n < DIRECT && o->n_pending + n <= WML_OUT_PENDING) {
        if (n) memcpy(o->pending + o->n_pending, bytes, n);
        o->n_pending += n;
        return true;
    }
    if (!flush(o, err)) return false;
    if (n >= WML_OUT_PENDING) return wml_out_sys_write(o, bytes, n, err);
    memcpy(o->pending, bytes, n);
    o->n_pending = n;
    return true;
}

bool wml_out_pad(struct wml_out *o, uint64_t to_offset, struct wml_err *err)
{
    static const unsigned char zero[4096];
    while (o->offset < to_offset)
        if (!wml_out_write(o, zero, (size_t)WML_MIN(to_offset - o->offset, sizeof zero), err)) return false;
    return true;
}

bool wml_out_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err)
{
    if (!flush(o, err)) return false;
    o->offset += n;
    return wml_out_sys_copy(o, file, from, n, err);
}

bool wml_out_finish(struct wml_out *o, struct wml_err *err)
{
    if (!o->file) return true;
    bool ok = flush(o, err) && wml_out_sys_flush(o, err);
    return wml_out_sys_close(o, ok ? err : NULL) && ok;
}

bool wml_out_commit(struct wml_out *o, struct wml_err *err)
{
    if (!wml_out_finish(o, err)) return false;
    if (!o->temp) return true; /* written in place */
    if (!wml_out_sys_rename(o, err)) return false;
    wml_out_forget(o->temp);
    free(o->temp);
    o->temp = NULL;
    return true;
}

void wml_out_release(struct wml_out *o)
{
    if (o->file) wml_out_sys_close(o, NULL);
    if (o->temp) {
        wml_out_sys_remove(o->temp);
        wml_out_forget(o->temp);
    }
    free(o->temp);
    free(o->path);
    free(o->pending);
    *o = (struct wml_out){0};
}
