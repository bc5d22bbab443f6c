/* os/wide.h - UTF-8 to UTF-16 and back at the edge of Windows. Internal to src/os. */
#ifndef WML_OS_WIDE_H
#define WML_OS_WIDE_H

#include <wchar.h>
#include "base/str.h"

/* On the heap, free() it. Bytes that are no UTF-8 become U+FFFD. */
wchar_t *wml_wide(const char *text);
/* The same for a path that goes to the system; one of 240 characters and more in the form that has no limit. */
wchar_t *wml_wide_path(const char *path);
void wml_narrow(const wchar_t *wide, struct wml_buf *out);

#endif
