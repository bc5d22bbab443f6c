/* The system's part of atomic output on Windows. */
#include "os/out_sys.h"

#include "os/fail.h"
#include "os/path.h"
#include "os/replace.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static HANDLE handle_of(const struct wml_out *o)
{
    return (HANDLE)(o->file - 1);
}

static bool fail(struct wml_out *o, DWORD code, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, (int)code, what, o->path);
}

static HANDLE open_path(const char *path, DWORD access, DWORD how)
{
    wchar_t *wide = wml_wide_path(path);
    DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE h = CreateFileW(wide, access, share, NULL, how, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    free(wide);
    SetLastError(code);
    return h;
}

/* The neighbour of o->path, with a name that nobody has yet. */
static HANDLE make_temp(struct wml_out *o)
{
    struct wml_buf temp = {0};
    HANDLE h = INVALID_HANDLE_VALUE;
    DWORD code = ERROR_FILE_EXISTS;
    for (int attempt = 0; code == ERROR_FILE_EXISTS && attempt < 100; attempt++) {
        wml_out_temp_name(&temp, o->path);
        h = open_path(wml_buf_text(&temp), GENERIC_READ | GENERIC_WRITE, CREATE_NEW);
        code = h == INVALID_HANDLE_VALUE ? GetLastError() : ERROR_SUCCESS;
        if (code) wml_out_forget(wml_buf_text(&temp));
    }
    if (!code) o->temp = wml_xstrdup(wml_buf_text(&temp));
    wml_buf_release(&temp);
    SetLastError(code);
    return h;
}

/* A link is written through: its target is what gets replaced. */
static char *final_path(const char *path)
{
    struct wml_buf real = {0};
    wchar_t *wide = wml_wide_path(path);
    DWORD kind = GetFileAttributesW(wide);
    free(wide);
    if (kind != INVALID_FILE_ATTRIBUTES && (kind & FILE_ATTRIBUTE_REPARSE_POINT)) wml_path_real(&real, wml_str(path), NULL);
    char *out = wml_xstrdup(real.len ? wml_buf_text(&real) : path);
    wml_buf_release(&real);
    return out;
}

bool wml_out_sys_open(struct wml_out *o, const char *path, struct wml_err *err)
{
    o->path = final_path(path);
    enum wml_file_kind kind = wml_file_info(o->path).kind;
    if (kind == WML_FILE_DIR) return wml_out_refuse_folder(path, err);
    HANDLE h = kind == WML_FILE_OTHER ? open_path(o->path, GENERIC_WRITE, OPEN_EXISTING) : make_temp(o);
    if (h == INVALID_HANDLE_VALUE) {
        fail(o, GetLastError(), "create", err);
        wml_out_hint_folder(o->path, err);
        return false;
    }
    o->file = (intptr_t)h + 1;
    return true;
}

bool wml_out_sys_reserve(struct wml_out *o, uint64_t n, struct wml_err *err)
{
    FILE_ALLOCATION_INFO info = {.AllocationSize.QuadPart = (LONGLONG)WML_MIN(n, (uint64_t)INT64_MAX)};
    if (SetFileInformationByHandle(handle_of(o), FileAllocationInfo, &info, sizeof info)) return true;
    const DWORD code = GetLastError();
    return code != ERROR_DISK_FULL || fail(o, code, "write", err);
}

bool wml_out_sys_write(struct wml_out *o, const unsigned char *bytes, size_t n, struct wml_err *err)
{
    while (n) {
        DWORD done = 0;
        if (!WriteFile(handle_of(o), bytes, (DWORD)WML_MIN(n, (size_t)1 << 30), &done, NULL))
            return fail(o, GetLastError(), "write", err);
        if (!done) return fail(o, ERROR_DISK_FULL, "write", err);
        bytes += done;
        n -= done;
    }
    return true;
}

bool wml_out_sys_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err)
{
    while (n) {
        OVERLAPPED at = {.Offset = (DWORD)from, .OffsetHigh = (DWORD)(from >> 32)};
        DWORD got = 0;
        if (!ReadFile((HANDLE)file, o->pending, (DWORD)WML_MIN(n, (uint64_t)WML_OUT_PENDING), &got, &at) &&
            GetLastError() != ERROR_HANDLE_EOF)
            return fail(o, GetLastError(), "read the source of", err);
        if (!got) return wml_fail(err, WML_E_IO, "the source of %s ended early", o->path);
        if (!wml_out_sys_write(o, o->pending, got, err)) return false;
        from += got;
        n -= got;
    }
    return true;
}

bool wml_out_sys_flush(struct wml_out *o, struct wml_err *err)
{
    if (!o->temp) return true; /* a device or a pipe has nothing to flush */
    return FlushFileBuffers(handle_of(o)) || fail(o, GetLastError(), "flush", err);
}

bool wml_out_sys_close(struct wml_out *o, struct wml_err *err)
{
    HANDLE h = handle_of(o);
    o->file = 0;
    return CloseHandle(h) || fail(o, GetLastError(), "close", err);
}

bool wml_out_sys_rename(struct wml_out *o, struct wml_err *err)
{
    DWORD code = wml_replace(o->temp, o->path);
    return !code || fail(o, code, "rename to", err);
}

void wml_out_sys_remove(const char *temp)
{
    if (!wml_file_remove(temp)) wml_dir_remove(temp);
}
