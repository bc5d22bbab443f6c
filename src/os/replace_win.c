/* Replacing files on Windows, mapped ones included. */
#include "os/replace.h"

#include "base/arena.h"
#include "os/path.h"
#include "os/sys.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { TRIES = 6, PAUSE_MS = 20 };
static const wchar_t aside_end[] = L".winml-old";

static DWORD move(const wchar_t *from, const wchar_t *to)
{
    return MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING) ? ERROR_SUCCESS : GetLastError();
}

static bool in_use(DWORD code)
{
    return code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE;
}

/* "dir/.name.123.456.winml-old" */
static wchar_t *aside_of(const char *path)
{
    struct wml_buf text = {0}, name = {0};
    wml_buf_fmt(&name, ".%.*s.%d.%u.winml-old", WML_ARG(wml_str_sub(wml_path_name(wml_str(path)), 0, 180)), wml_pid(),
                (unsigned)(wml_now_ns() / 100));
    wml_path_join(&text, wml_path_dir(wml_str(path)), wml_buf_view(&name));
    wchar_t *wide = wml_wide_path(wml_buf_text(&text));
    wml_buf_release(&text);
    wml_buf_release(&name);
    return wide;
}

/* A write-protected file goes as well; one that is mapped stays until its map closes. */
static void discard(const wchar_t *aside)
{
    if (DeleteFileW(aside)) return;
    SetFileAttributesW(aside, FILE_ATTRIBUTE_NORMAL);
    if (!DeleteFileW(aside)) SetFileAttributesW(aside, FILE_ATTRIBUTE_HIDDEN);
}

unsigned wml_replace(const char *from, const char *to)
{
    wchar_t *source = wml_wide_path(from), *target = wml_wide_path(to), *aside = NULL;
    DWORD code = move(source, target), blocked = ERROR_SUCCESS;
    if (in_use(code) && GetFileAttributesW(target) != INVALID_FILE_ATTRIBUTES &&
        !(GetFileAttributesW(target) & FILE_ATTRIBUTE_DIRECTORY)) {
        aside = aside_of(to);
        blocked = move(target, aside);
        if (!blocked) {
            code = move(source, target);
            if (code) move(aside, target);
            else discard(aside);
        }
    }
    /* A virus scanner may look at the new file for a moment. */
    for (int i = 1; in_use(code) && i < TRIES; i++) {
        Sleep(PAUSE_MS);
        code = move(source, target);
    }
    free(source);
    free(target);
    free(aside);
    /* "Access denied" is said of a file that somebody else keeps open; the other call knows better. */
    return code && blocked == ERROR_SHARING_VIOLATION ? blocked : code;
}

wchar_t *wml_replaced_path(void *handle)
{
    wchar_t *path = wml_xcalloc(32768, sizeof *path);
    DWORD n = GetFinalPathNameByHandleW(handle, path, 32768, FILE_NAME_NORMALIZED);
    size_t end = WML_COUNT(aside_end) - 1;
    if (n > end && n < 32768 && wcscmp(path + n - end, aside_end) == 0) return path;
    free(path);
    return NULL;
}
