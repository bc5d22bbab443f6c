/* os/map.h - a file mapped read-only into memory. Its bytes stay valid after the file was replaced by a
 * rename. A file that somebody shortens meanwhile raises SIGBUS on access: winml never shortens. */
#ifndef WML_OS_MAP_H
#define WML_OS_MAP_H

#include "base/rd.h"

struct wml_map_file {
    struct wml_span bytes; /* len 0: ptr may be NULL */
    intptr_t file;         /* descriptor or HANDLE; for wml_out_copy */
    void *handle;          /* Windows: the section */
};

bool wml_map_open(const char *path, struct wml_map_file *out, struct wml_err *err);
void wml_map_close(struct wml_map_file *m);
/* The kernel may read ahead (sequential use), or drop what was read. */
void wml_map_will_read(const struct wml_map_file *m, uint64_t from, uint64_t n);
/* Pages of the map inside the span leave the process's memory; reading them again brings them back. */
void wml_map_drop(struct wml_span bytes);

#endif
