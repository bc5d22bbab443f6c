/* os/replace.h - a file takes another one's place although that one is mapped. Internal, Windows only.
 *
 * The system refuses to replace a mapped file, but lets it be renamed. So the old file moves to a hidden
 * neighbour, and whoever maps it removes that when the map closes. */
#ifndef WML_OS_REPLACE_H
#define WML_OS_REPLACE_H

#include <wchar.h>

/* 0, or the reason as a code of GetLastError(); the old file is then where it was. */
unsigned wml_replace(const char *from, const char *to);
/* After a map's handle was asked: the file lies aside, and this is the moment to remove it. The path is to
 * be freed; NULL: it does not lie aside. */
wchar_t *wml_replaced_path(void *handle);

#endif
