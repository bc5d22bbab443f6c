/* Private folders on Windows. */
#include "os/temp_sys.h"

#include "base/arena.h"
#include "os/fail.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void wml_temp_where(struct wml_buf *out)
{
    wchar_t name[256] = L"";
    DWORD n = WML_COUNT(name);
    if (GetComputerNameExW(ComputerNameDnsHostname, name, &n)) wml_narrow(name, out);
}

bool wml_temp_lives(int64_t pid)
{
    if (pid > UINT32_MAX) return true;
    HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)pid);
    if (!process) return GetLastError() != ERROR_INVALID_PARAMETER;
    bool lives = WaitForSingleObject(process, 0) != WAIT_OBJECT_0; /* somebody may still hold a dead one */
    CloseHandle(process);
    return lives;
}

enum wml_temp_made wml_temp_make(const char *path, const char *parent, struct wml_err *err)
{
    wchar_t *wide = wml_wide_path(path);
    bool made = CreateDirectoryW(wide, NULL);
    DWORD code = GetLastError();
    free(wide);
    if (made) return WML_TEMP_MADE;
    if (code == ERROR_ALREADY_EXISTS) return WML_TEMP_TAKEN;
    wml_fail_system(err, (int)code, "make a folder in", parent);
    return WML_TEMP_FAILED;
}

void wml_temp_each(const char *dir, const char *prefix, void *arg, void (*f)(void *arg, struct wml_str name))
{
    struct wml_buf text = {0};
    WIN32_FIND_DATAW e;
    wml_buf_fmt(&text, "%s/%s*", dir, prefix);
    wchar_t *wide = wml_wide_path(wml_buf_text(&text));
    HANDLE find = FindFirstFileW(wide, &e);
    free(wide);
    for (bool more = find != INVALID_HANDLE_VALUE; more; more = FindNextFileW(find, &e)) {
        wml_buf_clear(&text);
        wml_narrow(e.cFileName, &text);
        bool prefixed = wml_str_starts(wml_buf_view(&text), prefix);
        if (prefixed && !(e.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)) f(arg, wml_buf_view(&text));
    }
    if (find != INVALID_HANDLE_VALUE) FindClose(find);
    wml_buf_release(&text);
}
