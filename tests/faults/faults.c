/* Preloaded into a program: lets one operation on the files under a folder go wrong, so that tests reach every one of them.
 *
 *   FAULTS_DIR   the folder, as its path begins in what the program opens
 *   FAULTS_AT    number of the operation, counted from 1; 0: none, for counting
 *   FAULTS_HOW   full   it fails with ENOSPC, and so does all later writing
 *                once   it fails with ENOSPC
 *                kill   SIGKILL before it
 *                int    SIGINT before it
 *                twice  SIGINT before it, and again a moment later
 *                slow   it and all later ones take a tenth of a second
 *   FAULTS_LOG   file that gets the name of each operation
 *   FAULTS_READS file that gets the path of each file under the folder that is opened for reading
 *
 * Operations are those that change something: creating, writing, flushing, renaming, removing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 1024 };
enum kind { MAKES, KEEPS, REMOVES }; /* needs room; needs none; gives some */

static atomic_uint counted;
static atomic_bool watched[FDS];

static const char *setting(const char *name)
{
    const char *v = getenv(name);
    return v ? v : "";
}

static int under(const char *path)
{
    const char *dir = setting("FAULTS_DIR");
    return *dir && strncmp(path, dir, strlen(dir)) == 0;
}

static int is_watched(int fd)
{
    return fd >= 0 && fd < FDS && atomic_load(&watched[fd]);
}

static void note(const char *log, const char *what, const char *path)
{
    int (*open_file)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    ssize_t (*put)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s\n", what, path), fd = *log ? open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd < 0) return;
    if (put(fd, line, (size_t)n) != n) abort();
    close(fd);
}

static void signal_twice(void)
{
    raise(SIGINT);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    raise(SIGINT);
}

/* Whether it has to fail. */
static int goes_wrong(enum kind kind, const char *what, const char *path)
{
    unsigned at = (unsigned)atoi(setting("FAULTS_AT")), now = atomic_fetch_add(&counted, 1) + 1;
    const char *how = setting("FAULTS_HOW");
    note(setting("FAULTS_LOG"), what, path);
    if (strcmp(how, "full") == 0 && at && now >= at && kind == MAKES) return 1;
    if (strcmp(how, "slow") == 0 && at && now >= at) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    if (now != at) return 0;
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    if (strcmp(how, "int") == 0) raise(SIGINT);
    if (strcmp(how, "twice") == 0) signal_twice();
    return strcmp(how, "once") == 0 && kind != REMOVES;
}

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)
#define FAIL_IF(condition) do { if (condition) { errno = ENOSPC; return -1; } } while (0)

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    int writes = under(path) && (flags & (O_WRONLY | O_RDWR));
    FAIL_IF(writes && (flags & O_CREAT) && goes_wrong(MAKES, "create", path));
    int fd = REAL(open, path, flags, mode);
    if (fd >= 0 && fd < FDS) atomic_store(&watched[fd], writes);
    if (fd >= 0 && under(path) && !writes && !(flags & O_DIRECTORY)) note(setting("FAULTS_READS"), "read", path);
    return fd;
}

int mkdir(const char *path, mode_t mode)
{
    FAIL_IF(under(path) && goes_wrong(MAKES, "mkdir", path));
    return REAL(mkdir, path, mode);
}

char *mkdtemp(char *path)
{
    if (under(path) && goes_wrong(MAKES, "mkdtemp", path)) {
        errno = ENOSPC;
        return NULL;
    }
    return REAL(mkdtemp, path);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    FAIL_IF(is_watched(fd) && goes_wrong(MAKES, "write", ""));
    return REAL(write, fd, bytes, n);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t n, unsigned flags)
{
    FAIL_IF(is_watched(to) && goes_wrong(MAKES, "copy", ""));
    return REAL(copy_file_range, from, at, to, to_at, n, flags);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    FAIL_IF(is_watched(fd) && goes_wrong(MAKES, "reserve", ""));
    return REAL(fallocate, fd, mode, at, n);
}

int fsync(int fd)
{
    FAIL_IF(is_watched(fd) && goes_wrong(KEEPS, "flush", ""));
    return REAL(fsync, fd);
}

int close(int fd)
{
    if (fd >= 0 && fd < FDS) atomic_store(&watched[fd], 0);
    return REAL(close, fd);
}

int rename(const char *from, const char *to)
{
    FAIL_IF((under(from) || under(to)) && goes_wrong(KEEPS, "rename", to));
    return REAL(rename, from, to);
}

int unlink(const char *path)
{
    FAIL_IF(under(path) && goes_wrong(REMOVES, "unlink", path));
    return REAL(unlink, path);
}

int rmdir(const char *path)
{
    FAIL_IF(under(path) && goes_wrong(REMOVES, "rmdir", path));
    return REAL(rmdir, path);
}
