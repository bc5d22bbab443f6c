/* os/out.h - what out.c asks of the system for struct wml_out. Internal to src/os. */
#ifndef WML_OS_OUT_H
#define WML_OS_OUT_H

#include "os/file.h"

enum { WML_OUT_PENDING = 1 << 18 }; /* size of o->pending */

/* Writes all of it past the gathered bytes. */
bool wml_out_write_now(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err);
/* Writes what was gathered. */
bool wml_out_flush(struct wml_out *o, struct wml_err *err);
/* Names of temporary files that are open, for the second Ctrl-C. The text stays the caller's. */
void wml_out_remember(char *temp);
void wml_out_forget(char *temp);
/* ".name.pid.random.tmp" beside o->path. */
void wml_out_temp_name(const struct wml_out *o, uint32_t random, struct wml_buf *out);
/* "folder, not a file", and what to do when the folder of o->path is missing. Both return false. */
bool wml_out_fail_dir(const struct wml_out *o, struct wml_err *err);
bool wml_out_hint_dir(const struct wml_out *o, struct wml_err *err);

#endif
