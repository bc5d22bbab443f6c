/* os/fail.h - errors of the system as errors of ours. Internal to src/os. */
#ifndef WML_OS_FAIL_H
#define WML_OS_FAIL_H

#include "base/err.h"

/* "what path: reason"; code is errno, or GetLastError() on Windows. A full disk is said as such. */
bool wml_fail_system(struct wml_err *err, int code, const char *what, const char *path);

#endif
