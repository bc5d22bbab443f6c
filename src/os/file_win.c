/* Files and folders on Windows. Everything is opened so that others may read, write, rename and delete it
 * meanwhile, as on POSIX. */
#include "os/file.h"

#include <inttypes.h>
#include "os/fail.h"
#include "os/out_sys.h"
#include "os/path.h"
#include "os/replace.h"
#include "os/sys.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { READ_DEFAULT_MAX = 64 << 20, PIECE = 1 << 20, SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

static HANDLE open_path(const char *path, DWORD access, DWORD how)
{
    wchar_t *wide = wml_wide_path(path);
    HANDLE h = CreateFileW(wide, access, SHARE_ALL, NULL, how, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, NULL);
    DWORD code = GetLastError();
    free(wide);
    SetLastError(code);
    return h;
}

struct wml_file_info wml_file_info(const char *path)
{
    struct wml_file_info info = {0};
    BY_HANDLE_FILE_INFORMATION st;
    HANDLE h = *path ? open_path(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING) : INVALID_HANDLE_VALUE;
    if (h == INVALID_HANDLE_VALUE) return info;
    info.kind = WML_FILE_OTHER;
    if (GetFileType(h) == FILE_TYPE_DISK && GetFileInformationByHandle(h, &st)) {
        info.kind = st.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? WML_FILE_DIR : WML_FILE_REGULAR;
        info.size = (uint64_t)st.nFileSizeHigh << 32 | st.nFileSizeLow;
        uint64_t ticks = (uint64_t)st.ftLastWriteTime.dwHighDateTime << 32 | st.ftLastWriteTime.dwLowDateTime;
        /* From 100 ns since 1601. */
        info.modified_ns = ((int64_t)ticks - INT64_C(116444736000000000)) * 100;
        info.device = st.dwVolumeSerialNumber;
        info.inode = (uint64_t)st.nFileIndexHigh << 32 | st.nFileIndexLow;
    }
    CloseHandle(h);
    return info;
}

static bool read_all(HANDLE h, const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    char *piece = wml_xrealloc(NULL, PIECE);
    DWORD n = 0, code = 0;
    bool ok = true;
    for (;;) {
        if (!ReadFile(h, piece, PIECE, &n, NULL)) code = GetLastError();
        if (code || !n) break;
        if (out->len + n > max) {
            ok = wml_fail(err, WML_E_FORMAT, "%s is larger than %" PRIu64 " bytes", path, max);
            break;
        }
        wml_buf_add(out, piece, n);
    }
    if (ok && code && code != ERROR_BROKEN_PIPE && code != ERROR_HANDLE_EOF)
        ok = wml_fail_system(err, (int)code, "read", path);
    if (ok && out->failed) ok = wml_fail(err, WML_E_MEMORY, "%s does not fit into memory", path);
    free(piece);
    return ok;
}

bool wml_file_read(const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    if (wml_dir_exists(path)) return wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
    HANDLE h = open_path(path, GENERIC_READ, OPEN_EXISTING);
    if (h == INVALID_HANDLE_VALUE) return wml_fail_system(err, (int)GetLastError(), "open", path);
    if (!max) max = READ_DEFAULT_MAX;
    if (out->max == 0 || out->max < max) out->max = (size_t)max + 1;
    bool ok = read_all(h, path, max, out, err);
    CloseHandle(h);
    return ok;
}

bool wml_file_append(const char *path, struct wml_str bytes, struct wml_err *err)
{
    HANDLE h = open_path(path, FILE_APPEND_DATA | SYNCHRONIZE, OPEN_ALWAYS);
    if (h == INVALID_HANDLE_VALUE) return wml_fail_system(err, (int)GetLastError(), "open", path);
    bool ok = true;
    while (ok && bytes.len) {
        DWORD done = 0;
        ok = WriteFile(h, bytes.ptr, (DWORD)WML_MIN(bytes.len, (size_t)1 << 30), &done, NULL) ||
             wml_fail_system(err, (int)GetLastError(), "write", path);
        bytes = wml_str_sub(bytes, done, bytes.len);
    }
    CloseHandle(h);
    return ok;
}

bool wml_file_rename(const char *from, const char *to, struct wml_err *err)
{
    DWORD code = wml_replace(from, to);
    if (!code) wml_out_forget(from);
    return !code || wml_fail_system(err, (int)code, "rename to", to);
}

/* Without the right to make links, developers' machines still may, when asked so. */
bool wml_file_link(const char *target, const char *path, struct wml_err *err)
{
    const DWORD unprivileged = 2; /* SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE, of Windows 10 1703 */
    wchar_t *to = wml_wide(target), *wide = wml_wide_path(path);
    for (wchar_t *c = to; *c; c++)
        if (*c == L'/') *c = L'\\';
    bool ok = CreateSymbolicLinkW(wide, to, unprivileged) || CreateSymbolicLinkW(wide, to, 0);
    DWORD code = GetLastError();
    if (ok && GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES) { /* Wine says yes and does nothing */
        ok = false;
        code = ERROR_NOT_SUPPORTED;
    }
    free(to);
    free(wide);
    if (ok) return true;
    wml_fail_system(err, (int)code, "make the link", path);
    if (err && err->code != WML_E_EXISTS && err->code != WML_E_NOT_FOUND) err->code = WML_E_UNSUPPORTED;
    return false;
}

bool wml_file_link_hard(const char *target, const char *path)
{
    wchar_t *to = wml_wide_path(target), *wide = wml_wide_path(path);
    const DWORD attributes = GetFileAttributesW(to);
    bool ok = attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_REPARSE_POINT) && CreateHardLinkW(wide, to, NULL);
    free(to);
    free(wide);
    return ok;
}

bool wml_file_remove(const char *path)
{
    wchar_t *wide = wml_wide_path(path);
    bool ok = DeleteFileW(wide);
    if (!ok && GetLastError() == ERROR_ACCESS_DENIED && SetFileAttributesW(wide, FILE_ATTRIBUTE_NORMAL))
        ok = DeleteFileW(wide);
    ok = ok || GetLastError() == ERROR_FILE_NOT_FOUND || GetLastError() == ERROR_PATH_NOT_FOUND;
    free(wide);
    if (ok) wml_out_forget(path); /* not earlier: path may be the name that is remembered, and its memory goes */
    return ok;
}

bool wml_dir_make(const char *path, struct wml_err *err)
{
    struct wml_buf parent = {0};
    if (!*path || wml_dir_exists(path)) return true;
    wml_buf_str(&parent, wml_path_dir(wml_str(path)));
    bool above = parent.len && parent.len < strlen(path);
    bool ok = !above || wml_dir_make(wml_buf_text(&parent), err);
    wml_buf_release(&parent);
    if (!ok) return false;
    wchar_t *wide = wml_wide_path(path);
    ok = CreateDirectoryW(wide, NULL);
    DWORD code = GetLastError();
    free(wide);
    return ok || wml_dir_exists(path) || wml_fail_system(err, (int)code, "make the folder", path);
}

bool wml_dir_remove(const char *path)
{
    struct wml_dir_list list = {0};
    wchar_t *wide = wml_wide_path(path);
    DWORD kind = GetFileAttributesW(wide);
    bool ok = true;
    if (kind == INVALID_FILE_ATTRIBUTES || !(kind & FILE_ATTRIBUTE_DIRECTORY)) {
        free(wide);
        return wml_file_remove(path);
    }
    /* A link to a folder is removed, not what it points to. */
    if (!(kind & FILE_ATTRIBUTE_REPARSE_POINT)) ok = wml_dir_list(path, &list, NULL);
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_buf inner = {0};
        wml_path_join(&inner, wml_str(path), list.v.at[i].name);
        ok = wml_dir_remove(wml_buf_text(&inner)) && ok;
        wml_buf_release(&inner);
    }
    wml_dir_list_release(&list);
    wml_out_forget(path);
    ok = RemoveDirectoryW(wide) && ok;
    free(wide);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return wml_str_cmp(((const struct wml_dir_entry *)a)->name, ((const struct wml_dir_entry *)b)->name);
}

bool wml_dir_list(const char *path, struct wml_dir_list *out, struct wml_err *err)
{
    struct wml_buf all = {0}, name = {0};
    WIN32_FIND_DATAW e;
    *out = (struct wml_dir_list){0};
    wml_buf_fmt(&all, "%s/*", *path ? path : ".");
    wchar_t *wide = wml_wide_path(wml_buf_text(&all));
    HANDLE find = FindFirstFileW(wide, &e);
    DWORD code = GetLastError();
    free(wide);
    wml_buf_release(&all);
    if (find == INVALID_HANDLE_VALUE) {
        /* The root of a drive has not even "."; it may be empty. */
        if (code == ERROR_FILE_NOT_FOUND && wml_dir_exists(path)) return true;
        return wml_fail_system(err, (int)code, "list", path);
    }
    do {
        if (wcscmp(e.cFileName, L".") == 0 || wcscmp(e.cFileName, L"..") == 0) continue;
        wml_buf_clear(&name);
        wml_narrow(e.cFileName, &name);
        struct wml_dir_entry one = {wml_arena_str(&out->arena, wml_buf_view(&name)),
                                    (e.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0};
        WML_PUSH(&out->v, one);
    } while (FindNextFileW(find, &e));
    FindClose(find);
    wml_buf_release(&name);
    if (out->v.len) qsort(out->v.at, out->v.len, sizeof *out->v.at, by_name);
    return true;
}
