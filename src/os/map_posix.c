/* Mapped files on POSIX. */
#include "os/map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/fail.h"

bool wml_map_open(const char *path, struct wml_map_file *out, struct wml_err *err)
{
    struct stat st;
    *out = (struct wml_map_file){.file = -1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait for a writer */
    if (fd < 0) return wml_fail_system(err, errno, "open", path);
    bool ok = fstat(fd, &st) == 0;
    if (!ok) wml_fail_system(err, errno, "look at", path);
    else if (S_ISDIR(st.st_mode)) ok = wml_fail(err, WML_E_IO, "%s is a folder, not a file", path);
    else if (!S_ISREG(st.st_mode)) {
        ok = wml_fail(err, WML_E_IO, "%s is a device or a pipe, not a file", path);
        wml_hint(err, "write it to a file first");
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) ok = wml_fail_system(err, errno, "map", path);
        else out->bytes = (struct wml_span){p, (size_t)st.st_size};
    }
    out->file = fd;
    if (!ok) wml_map_close(out);
    return ok;
}

void wml_map_close(struct wml_map_file *m)
{
    if (m->bytes.ptr) munmap((void *)(uintptr_t)m->bytes.ptr, m->bytes.len);
    if (m->file > 0) close((int)m->file);
    *m = (struct wml_map_file){0};
}

void wml_map_drop(struct wml_span bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)bytes.ptr;
    const uintptr_t from = (at + page - 1) / page * page, to = (at + bytes.len) / page * page;
    if (bytes.ptr && to > from) madvise((void *)from, to - from, MADV_DONTNEED); /* NOLINT: an address */
}

void wml_map_will_read(const struct wml_map_file *m, uint64_t from, uint64_t n)
{
    if (!m->bytes.ptr || from >= m->bytes.len) return;
    posix_fadvise((int)m->file, (off_t)from, (off_t)n, POSIX_FADV_WILLNEED);
    posix_fadvise((int)m->file, 0, 0, POSIX_FADV_SEQUENTIAL);
}
