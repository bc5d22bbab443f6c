/* UTF-16 at the edge, and what a file handle needs on Windows. Replacing a file that is mapped is refused
 * there; the old file is then renamed aside, which is allowed, and removed when its map closes. */
#define _CRT_RAND_S
#include "os/wide_win.h"

#include <inttypes.h>
#include "base/arena.h"
#include "os/path.h"
#include "os/sys.h"

/* From here on a path needs the prefix: folders end 12 below MAX_PATH. */
enum { LONG_PATH = 248 - 14, PATH_ROOM = 32768, REPLACE_TRIES = 8 };
#define ASIDE_END ".winml-old"

wchar_t *wml_wide(const char *utf8)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, NULL, 0);
    if (n <= 0) return NULL;
    wchar_t *wide = wml_xcalloc((size_t)n, sizeof *wide);
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, wide, n);
    return wide;
}

static wchar_t *with_prefix(const wchar_t *full, size_t n)
{
    bool unc = full[0] == L'\\' && full[1] == L'\\';
    const wchar_t *prefix = unc ? L"\\\\?\\UNC" : L"\\\\?\\", *rest = unc ? full + 1 : full;
    wchar_t *out = wml_xcalloc(n + 16, sizeof *out);
    memcpy(out, prefix, wcslen(prefix) * sizeof *out);
    memcpy(out + wcslen(prefix), rest, (n - (size_t)(rest - full)) * sizeof *out);
    return out;
}

wchar_t *wml_wide_path(const char *utf8)
{
    wchar_t *wide = wml_wide(utf8);
    if (!wide || !wide[0]) {
        if (wide) SetLastError(ERROR_PATH_NOT_FOUND);
        free(wide);
        return NULL;
    }
    DWORD n = GetFullPathNameW(wide, 0, NULL, NULL);
    if (n == 0) {
        free(wide);
        return NULL;
    }
    wchar_t *full = wml_xcalloc((size_t)n + 1, sizeof *full);
    n = GetFullPathNameW(wide, n + 1, full, NULL);
    free(wide);
    bool special = wcsncmp(full, L"\\\\?\\", 4) == 0 || wcsncmp(full, L"\\\\.\\", 4) == 0;
    if (n < LONG_PATH || special) return full;
    wchar_t *prefixed = with_prefix(full, n);
    free(full);
    return prefixed;
}

void wml_narrow(struct wml_buf *out, const wchar_t *wide, size_t n)
{
    if (!n) return;
    int len = WideCharToMultiByte(CP_UTF8, 0, wide, (int)n, NULL, 0, NULL, NULL);
    if (len <= 0) return;
    char *text = wml_xrealloc(NULL, (size_t)len);
    WideCharToMultiByte(CP_UTF8, 0, wide, (int)n, text, len, NULL, NULL);
    wml_buf_add(out, text, (size_t)len);
    free(text);
}

void wml_narrow_cstr(struct wml_buf *out, const wchar_t *wide)
{
    wml_narrow(out, wide, wcslen(wide));
}

HANDLE wml_win_open(const char *path, DWORD access, DWORD disposition, DWORD flags)
{
    wchar_t *wide = wml_wide_path(path);
    if (!wide) return INVALID_HANDLE_VALUE;
    DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE file = CreateFileW(wide, access, share, NULL, disposition, flags ? flags : FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = GetLastError();
    free(wide);
    SetLastError(code);
    return file;
}

bool wml_win_path_of(HANDLE file, struct wml_buf *out)
{
    wchar_t *wide = wml_xcalloc(PATH_ROOM, sizeof *wide);
    DWORD n = GetFinalPathNameByHandleW(file, wide, PATH_ROOM, FILE_NAME_NORMALIZED | VOLUME_NAME_DOS);
    bool ok = n > 0 && n < PATH_ROOM;
    const wchar_t *p = wide;
    if (ok && wcsncmp(p, L"\\\\?\\UNC\\", 8) == 0) {
        wml_buf_cstr(out, "//");
        p += 8;
    } else if (ok && wcsncmp(p, L"\\\\?\\", 4) == 0) p += 4;
    struct wml_buf text = {0};
    if (ok) wml_narrow_cstr(&text, p);
    for (size_t i = 0; i < text.len; i++) wml_buf_char(out, text.ptr[i] == '\\' ? '/' : text.ptr[i]);
    wml_buf_release(&text);
    free(wide);
    return ok;
}

uint32_t wml_win_random(void)
{
    unsigned value = 0;
    if (rand_s(&value) != 0) value = (unsigned)wml_now_ns();
    return value;
}

bool wml_win_is_aside(struct wml_str path)
{
    struct wml_str name = wml_path_name(path);
    return wml_str_starts(name, ".") && wml_str_ends(name, ASIDE_END);
}

static DWORD move(const char *from, const char *to, DWORD flags)
{
    wchar_t *a = wml_wide_path(from), *b = a ? wml_wide_path(to) : NULL;
    DWORD code = b && MoveFileExW(a, b, flags) ? 0 : GetLastError();
    free(a);
    free(b);
    return code;
}

/* Not zero: a folder, or a file that its owner protects. */
static DWORD fixed_kind(const char *path)
{
    wchar_t *wide = wml_wide_path(path);
    DWORD kind = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    return kind == INVALID_FILE_ATTRIBUTES ? 0 : kind & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_READONLY);
}

/* Renames `path` out of the way, to a name that is told. */
static DWORD move_aside(const char *path, struct wml_buf *aside)
{
    struct wml_buf name = {0};
    struct wml_str base = wml_str_sub(wml_path_name(wml_str(path)), 0, 180);
    wml_buf_fmt(&name, ".%.*s.%08" PRIx32 ASIDE_END, WML_ARG(base), wml_win_random());
    wml_path_join(aside, wml_path_dir(wml_str(path)), wml_buf_view(&name));
    wml_buf_release(&name);
    return move(path, wml_buf_text(aside), 0);
}

/* Refused while the file is mapped: wml_map_close tries again. */
static void try_delete(const struct wml_buf *path)
{
    wchar_t *wide = wml_wide_path(wml_buf_text(path));
    if (wide) DeleteFileW(wide);
    free(wide);
}

bool wml_win_set_aside(const char *path)
{
    struct wml_buf aside = {0};
    bool ok = fixed_kind(path) == 0 && move_aside(path, &aside) == 0;
    if (ok) try_delete(&aside);
    wml_buf_release(&aside);
    return ok;
}

static DWORD replace_aside(const char *from, const char *to)
{
    struct wml_buf aside = {0};
    DWORD code = move_aside(to, &aside);
    if (!code) {
        code = move(from, to, MOVEFILE_WRITE_THROUGH);
        if (code) move(wml_buf_text(&aside), to, 0);
        else try_delete(&aside);
    }
    wml_buf_release(&aside);
    return code;
}

DWORD wml_win_replace(const char *from, const char *to)
{
    DWORD code = 0;
    /* A virus scanner holds a fresh file for some milliseconds: such refusals pass. */
    for (unsigned i = 0; i < REPLACE_TRIES; i++) {
        code = move(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
        bool busy = code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE;
        if (!busy) return code;
        if (fixed_kind(to)) return code;
        if (replace_aside(from, to) == 0) return 0;
        wml_sleep_ms(10 * ((uint64_t)i + 1));
    }
    return code;
}
