/* Mapped files on Windows. */
#include "os/map.h"

#include "os/fail.h"
#include "os/file.h"
#include "os/replace.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static bool map_it(const char *path, struct wml_map_file *m, struct wml_err *err)
{
    LARGE_INTEGER size;
    if (!GetFileSizeEx((HANDLE)m->file, &size)) return wml_fail_system(err, (int)GetLastError(), "look at", path);
    if (!size.QuadPart) return true;
    m->handle = CreateFileMappingW((HANDLE)m->file, NULL, PAGE_READONLY, 0, 0, NULL);
    void *p = m->handle ? MapViewOfFile(m->handle, FILE_MAP_READ, 0, 0, 0) : NULL;
    if (!p) return wml_fail_system(err, (int)GetLastError(), "map", path);
    m->bytes = (struct wml_span){p, (size_t)size.QuadPart};
    return true;
}

bool wml_map_open(const char *path, struct wml_map_file *out, struct wml_err *err)
{
    *out = (struct wml_map_file){0};
    if (wml_dir_exists(path)) return wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
    wchar_t *wide = wml_wide_path(path);
    HANDLE h = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    free(wide);
    if (h == INVALID_HANDLE_VALUE) return wml_fail_system(err, (int)code, "open", path);
    out->file = (intptr_t)h;
    if (map_it(path, out, err)) return true;
    wml_map_close(out);
    return false;
}

void wml_map_close(struct wml_map_file *m)
{
    wchar_t *aside = m->file > 0 ? wml_replaced_path((HANDLE)m->file) : NULL;
    if (m->bytes.ptr) UnmapViewOfFile(m->bytes.ptr);
    if (m->handle) CloseHandle(m->handle);
    if (m->file > 0) CloseHandle((HANDLE)m->file);
    if (aside) DeleteFileW(aside);
    free(aside);
    *m = (struct wml_map_file){0};
}

/* Unlocking pages that are not locked takes them out of the working set; so it says, failing. */
void wml_map_drop(struct wml_span bytes)
{
    if (bytes.len) VirtualUnlock((void *)(uintptr_t)bytes.ptr, bytes.len);
}

void wml_map_will_read(const struct wml_map_file *m, uint64_t from, uint64_t n)
{
    if (!m->bytes.ptr || from >= m->bytes.len) return;
    WIN32_MEMORY_RANGE_ENTRY range = {(void *)(uintptr_t)(m->bytes.ptr + from),
                                      (SIZE_T)WML_MIN(n, m->bytes.len - from)};
    PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}
