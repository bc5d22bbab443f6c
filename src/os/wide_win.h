/* os/wide_win.h - the one place in src/os where UTF-8 becomes UTF-16 and back, and the handle of a file.
 * Internal to the *_win.c files, which take windows.h from here. */
#ifndef WML_OS_WIDE_WIN_H
#define WML_OS_WIDE_WIN_H

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#include "base/str.h"

/* Heap text, free() it. NULL with the reason in GetLastError() when the bytes are not UTF-8. */
wchar_t *wml_wide(const char *utf8);
/* The same for a path: absolute, and with the prefix that lifts the limit of 260 when it is long. */
wchar_t *wml_wide_path(const char *utf8);
/* Adds the text; a surrogate without its partner becomes U+FFFD. */
void wml_narrow(struct wml_buf *out, const wchar_t *wide, size_t n);
void wml_narrow_cstr(struct wml_buf *out, const wchar_t *wide);

/* CreateFileW for a UTF-8 path, shared with every reader, writer and remover, never inherited.
 * INVALID_HANDLE_VALUE with the reason in GetLastError(). */
HANDLE wml_win_open(const char *path, DWORD access, DWORD disposition, DWORD flags);
/* Path of an open file, as people write it. false: not known. */
bool wml_win_path_of(HANDLE file, struct wml_buf *out);
/* Replaces `to`, also while this process has it mapped. 0, or the system's reason. */
DWORD wml_win_replace(const char *from, const char *to);
/* Takes the name away from a file that cannot be deleted now, since it is mapped. */
bool wml_win_set_aside(const char *path);
/* Whether `path` is such a file, or one that was replaced: it goes when its last map closes. */
bool wml_win_is_aside(struct wml_str path);
uint32_t wml_win_random(void);

#endif
