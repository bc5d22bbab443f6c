/* sys.h - what C17 lacks and each system spells differently: sys_posix.c, sys_win.c.
 * Paths are UTF-8 on both. */
#ifndef VNPU_SYS_H
#define VNPU_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

uint64_t vnpu_now_ns(void); /* monotonic */
uint64_t vnpu_process_id(void);
void vnpu_sleep_us(uint64_t us);
_Noreturn void vnpu_die_crash(void); /* as a wild pointer would */
_Noreturn void vnpu_die_kill(void);  /* as if killed from outside: no handler, no clean-up */

FILE *vnpu_fopen(const char *path, const char *mode);
bool vnpu_rename(const char *from, const char *to); /* replaces `to` */
bool vnpu_remove(const char *path);
bool vnpu_is_separator(char c);
/* ORT's path (ORTCHAR_T: wide on Windows) as UTF-8. false: does not fit. */
bool vnpu_narrow_path(const void *native, char *out, size_t size);
/* The other way; free(). NULL: not UTF-8, or out of memory. */
void *vnpu_native_path(const char *path);
/* The first entry of `folder` whose name starts with `prefix`, into `name`. false: none. */
bool vnpu_find_file(const char *folder, const char *prefix, char *name, size_t size);

#endif
