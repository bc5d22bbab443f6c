/* os/spawn_win.h - command line and environment of a child as CreateProcessW takes them. Internal. */
#ifndef WML_OS_SPAWN_WIN_H
#define WML_OS_SPAWN_WIN_H

#include <wchar.h>
#include "base/str.h"

/* argv quoted so that the C library of the child takes it apart again the same way. free(). */
wchar_t *wml_command_line(const char *const *argv);
/* Our environment with `env` (NAME=VALUE .. NULL; NULL: none) and, unless 0, the channel in it. free(). */
wchar_t *wml_environment(const char *const *env, intptr_t channel);

#endif
