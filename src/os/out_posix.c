/* The system's part of atomic output on POSIX. */
#include "os/out_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/fail.h"

static bool fail(struct wml_out *o, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, errno, what, o->path);
}

/* The hidden neighbour of o->path, with a name that nobody has yet. */
static int make_temp(struct wml_out *o)
{
    struct wml_buf temp = {0};
    int fd = -1;
    errno = EEXIST;
    for (int attempt = 0; fd < 0 && errno == EEXIST && attempt < 100; attempt++) {
        wml_out_temp_name(&temp, o->path);
        fd = open(wml_buf_text(&temp), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        int code = errno;
        if (fd < 0) wml_out_forget(wml_buf_text(&temp));
        errno = code;
    }
    int code = errno;
    if (fd >= 0) o->temp = wml_xstrdup(wml_buf_text(&temp));
    wml_buf_release(&temp);
    errno = code;
    return fd;
}

/* A link is written through: its target is what gets replaced. */
static char *final_path(const char *path)
{
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;
    return real ? real : wml_xstrdup(path);
}

bool wml_out_sys_open(struct wml_out *o, const char *path, struct wml_err *err)
{
    struct stat old;
    o->path = final_path(path);
    bool exists = stat(o->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) return wml_out_refuse_folder(path, err);
    int fd = exists && !S_ISREG(old.st_mode) ? open(o->path, O_WRONLY | O_CLOEXEC) : make_temp(o);
    if (fd < 0) {
        fail(o, "create", err);
        wml_out_hint_folder(o->path, err);
        return false;
    }
    o->file = (intptr_t)fd + 1;
    if (exists && o->temp && fchmod(fd, old.st_mode & 0777) != 0) errno = 0; /* the old rights, where we may */
    return true;
}

bool wml_out_sys_reserve(struct wml_out *o, uint64_t n, struct wml_err *err)
{
    if (n > INT64_MAX || fallocate((int)o->file - 1, FALLOC_FL_KEEP_SIZE, 0, (off_t)n) == 0) return true;
    return (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) || fail(o, "write", err);
}

enum { WRITEBACK = 8 << 20, COPY_STEP = 16 << 20 };

/* Sends what was written on its way to the disk while more is being made: the flush at the end then finds
 * little left to wait for. */
static void start_writeback(struct wml_out *o, size_t n)
{
    o->dirty += n;
    if (o->dirty < WRITEBACK) return;
    sync_file_range((int)o->file - 1, 0, 0, SYNC_FILE_RANGE_WRITE);
    o->dirty = 0;
}

bool wml_out_sys_write(struct wml_out *o, const unsigned char *bytes, size_t n, struct wml_err *err)
{
    while (n) {
        ssize_t done = write((int)o->file - 1, bytes, WML_MIN(n, (size_t)1 << 30));
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return fail(o, "write", err);
        start_writeback(o, (size_t)done);
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* Through a buffer, where the kernel cannot copy by itself. */
static bool copy_plain(struct wml_out *o, int fd, uint64_t from, uint64_t n, struct wml_err *err)
{
    while (n) {
        ssize_t got = pread(fd, o->pending, (size_t)WML_MIN(n, (uint64_t)WML_OUT_PENDING), (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(o, "read the source of", err);
        if (got == 0) return wml_fail(err, WML_E_IO, "the source of %s ended early", o->path);
        if (!wml_out_sys_write(o, o->pending, (size_t)got, err)) return false;
        from += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return true;
}

bool wml_out_sys_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err)
{
    while (n) {
        off_t at = (off_t)from;
        size_t most = (size_t)WML_MIN(n, (uint64_t)COPY_STEP);
        ssize_t done = copy_file_range((int)file, &at, (int)o->file - 1, NULL, most, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return fail(o, "write", err);
        if (done <= 0) return copy_plain(o, (int)file, from, n, err);
        start_writeback(o, (size_t)done);
        from += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return true;
}

bool wml_out_sys_flush(struct wml_out *o, struct wml_err *err)
{
    /* A file on a system that cannot sync is as good as it gets. */
    return fsync((int)o->file - 1) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS || fail(o, "flush", err);
}

bool wml_out_sys_close(struct wml_out *o, struct wml_err *err)
{
    int fd = (int)o->file - 1;
    o->file = 0;
    return close(fd) == 0 || errno == EINTR || fail(o, "close", err);
}

bool wml_out_sys_rename(struct wml_out *o, struct wml_err *err)
{
    return rename(o->temp, o->path) == 0 || fail(o, "rename to", err);
}

struct entry { /* of the kernel; readdir allocates, which a signal handler must not */
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char kind;
    char name[];
};

/* A folder goes with the files in it. */
void wml_out_sys_remove(const char *temp)
{
    if (unlink(temp) == 0 || errno == ENOENT) return;
    int dir = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct entry) char piece[2048];
    ssize_t n = 0;
    while (dir >= 0 && (n = syscall(SYS_getdents64, dir, piece, sizeof piece)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct entry *e = (const void *)(piece + at);
            unlinkat(dir, e->name, 0); /* "." and ".." refuse */
            at += e->length;
        }
    if (dir >= 0) close(dir);
    rmdir(temp);
}
