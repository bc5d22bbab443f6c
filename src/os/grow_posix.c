/* Files that grow at their end, on POSIX. */
#include "os/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "os/fail.h"

static bool fail(const struct wml_grow *g, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, errno, what, g->path);
}

bool wml_grow_open(struct wml_grow *g, const char *path, struct wml_err *err)
{
    struct stat st;
    *g = (struct wml_grow){.path = wml_xstrdup(path)};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) g->file = (intptr_t)fd + 1;
    bool ok = (fd >= 0 && fstat(fd, &st) == 0) || fail(g, "open", err);
    if (ok && !S_ISREG(st.st_mode)) ok = wml_fail(err, WML_E_IO, "%s is not an ordinary file", path);
    if (ok) g->size = (uint64_t)st.st_size;
    else wml_grow_close(g);
    return ok;
}

bool wml_grow_reserve(struct wml_grow *g, uint64_t size, struct wml_err *err)
{
    if (size <= g->size || size > INT64_MAX) return true;
    if (fallocate((int)g->file - 1, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) == 0) return true;
    return (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) || fail(g, "write", err);
}

bool wml_grow_write(struct wml_grow *g, const void *bytes, size_t n, struct wml_err *err)
{
    const char *at = bytes;
    while (n) {
        ssize_t done = pwrite((int)g->file - 1, at, WML_MIN(n, (size_t)1 << 30), (off_t)g->size);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return fail(g, "write", err);
        g->size += (uint64_t)done;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

bool wml_grow_cut(struct wml_grow *g, uint64_t size, struct wml_err *err)
{
    if (size >= g->size) return true;
    if (ftruncate((int)g->file - 1, (off_t)size) != 0) return fail(g, "shorten", err);
    g->size = size;
    return true;
}

bool wml_grow_flush(struct wml_grow *g, struct wml_err *err)
{
    /* A file on a system that cannot sync is as good as it gets. */
    return fsync((int)g->file - 1) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS || fail(g, "flush", err);
}

void wml_grow_close(struct wml_grow *g)
{
    if (g->file) close((int)g->file - 1);
    free(g->path);
    *g = (struct wml_grow){0};
}
