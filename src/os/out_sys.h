/* os/out_sys.h - what out.c asks of the system. Internal to src/os. */
#ifndef WML_OS_OUT_SYS_H
#define WML_OS_OUT_SYS_H

#include "os/file.h"

/* Sets path (links followed), file, and temp unless the target is written in place, which is so for what is
 * no ordinary file (NUL, /dev/null, a pipe): renaming over it would destroy it. On failure the caller
 * releases. A temp is told to wml_out_remember at once. */
bool wml_out_sys_open(struct wml_out *o, const char *path, struct wml_err *err);
bool wml_out_sys_reserve(struct wml_out *o, uint64_t n, struct wml_err *err); /* true where that cannot be had */
bool wml_out_sys_write(struct wml_out *o, const unsigned char *bytes, size_t n, struct wml_err *err);
/* o->pending is free for it and has WML_OUT_PENDING bytes. */
bool wml_out_sys_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err);
bool wml_out_sys_flush(struct wml_out *o, struct wml_err *err); /* down to the disk */
bool wml_out_sys_close(struct wml_out *o, struct wml_err *err); /* o->file becomes 0 in any case */
bool wml_out_sys_rename(struct wml_out *o, struct wml_err *err);
void wml_out_sys_remove(const char *temp); /* from a signal handler too */

enum { WML_OUT_PENDING = 1 << 18 };
/* A temporary file or folder that a fatal end must remove, until it is forgotten. Takes a copy of the name. */
void wml_out_remember(const char *temp);
void wml_out_forget(const char *temp);
/* ".<name>.tmp-..." beside path, a wml_file_temp: it is remembered, and what killed processes left for path goes. */
void wml_out_temp_name(struct wml_buf *out, const char *path);
/* A folder in the way, or none to write into. */
bool wml_out_refuse_folder(const char *path, struct wml_err *err);
void wml_out_hint_folder(const char *path, struct wml_err *err);

#endif
