/* Atomic output on Windows: a neighbour, FlushFileBuffers, rename. A target that is no ordinary file (NUL,
 * a pipe) is written as it is. */
#include "os/out.h"

#include "os/fail.h"
#include "os/wide_win.h"

enum { COPY_PIECE = 1 << 20 };

static HANDLE handle_of(const struct wml_out *o)
{
    return (HANDLE)(o->file - 1);
}

static bool fail(struct wml_out *o, DWORD code, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, (int)code, what, o->path);
}

/* The neighbour of o->path, with a name that nobody has yet. */
static HANDLE make_temp(struct wml_out *o)
{
    struct wml_buf temp = {0};
    HANDLE file = INVALID_HANDLE_VALUE;
    DWORD code = ERROR_FILE_EXISTS;
    for (int attempt = 0; code == ERROR_FILE_EXISTS && attempt < 100; attempt++) {
        wml_buf_clear(&temp);
        wml_out_temp_name(o, wml_win_random(), &temp);
        file = wml_win_open(wml_buf_text(&temp), GENERIC_READ | GENERIC_WRITE, CREATE_NEW, 0);
        code = file == INVALID_HANDLE_VALUE ? GetLastError() : 0;
    }
    if (!code) {
        o->temp = wml_xstrdup(wml_buf_text(&temp));
        wml_out_remember(o->temp);
    }
    wml_buf_release(&temp);
    SetLastError(code);
    return file;
}

/* A link is written through: its target is what gets replaced. */
static char *final_path(const char *path)
{
    struct wml_buf real = {0};
    wchar_t *wide = wml_wide_path(path);
    DWORD kind = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    if (kind != INVALID_FILE_ATTRIBUTES && (kind & FILE_ATTRIBUTE_REPARSE_POINT)) {
        HANDLE file = wml_win_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
        if (file != INVALID_HANDLE_VALUE) {
            wml_win_path_of(file, &real);
            CloseHandle(file);
        }
    }
    char *out = wml_xstrdup(real.len ? wml_buf_text(&real) : path);
    wml_buf_release(&real);
    return out;
}

bool wml_out_open(struct wml_out *o, const char *path, struct wml_err *err)
{
    *o = (struct wml_out){.path = final_path(path)};
    enum wml_file_kind kind = wml_file_info(o->path).kind;
    HANDLE file;
    if (kind == WML_FILE_DIR) {
        wml_out_fail_dir(o, err);
        wml_out_release(o);
        return false;
    }
    if (kind == WML_FILE_OTHER) file = wml_win_open(o->path, GENERIC_WRITE, OPEN_EXISTING, 0);
    else file = make_temp(o);
    if (file == INVALID_HANDLE_VALUE) {
        DWORD code = GetLastError();
        fail(o, code, "create", err);
        if (code == ERROR_PATH_NOT_FOUND) wml_out_hint_dir(o, err);
        wml_out_release(o);
        return false;
    }
    o->file = (intptr_t)file + 1;
    o->pending = wml_xrealloc(NULL, WML_OUT_PENDING);
    return true;
}

bool wml_out_write_now(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err)
{
    const unsigned char *p = bytes;
    while (n) {
        DWORD done = 0;
        if (!WriteFile(handle_of(o), p, (DWORD)WML_MIN(n, (size_t)1 << 30), &done, NULL))
            return fail(o, GetLastError(), "write", err);
        if (!done) return fail(o, ERROR_DISK_FULL, "write", err);
        p += done;
        n -= done;
    }
    return true;
}

bool wml_out_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err)
{
    if (!wml_out_flush(o, err)) return false;
    unsigned char *piece = n ? wml_xrealloc(NULL, COPY_PIECE) : NULL;
    bool ok = true;
    o->offset += n;
    while (ok && n) {
        OVERLAPPED at = {.Offset = (DWORD)from, .OffsetHigh = (DWORD)(from >> 32)};
        DWORD got = 0;
        ok = ReadFile((HANDLE)file, piece, (DWORD)WML_MIN(n, (uint64_t)COPY_PIECE), &got, &at) && got;
        if (!ok) wml_fail(err, WML_E_IO, "the source of %s ended early", o->path);
        else ok = wml_out_write_now(o, piece, got, err);
        from += got;
        n -= got;
    }
    free(piece);
    return ok;
}

bool wml_out_finish(struct wml_out *o, struct wml_err *err)
{
    if (!o->file) return true;
    bool ok = wml_out_flush(o, err);
    if (ok && o->temp && !FlushFileBuffers(handle_of(o))) ok = fail(o, GetLastError(), "flush", err);
    if (!CloseHandle(handle_of(o)) && ok) ok = fail(o, GetLastError(), "close", err);
    o->file = 0;
    return ok;
}

bool wml_out_commit(struct wml_out *o, struct wml_err *err)
{
    if (!wml_out_finish(o, err)) return false;
    if (!o->temp) return true; /* written in place */
    DWORD code = wml_win_replace(o->temp, o->path);
    if (code) return fail(o, code, "rename to", err);
    wml_out_forget(o->temp);
    free(o->temp);
    o->temp = NULL;
    return true;
}

void wml_out_release(struct wml_out *o)
{
    if (o->file) CloseHandle(handle_of(o));
    if (o->temp) {
        wml_file_remove(o->temp);
        wml_out_forget(o->temp);
    }
    free(o->temp);
    free(o->path);
    free(o->pending);
    *o = (struct wml_out){0};
}
