/* os/crew.h - items of work shared out over threads.
 *
 *     static bool one(void *arg, size_t item, unsigned worker, struct wml_err *err) { ... }
 *     bool ok = wml_crew_run(wml_cpu_count(), n, one, &what, err);
 */
#ifndef WML_OS_CREW_H
#define WML_OS_CREW_H

#include <stddef.h>

#include "base/err.h"

/* Calls f for the items 0, 1, ... n - 1, which are begun in this order, several at a time. worker: 0 .. workers - 1, one call
 * at a time for each; 0 is the calling thread, which does all where no thread can be started. When one fails, no further is
 * begun, and of those that failed the first is told, as if they had been done one by one. Returns when all calls have. */
bool wml_crew_run(unsigned workers, size_t n, bool (*f)(void *arg, size_t item, unsigned worker, struct wml_err *err), void *arg,
                  struct wml_err *err);

#endif
