/* os/grow.h - a file that grows at its end and stays when the writing stops: downloads that go on another day.
 * What must appear whole is written through struct wml_out instead. */
#ifndef WML_OS_GROW_H
#define WML_OS_GROW_H

#include "base/str.h"

struct wml_grow { /* zero is valid and closed */
    char *path;
    intptr_t file; /* descriptor or HANDLE, plus one */
    uint64_t size; /* bytes that are there */
};

/* Makes the file when it is not there. */
bool wml_grow_open(struct wml_grow *g, const char *path, struct wml_err *err);
/* Room for `size` bytes in all, where the system gives it in advance: a disk that is too full says so here. The file
 * keeps its length. */
bool wml_grow_reserve(struct wml_grow *g, uint64_t size, struct wml_err *err);
/* At the end, at once. After a failure, what fitted is there and counted. */
bool wml_grow_write(struct wml_grow *g, const void *bytes, size_t n, struct wml_err *err);
/* Gives up what lies beyond `size`. */
bool wml_grow_cut(struct wml_grow *g, uint64_t size, struct wml_err *err);
/* Down to the disk. */
bool wml_grow_flush(struct wml_grow *g, struct wml_err *err);
/* Fine on zero and on a closed one. */
void wml_grow_close(struct wml_grow *g);

#endif
