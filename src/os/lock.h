/* os/lock.h - a file locked against other processes: flock on POSIX, the first byte of the file on Windows. The same
 * as the Python package filelock does, so that both can share a folder. The file stays when the lock goes: one that
 * waits may have it open. */
#ifndef WML_OS_LOCK_H
#define WML_OS_LOCK_H

#include <stdint.h>
#include "base/err.h"

struct wml_lock { /* zero: not held */
    intptr_t file; /* descriptor or HANDLE, plus one */
};

/* Makes the file when it is not there; its folder must be. True with l->file 0: somebody else holds it, this process
 * included. Never waits. Where the file system has no locks it counts as held. */
bool wml_lock_try(struct wml_lock *l, const char *path, struct wml_err *err);
void wml_lock_release(struct wml_lock *l);

#endif
