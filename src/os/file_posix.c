/* Files and folders on POSIX. Every failure names the path and the system's own reason. */
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/fail.h"
#include "os/out_sys.h"
#include "os/path.h"
#include "os/sys.h"

enum { READ_DEFAULT_MAX = 64 << 20, PIECE = 1 << 20 };

bool wml_fail_system(struct wml_err *err, int code, const char *what, const char *path)
{
    enum wml_code kind = code == ENOENT || code == ENOTDIR ? WML_E_NOT_FOUND
                       : code == EEXIST ? WML_E_EXISTS : code == ENOMEM ? WML_E_MEMORY : WML_E_IO;
    if (code == ENOSPC || code == EDQUOT) {
        wml_fail(err, WML_E_IO, "Insufficient disk space: unable to write %s", path);
        return wml_hint(err, "free some space or choose another folder, then try again");
    }
    wml_fail(err, kind, "%s %s: %s", what, path, strerror(code));
    if (code == EACCES || code == EPERM) wml_hint(err, "check the permissions of the file and its folder");
    return false;
}

struct wml_file_info wml_file_info(const char *path)
{
    struct stat st;
    struct wml_file_info info = {0};
    if (stat(path, &st) != 0) return info;
    info.kind = S_ISREG(st.st_mode) ? WML_FILE_REGULAR : S_ISDIR(st.st_mode) ? WML_FILE_DIR : WML_FILE_OTHER;
    info.size = (uint64_t)st.st_size;
    info.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    info.device = (uint64_t)st.st_dev;
    info.inode = (uint64_t)st.st_ino;
    return info;
}

static bool read_all(int fd, const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    char *piece = wml_xrealloc(NULL, PIECE);
    ssize_t n = 0;
    bool ok = true;
    for (;;) {
        n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        if (out->len + (size_t)n > max) {
            ok = wml_fail(err, WML_E_FORMAT, "%s is larger than %" PRIu64 " bytes", path, max);
            break;
        }
        wml_buf_add(out, piece, (size_t)n);
    }
    if (ok && n < 0) ok = wml_fail_system(err, errno, "read", path);
    if (ok && out->failed) ok = wml_fail(err, WML_E_MEMORY, "%s does not fit into memory", path);
    free(piece);
    return ok;
}

bool wml_file_read(const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return wml_fail_system(err, errno, "open", path);
    bool ok = fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
    if (!ok) wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
    if (!max) max = READ_DEFAULT_MAX;
    if (out->max == 0 || out->max < max) out->max = (size_t)max + 1;
    ok = ok && read_all(fd, path, max, out, err);
    close(fd);
    return ok;
}

bool wml_file_append(const char *path, struct wml_str bytes, struct wml_err *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return wml_fail_system(err, errno, "open", path);
    bool ok = true;
    for (size_t at = 0; ok && at < bytes.len;) {
        ssize_t n = write(fd, bytes.ptr + at, bytes.len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) ok = wml_fail_system(err, errno, "write", path);
        else at += (size_t)n;
    }
    close(fd);
    return ok;
}

bool wml_file_rename(const char *from, const char *to, struct wml_err *err)
{
    struct stat st;
    if (lstat(to, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode))
        return wml_fail(err, WML_E_IO, "%s is a device or a pipe, not a file", to);
    if (rename(from, to) != 0) return wml_fail_system(err, errno, "rename to", to);
    wml_out_forget(from);
    return true;
}

bool wml_file_link(const char *target, const char *path, struct wml_err *err)
{
    if (symlink(target, path) == 0) return true;
    const int code = errno;
    wml_fail_system(err, code, "make the link", path);
    if (err && (code == EPERM || code == ENOTSUP || code == ENOSYS)) err->code = WML_E_UNSUPPORTED;
    return false;
}

bool wml_file_link_hard(const char *target, const char *path)
{
    return linkat(AT_FDCWD, target, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

bool wml_file_remove(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT) return false;
    wml_out_forget(path);
    return true;
}

bool wml_dir_make(const char *path, struct wml_err *err)
{
    struct wml_buf part = {0};
    bool ok = true;
    if (!*path || wml_dir_exists(path)) return true;
    for (size_t i = 1; ok && i <= strlen(path); i++) {
        if (path[i] && path[i] != '/') continue;
        wml_buf_clear(&part);
        wml_buf_add(&part, path, i);
        const char *p = wml_buf_text(&part);
        const int code = mkdir(p, 0777) == 0 ? 0 : errno;
        ok = !code || wml_dir_exists(p) || wml_fail_system(err, code, "make the folder", p);
    }
    wml_buf_release(&part);
    return ok;
}

bool wml_dir_remove(const char *path)
{
    struct wml_dir_list list = {0};
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT;
    if (!S_ISDIR(st.st_mode)) return unlink(path) == 0;
    bool ok = wml_dir_list(path, &list, NULL);
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_buf inner = {0};
        wml_path_join(&inner, wml_str(path), list.v.at[i].name);
        ok = wml_dir_remove(wml_buf_text(&inner)) && ok;
        wml_buf_release(&inner);
    }
    wml_dir_list_release(&list);
    wml_out_forget(path);
    return rmdir(path) == 0 && ok;
}

static int by_name(const void *a, const void *b)
{
    return wml_str_cmp(((const struct wml_dir_entry *)a)->name, ((const struct wml_dir_entry *)b)->name);
}

bool wml_dir_list(const char *path, struct wml_dir_list *out, struct wml_err *err)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    *out = (struct wml_dir_list){0};
    if (!dir) return wml_fail_system(err, errno, "list", path);
    while ((e = readdir(dir)) != NULL) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct wml_dir_entry one = {wml_arena_str(&out->arena, wml_str(e->d_name)), e->d_type == DT_DIR};
        if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK)
            one.is_dir = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
        WML_PUSH(&out->v, one);
    }
    closedir(dir);
    if (out->v.len) qsort(out->v.at, out->v.len, sizeof *out->v.at, by_name);
    return true;
}
