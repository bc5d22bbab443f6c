/* UTF-16 at the edge of Windows, and its errors in UTF-8. */
#include "os/wide.h"

#include "base/arena.h"
#include "os/fail.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { LONG_PATH = 240 };

wchar_t *wml_wide(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = wml_xcalloc((size_t)WML_MAX(n, 0) + 1, sizeof *wide);
    MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, n);
    return wide;
}

wchar_t *wml_wide_path(const char *path)
{
    static const wchar_t local[] = L"\\\\?\\", share[] = L"\\\\?\\UNC\\";
    wchar_t *wide = wml_wide(path);
    if (wcslen(wide) < LONG_PATH || wcsncmp(wide, local, 4) == 0) return wide;
    DWORD n = GetFullPathNameW(wide, 0, NULL, NULL);
    wchar_t *full = wml_xcalloc((size_t)n + WML_COUNT(share), sizeof *full);
    /* Room for the prefix is left before the text. */
    size_t at = WML_COUNT(share) - 1;
    if (!n || !GetFullPathNameW(wide, n, full + at, NULL)) {
        free(full);
        return wide;
    }
    free(wide);
    bool is_share = full[at] == L'\\' && full[at + 1] == L'\\';
    const wchar_t *prefix = is_share ? share : local;
    const wchar_t *rest = is_share ? full + at + 2 : full + at;
    size_t head = wcslen(prefix), tail = wcslen(rest);
    memmove(full + head, rest, (tail + 1) * sizeof *full);
    memcpy(full, prefix, head * sizeof *full);
    return full;
}

void wml_narrow(const wchar_t *wide, struct wml_buf *out)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    if (n <= 1) return;
    char *text = wml_xrealloc(NULL, (size_t)n);
    WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, n, NULL, NULL);
    wml_buf_add(out, text, (size_t)n - 1);
    free(text);
}

/* The system's own words without their line end and full stop. */
static void reason(int code, struct wml_buf *out)
{
    wchar_t text[512];
    DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, (DWORD)code, 0, text,
                             WML_COUNT(text), NULL);
    while (n && (text[n - 1] <= L' ' || text[n - 1] == L'.')) n--;
    text[WML_MIN(n, WML_COUNT(text) - 1)] = L'\0';
    if (n) wml_narrow(text, out);
    else wml_buf_fmt(out, "error %d", code);
}

bool wml_fail_system(struct wml_err *err, int code, const char *what, const char *path)
{
    enum wml_code kind = WML_E_IO;
    struct wml_buf why = {0};
    switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH: kind = WML_E_NOT_FOUND; break;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS: kind = WML_E_EXISTS; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: kind = WML_E_MEMORY; break;
    default: break;
    }
    if (code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL || code == ERROR_DISK_QUOTA_EXCEEDED) {
        wml_fail(err, WML_E_IO, "Insufficient disk space: unable to write %s", path);
        return wml_hint(err, "free some space or choose another folder, then try again");
    }
    reason(code, &why);
    wml_fail(err, kind, "%s %s: %s", what, path, wml_buf_text(&why));
    wml_buf_release(&why);
    if (code == ERROR_ACCESS_DENIED) wml_hint(err, "check the permissions of the file and its folder");
    if (code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE)
        wml_hint(err, "another program has the file open: close it there, then try again");
    return false;
}
