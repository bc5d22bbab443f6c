/* Files that grow at their end, on Windows. */
#include "os/grow.h"

#include "base/arena.h"
#include "os/fail.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static HANDLE handle_of(const struct wml_grow *g)
{
    return (HANDLE)(g->file - 1);
}

static bool fail(const struct wml_grow *g, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, (int)GetLastError(), what, g->path);
}

bool wml_grow_open(struct wml_grow *g, const char *path, struct wml_err *err)
{
    LARGE_INTEGER size;
    *g = (struct wml_grow){.path = wml_xstrdup(path)};
    wchar_t *wide = wml_wide_path(path);
    HANDLE h = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    free(wide);
    SetLastError(code);
    if (h != INVALID_HANDLE_VALUE) g->file = (intptr_t)h + 1;
    bool ok = (g->file && GetFileSizeEx(h, &size)) || fail(g, "open", err);
    if (ok) g->size = (uint64_t)size.QuadPart;
    else wml_grow_close(g);
    return ok;
}

bool wml_grow_reserve(struct wml_grow *g, uint64_t size, struct wml_err *err)
{
    FILE_ALLOCATION_INFO info = {.AllocationSize.QuadPart = (LONGLONG)WML_MIN(size, (uint64_t)INT64_MAX)};
    if (size <= g->size || SetFileInformationByHandle(handle_of(g), FileAllocationInfo, &info, sizeof info)) return true;
    return GetLastError() != ERROR_DISK_FULL || fail(g, "write", err);
}

bool wml_grow_write(struct wml_grow *g, const void *bytes, size_t n, struct wml_err *err)
{
    const char *at = bytes;
    while (n) {
        OVERLAPPED where = {.Offset = (DWORD)g->size, .OffsetHigh = (DWORD)(g->size >> 32)};
        DWORD done = 0;
        if (!WriteFile(handle_of(g), at, (DWORD)WML_MIN(n, (size_t)1 << 30), &done, &where)) return fail(g, "write", err);
        if (!done) return wml_fail_system(err, ERROR_DISK_FULL, "write", g->path);
        g->size += done;
        at += done;
        n -= done;
    }
    return true;
}

bool wml_grow_cut(struct wml_grow *g, uint64_t size, struct wml_err *err)
{
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = (LONGLONG)size};
    if (size >= g->size) return true;
    if (!SetFileInformationByHandle(handle_of(g), FileEndOfFileInfo, &end, sizeof end)) return fail(g, "shorten", err);
    g->size = size;
    return true;
}

bool wml_grow_flush(struct wml_grow *g, struct wml_err *err)
{
    return FlushFileBuffers(handle_of(g)) || fail(g, "flush", err);
}

void wml_grow_close(struct wml_grow *g)
{
    if (g->file) CloseHandle(handle_of(g));
    free(g->path);
    *g = (struct wml_grow){0};
}
