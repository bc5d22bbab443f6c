/* Folders on Windows. A folder behind a link or a junction is never walked into when removing. */
#include "os/file.h"

#include <inttypes.h>
#include "os/fail.h"
#include "os/path.h"
#include "os/wide_win.h"

/* From the last folder that exists down to the wanted one. */
static bool make(const char *path, unsigned depth, struct wml_err *err)
{
    wchar_t *wide = wml_wide_path(path);
    bool ok = wide && CreateDirectoryW(wide, NULL);
    DWORD code = GetLastError();
    free(wide);
    if (ok || wml_dir_exists(path)) return true;
    struct wml_str dir = wml_path_dir(wml_str(path));
    if (code == ERROR_PATH_NOT_FOUND && depth < 200 && dir.len < strlen(path)) {
        char *parent = wml_xcalloc(dir.len + 1, 1);
        memcpy(parent, dir.ptr, dir.len);
        ok = make(parent, depth + 1, err) && make(path, 200, err);
        free(parent);
        return ok;
    }
    return wml_fail_system(err, (int)code, "make the folder", path);
}

bool wml_dir_make(const char *path, struct wml_err *err)
{
    struct wml_buf clean = {0};
    if (!*path || wml_dir_exists(path)) return true;
    wml_path_normal(&clean, wml_str(path));
    bool ok = make(wml_buf_text(&clean), 0, err);
    wml_buf_release(&clean);
    return ok;
}

static bool remove_one(const char *path, DWORD kind)
{
    wchar_t *wide = wml_wide_path(path);
    if (wide && (kind & FILE_ATTRIBUTE_READONLY)) SetFileAttributesW(wide, kind & ~(DWORD)FILE_ATTRIBUTE_READONLY);
    bool ok = (kind & FILE_ATTRIBUTE_DIRECTORY) ? wide && RemoveDirectoryW(wide) : wml_file_remove(path);
    free(wide);
    return ok;
}

bool wml_dir_remove(const char *path)
{
    struct wml_dir_list list = {0};
    wchar_t *wide = wml_wide_path(path);
    DWORD kind = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES, code = GetLastError();
    bool ok = true;
    free(wide);
    if (kind == INVALID_FILE_ATTRIBUTES) return code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    if ((kind & FILE_ATTRIBUTE_DIRECTORY) && !(kind & FILE_ATTRIBUTE_REPARSE_POINT)) {
        ok = wml_dir_list(path, &list, NULL);
        for (size_t i = 0; i < list.v.len; i++) {
            struct wml_buf inner = {0};
            wml_path_join(&inner, wml_str(path), list.v.at[i].name);
            ok = wml_dir_remove(wml_buf_text(&inner)) && ok;
            wml_buf_release(&inner);
        }
        wml_dir_list_release(&list);
    }
    return remove_one(path, kind) && ok;
}

bool wml_dir_temp(const char *parent, const char *prefix, struct wml_buf *path, struct wml_err *err)
{
    struct wml_buf temp = {0}, name = {0};
    DWORD code = ERROR_ALREADY_EXISTS;
    if (parent) wml_buf_cstr(&temp, parent);
    else wml_path_temp(&temp);
    size_t start = path->len;
    for (int i = 0; i < 100 && code == ERROR_ALREADY_EXISTS; i++) {
        wml_buf_clear(&name);
        if (path->ptr) path->ptr[path->len = start] = 0;
        wml_buf_fmt(&name, "%s%08" PRIx32, prefix, wml_win_random());
        wml_path_join(path, wml_buf_view(&temp), wml_buf_view(&name));
        wchar_t *wide = wml_wide_path(path->ptr + start);
        code = wide && CreateDirectoryW(wide, NULL) ? 0 : GetLastError();
        free(wide);
    }
    if (code) {
        wml_fail_system(err, (int)code, "make a folder in", wml_buf_text(&temp));
        wml_buf_clear(path);
    }
    wml_buf_release(&temp);
    wml_buf_release(&name);
    return code == 0;
}

static int by_name(const void *a, const void *b)
{
    return wml_str_cmp(((const struct wml_dir_entry *)a)->name, ((const struct wml_dir_entry *)b)->name);
}

static void add_entry(struct wml_dir_list *out, const WIN32_FIND_DATAW *found)
{
    struct wml_buf name = {0};
    wml_narrow_cstr(&name, found->cFileName);
    if (strcmp(wml_buf_text(&name), ".") != 0 && strcmp(wml_buf_text(&name), "..") != 0) {
        bool dir = found->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
        struct wml_dir_entry one = {wml_arena_str(&out->arena, wml_buf_view(&name)), dir};
        WML_PUSH(&out->v, one);
    }
    wml_buf_release(&name);
}

bool wml_dir_list(const char *path, struct wml_dir_list *out, struct wml_err *err)
{
    struct wml_buf pattern = {0};
    WIN32_FIND_DATAW found;
    *out = (struct wml_dir_list){0};
    wml_path_join(&pattern, wml_str(*path ? path : "."), WML_STR(""));
    if (!pattern.len) wml_buf_cstr(&pattern, "./");
    wml_buf_char(&pattern, '*');
    wchar_t *wide = wml_wide_path(wml_buf_text(&pattern));
    HANDLE find = wide ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    DWORD code = GetLastError();
    free(wide);
    wml_buf_release(&pattern);
    if (find == INVALID_HANDLE_VALUE) {
        if (code == ERROR_FILE_NOT_FOUND && wml_dir_exists(path)) return true; /* the empty root of a drive */
        return wml_fail_system(err, (int)code, "list", path);
    }
    do add_entry(out, &found);
    while (FindNextFileW(find, &found));
    FindClose(find);
    if (out->v.len) qsort(out->v.at, out->v.len, sizeof *out->v.at, by_name);
    return true;
}
