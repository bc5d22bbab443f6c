/* os/thread.h - threads, mutexes and conditions (pthreads, or Win32). */
#ifndef WML_OS_THREAD_H
#define WML_OS_THREAD_H

#include "base/err.h"
#include <stdint.h>

struct wml_thread;
/* f runs in a new thread. Join exactly once. */
bool wml_thread_start(struct wml_thread **out, void (*f)(void *arg), void *arg, struct wml_err *err);
void wml_thread_join(struct wml_thread *t); /* NULL is fine */

struct wml_mutex;
struct wml_mutex *wml_mutex_new(void);
void wml_mutex_free(struct wml_mutex *m);
void wml_mutex_lock(struct wml_mutex *m);
void wml_mutex_unlock(struct wml_mutex *m);

struct wml_cond;
struct wml_cond *wml_cond_new(void);
void wml_cond_free(struct wml_cond *c);
void wml_cond_signal(struct wml_cond *c);
/* With the mutex held; false after the time. ms UINT64_MAX: for ever. */
bool wml_cond_wait(struct wml_cond *c, struct wml_mutex *m, uint64_t ms);

unsigned wml_cpu_count(void);

#endif
