/* Files and folders on Windows. Every failure names the path and the system's own reason. */
#include "os/file.h"

#include <inttypes.h>
#include "os/fail.h"
#include "os/path.h"
#include "os/wide_win.h"

enum { READ_DEFAULT_MAX = 64 << 20, PIECE = 1 << 20 };
/* 100 ns between 1601 and 1970. */
static const int64_t epoch_1970 = INT64_C(116444736000000000);

static enum wml_code kind_of(int code)
{
    switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_MOD_NOT_FOUND: return WML_E_NOT_FOUND;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return WML_E_EXISTS;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: return WML_E_MEMORY;
    default: return WML_E_IO;
    }
}

bool wml_fail_system(struct wml_err *err, int code, const char *what, const char *path)
{
    wchar_t text[256] = {0};
    struct wml_buf why = {0};
    if (code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL || code == ERROR_DISK_QUOTA_EXCEEDED) {
        wml_fail(err, WML_E_IO, "Insufficient disk space: unable to write %s", path);
        return wml_hint(err, "free some space or choose another folder, then try again");
    }
    DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    DWORD n = FormatMessageW(flags, NULL, (DWORD)code, 0, text, (DWORD)WML_COUNT(text), NULL);
    while (n && (text[n - 1] <= L' ' || text[n - 1] == L'.')) n--;
    wml_narrow(&why, text, n);
    if (!n) wml_buf_fmt(&why, "error %d of the system", code);
    wml_fail(err, kind_of(code), "%s %s: %s", what, path, wml_buf_text(&why));
    wml_buf_release(&why);
    if (code == ERROR_ACCESS_DENIED) wml_hint(err, "check the permissions of the file and its folder");
    if (code == ERROR_SHARING_VIOLATION || code == ERROR_LOCK_VIOLATION || code == ERROR_USER_MAPPED_FILE)
        wml_hint(err, "another program has the file open: close it, then try again");
    return false;
}

struct wml_file_info wml_file_info(const char *path)
{
    BY_HANDLE_FILE_INFORMATION st;
    struct wml_file_info info = {0};
    HANDLE file = wml_win_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (file == INVALID_HANDLE_VALUE) {
        wchar_t *wide = GetLastError() == ERROR_SHARING_VIOLATION ? wml_wide_path(path) : NULL;
        if (wide && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES) info.kind = WML_FILE_OTHER;
        free(wide);
        return info;
    }
    info.kind = WML_FILE_OTHER;
    if (GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &st)) {
        bool dir = st.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
        info.kind = dir ? WML_FILE_DIR : WML_FILE_REGULAR;
        info.size = (uint64_t)st.nFileSizeHigh << 32 | st.nFileSizeLow;
        uint64_t time = (uint64_t)st.ftLastWriteTime.dwHighDateTime << 32 | st.ftLastWriteTime.dwLowDateTime;
        info.modified_ns = ((int64_t)time - epoch_1970) * 100;
        info.device = st.dwVolumeSerialNumber;
        info.inode = (uint64_t)st.nFileIndexHigh << 32 | st.nFileIndexLow;
    }
    CloseHandle(file);
    return info;
}

static bool read_all(HANDLE file, const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    char *piece = wml_xrealloc(NULL, PIECE);
    bool ok = true;
    for (;;) {
        DWORD n = 0;
        if (!ReadFile(file, piece, PIECE, &n, NULL) && GetLastError() != ERROR_BROKEN_PIPE) {
            ok = wml_fail_system(err, (int)GetLastError(), "read", path);
            break;
        }
        if (!n) break;
        if (out->len + n > max) {
            ok = wml_fail(err, WML_E_FORMAT, "%s is larger than %" PRIu64 " bytes", path, max);
            break;
        }
        wml_buf_add(out, piece, n);
    }
    if (ok && out->failed) ok = wml_fail(err, WML_E_MEMORY, "%s does not fit into memory", path);
    free(piece);
    return ok;
}

bool wml_file_read(const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    HANDLE file = wml_win_open(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_SEQUENTIAL_SCAN);
    if (file == INVALID_HANDLE_VALUE) {
        int code = (int)GetLastError();
        if (wml_dir_exists(path)) return wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
        return wml_fail_system(err, code, "open", path);
    }
    if (!max) max = READ_DEFAULT_MAX;
    if (out->max == 0 || out->max < max) out->max = (size_t)max + 1;
    bool ok = read_all(file, path, max, out, err);
    CloseHandle(file);
    return ok;
}

bool wml_file_append(const char *path, struct wml_str bytes, struct wml_err *err)
{
    HANDLE file = wml_win_open(path, FILE_APPEND_DATA | SYNCHRONIZE, OPEN_ALWAYS, 0);
    if (file == INVALID_HANDLE_VALUE) return wml_fail_system(err, (int)GetLastError(), "open", path);
    bool ok = true;
    while (ok && bytes.len) {
        DWORD n = 0;
        ok = WriteFile(file, bytes.ptr, (DWORD)WML_MIN(bytes.len, (size_t)1 << 30), &n, NULL);
        if (!ok) wml_fail_system(err, (int)GetLastError(), "write", path);
        bytes = wml_str_sub(bytes, n, bytes.len);
    }
    CloseHandle(file);
    return ok;
}

bool wml_file_rename(const char *from, const char *to, struct wml_err *err)
{
    DWORD code = wml_win_replace(from, to);
    return code == 0 || wml_fail_system(err, (int)code, "rename to", to);
}

bool wml_file_remove(const char *path)
{
    wchar_t *wide = wml_wide_path(path);
    bool ok = wide && DeleteFileW(wide);
    DWORD code = GetLastError();
    free(wide);
    if (ok || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND) return true;
    return code != ERROR_ACCESS_DENIED && code != ERROR_USER_MAPPED_FILE ? false : wml_win_set_aside(path);
}
