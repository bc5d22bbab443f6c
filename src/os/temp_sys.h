/* os/temp_sys.h - what temp.c asks of the system. Internal to src/os. */
#ifndef WML_OS_TEMP_SYS_H
#define WML_OS_TEMP_SYS_H

#include "base/str.h"

/* Text in which machines, and containers with process numbers of their own, differ. */
void wml_temp_where(struct wml_buf *out);
/* A process of that number is there; true when that cannot be known. */
bool wml_temp_lives(int64_t pid);
enum wml_temp_made { WML_TEMP_MADE, WML_TEMP_TAKEN, WML_TEMP_FAILED };
/* A folder for this user only. Errors speak of `parent`. */
enum wml_temp_made wml_temp_make(const char *path, const char *parent, struct wml_err *err);
/* Names in dir that begin with prefix: files and folders of this user, no links. f may remove what it is told of. */
void wml_temp_each(const char *dir, const char *prefix, void *arg, void (*f)(void *arg, struct wml_str name));

#endif
