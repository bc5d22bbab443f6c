/* Atomic output on POSIX: a hidden neighbour, fsync, rename. Names of open neighbours are kept in a small
 * table so that a second Ctrl-C can remove them; it is the one piece of state that outlives a call, since
 * a signal handler can be handed nothing. A target that is no ordinary file (/dev/null, a pipe) is written
 * as it is: renaming over it would destroy it. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/fail.h"
#include "os/path.h"
#include "os/sys.h"

enum { PENDING = 1 << 18, DIRECT = 1 << 20, MAX_OPEN = 64 };

static _Atomic(char *) open_temp[MAX_OPEN];

static void remember(char *temp)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&open_temp[i], &none, temp)) return;
    }
}

static void forget(char *temp)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *mine = temp;
        if (atomic_compare_exchange_strong(&open_temp[i], &mine, NULL)) return;
    }
}

void wml_out_remove_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *temp = atomic_load(&open_temp[i]);
        if (temp) unlink(temp);
    }
}

static bool fail(struct wml_out *o, int code, const char *what, struct wml_err *err)
{
    return wml_fail_system(err, code, what, o->path);
}

/* The hidden neighbour of o->path, with a name that nobody has yet. */
static int make_temp(struct wml_out *o)
{
    struct wml_buf temp = {0}, name = {0};
    struct wml_str dir = wml_path_dir(wml_str(o->path)), base = wml_path_name(wml_str(o->path));
    int fd = -1;
    for (int attempt = 0; fd < 0 && attempt < 100; attempt++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) random = (uint32_t)wml_now_ns();
        wml_buf_clear(&temp);
        wml_buf_clear(&name);
        wml_buf_fmt(&name, ".%.*s.%d.%08" PRIx32 ".tmp", WML_ARG(wml_str_sub(base, 0, 180)), wml_pid(), random);
        wml_path_join(&temp, dir, wml_buf_view(&name));
        fd = open(wml_buf_text(&temp), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    int code = errno;
    if (fd >= 0) {
        o->temp = wml_xstrdup(wml_buf_text(&temp));
        remember(o->temp);
    }
    wml_buf_release(&temp);
    wml_buf_release(&name);
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

bool wml_out_open(struct wml_out *o, const char *path, struct wml_err *err)
{
    struct stat old;
    *o = (struct wml_out){.path = final_path(path)};
    bool exists = stat(o->path, &old) == 0;
    int fd;
    if (exists && S_ISDIR(old.st_mode)) {
        wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
        wml_hint(err, "give a file name inside it");
        wml_out_release(o);
        return false;
    }
    if (exists && !S_ISREG(old.st_mode)) fd = open(o->path, O_WRONLY | O_CLOEXEC);
    else fd = make_temp(o);
    if (fd < 0) {
        int code = errno;
        fail(o, code, "create", err);
        if (code == ENOENT) {
            struct wml_str dir = wml_path_dir(wml_str(o->path));
            wml_hint(err, "the folder '%.*s' does not exist: make it first", WML_ARG(dir));
        }
        wml_out_release(o);
        return false;
    }
    if (exists && o->temp) fchmod(fd, old.st_mode & 0777);
    o->file = (intptr_t)fd + 1;
    o->pending = wml_xrealloc(NULL, PENDING);
    return true;
}

static bool write_now(struct wml_out *o, const unsigned char *bytes, size_t n, struct wml_err *err)
{
    while (n) {
        ssize_t done = write((int)o->file - 1, bytes, WML_MIN(n, (size_t)1 << 30));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return fail(o, done < 0 ? errno : ENOSPC, "write", err);
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static bool flush(struct wml_out *o, struct wml_err *err)
{
    size_t n = o->n_pending;
    o->n_pending = 0;
    return write_now(o, o->pending, n, err);
}

bool wml_out_write(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err)
{
    o->offset += n;
    if (n < DIRECT && o->n_pending + n <= PENDING) {
        if (n) memcpy(o->pending + o->n_pending, bytes, n);
        o->n_pending += n;
        return true;
    }
    if (!flush(o, err)) return false;
    if (n >= PENDING) return write_now(o, bytes, n, err);
    memcpy(o->pending, bytes, n);
    o->n_pending = n;
    return true;
}

bool wml_out_pad(struct wml_out *o, uint64_t to_offset, struct wml_err *err)
{
    static const unsigned char zero[4096];
    while (o->offset < to_offset)
        if (!wml_out_write(o, zero, (size_t)WML_MIN(to_offset - o->offset, sizeof zero), err)) return false;
    return true;
}

/* Through a buffer, where the kernel cannot copy by itself. */
static bool copy_plain(struct wml_out *o, int fd, uint64_t from, uint64_t n, struct wml_err *err)
{
    while (n) {
        ssize_t got = pread(fd, o->pending, (size_t)WML_MIN(n, (uint64_t)PENDING), (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return wml_fail(err, WML_E_IO, "the source of %s ended early", o->path);
        if (!write_now(o, o->pending, (size_t)got, err)) return false;
        from += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return true;
}

bool wml_out_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err)
{
    if (!flush(o, err)) return false;
    o->offset += n;
    while (n) {
        off_t at = (off_t)from;
        ssize_t done = copy_file_range((int)file, &at, (int)o->file - 1, NULL, (size_t)WML_MIN(n, (uint64_t)1 << 30), 0);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return fail(o, errno, "write", err);
        if (done <= 0) return copy_plain(o, (int)file, from, n, err);
        from += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return true;
}

bool wml_out_finish(struct wml_out *o, struct wml_err *err)
{
    if (!o->file) return true;
    int fd = (int)o->file - 1;
    bool ok = flush(o, err);
    /* A new file, or one on a system that cannot sync, is as good as it gets. */
    if (ok && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) ok = fail(o, errno, "flush", err);
    if (close(fd) != 0 && ok) ok = fail(o, errno, "close", err);
    o->file = 0;
    return ok;
}

bool wml_out_commit(struct wml_out *o, struct wml_err *err)
{
    if (!wml_out_finish(o, err)) return false;
    if (!o->temp) return true; /* written in place */
    if (rename(o->temp, o->path) != 0) return fail(o, errno, "rename to", err);
    forget(o->temp);
    free(o->temp);
    o->temp = NULL;
    return true;
}

void wml_out_release(struct wml_out *o)
{
    if (o->file) close((int)o->file - 1);
    if (o->temp) {
        unlink(o->temp);
        forget(o->temp);
    }
    free(o->temp);
    free(o->path);
    free(o->pending);
    *o = (struct wml_out){0};
}
