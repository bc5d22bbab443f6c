/* Locked files on Windows. */
#include "os/lock.h"

#include "os/fail.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

bool wml_lock_try(struct wml_lock *l, const char *path, struct wml_err *err)
{
    OVERLAPPED first = {0};
    *l = (struct wml_lock){0};
    wchar_t *wide = wml_wide_path(path);
    HANDLE h = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    free(wide);
    if (h == INVALID_HANDLE_VALUE) return wml_fail_system(err, (int)code, "open", path);
    if (LockFileEx(h, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &first) ||
        (GetLastError() != ERROR_LOCK_VIOLATION && GetLastError() != ERROR_IO_PENDING))
        l->file = (intptr_t)h + 1;
    else CloseHandle(h);
    return true;
}

void wml_lock_release(struct wml_lock *l)
{
    if (l->file) CloseHandle((HANDLE)(l->file - 1)); /* its locks go with it */
    *l = (struct wml_lock){0};
}
