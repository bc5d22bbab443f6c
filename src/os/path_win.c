/* Paths that Windows knows. They come out with "/", which every call of the system takes. */
#include "os/path.h"

#include "base/arena.h"
#include "os/fail.h"
#include "os/sys.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { PATH_ROOM = 32768 };

/* Without the prefix of long paths, and normal. */
static void put(struct wml_buf *out, const wchar_t *wide)
{
    struct wml_buf text = {0};
    wml_narrow(wide, &text);
    struct wml_str s = wml_buf_view(&text);
    if (wml_str_starts(s, "\\\\?\\UNC\\")) {
        text.ptr[6] = '\\';
        s = wml_str_sub(s, 6, s.len);
    } else if (wml_str_starts(s, "\\\\?\\") && s.len > 5 && s.ptr[5] == ':') s = wml_str_sub(s, 4, s.len);
    wml_path_normal(out, s);
    wml_buf_release(&text);
}

bool wml_path_absolute(struct wml_buf *out, struct wml_str p, struct wml_err *err)
{
    struct wml_buf text = {0};
    wml_buf_str(&text, p);
    wchar_t *wide = wml_wide(wml_buf_text(&text)), *full = wml_xcalloc(PATH_ROOM, sizeof *full);
    DWORD n = GetFullPathNameW(wide, PATH_ROOM, full, NULL);
    bool ok = n && n < PATH_ROOM;
    if (ok) put(out, full);
    else wml_fail_system(err, (int)GetLastError(), "make absolute:", wml_buf_text(&text));
    free(wide);
    free(full);
    wml_buf_release(&text);
    return ok;
}

bool wml_path_real(struct wml_buf *out, struct wml_str p, struct wml_err *err)
{
    struct wml_buf text = {0};
    wml_buf_str(&text, p);
    wchar_t *wide = wml_wide_path(wml_buf_text(&text)), *full = wml_xcalloc(PATH_ROOM, sizeof *full);
    HANDLE h = CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    bool ok = h != INVALID_HANDLE_VALUE;
    if (!ok) wml_fail_system(err, (int)GetLastError(), "find", wml_buf_text(&text));
    else {
        DWORD n = GetFinalPathNameByHandleW(h, full, PATH_ROOM, FILE_NAME_NORMALIZED);
        if (n && n < PATH_ROOM) put(out, full);
        else ok = wml_path_absolute(out, p, err);
        CloseHandle(h);
    }
    free(wide);
    free(full);
    wml_buf_release(&text);
    return ok;
}

/* A folder that an environment variable names. */
static bool from_env(struct wml_buf *out, const char *name)
{
    struct wml_buf value = {0};
    bool ok = wml_env(name, &value) && value.len;
    if (ok) wml_path_normal(out, wml_buf_view(&value));
    wml_buf_release(&value);
    return ok;
}

bool wml_path_home(struct wml_buf *out)
{
    return from_env(out, "USERPROFILE");
}

bool wml_path_cache(struct wml_buf *out)
{
    if (from_env(out, "XDG_CACHE_HOME") || from_env(out, "LOCALAPPDATA")) return true;
    if (!wml_path_home(out)) return false;
    wml_buf_cstr(out, "/AppData/Local");
    return true;
}

void wml_path_temp(struct wml_buf *out)
{
    wchar_t path[MAX_PATH + 2];
    DWORD n = GetTempPathW(WML_COUNT(path), path);
    if (n && n < WML_COUNT(path)) put(out, path);
    else wml_buf_char(out, '.');
}

bool wml_path_program(struct wml_buf *out)
{
    wchar_t *path = wml_xcalloc(PATH_ROOM, sizeof *path);
    DWORD n = GetModuleFileNameW(NULL, path, PATH_ROOM);
    bool ok = n && n < PATH_ROOM;
    if (ok) put(out, path);
    free(path);
    return ok;
}
