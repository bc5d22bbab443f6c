/* Threads on POSIX. */
#include "os/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "base/arena.h"

struct wml_thread {
    pthread_t id;
    void (*f)(void *arg);
    void *arg;
};

static void *run(void *arg)
{
    struct wml_thread *t = arg;
    t->f(t->arg);
    return NULL;
}

bool wml_thread_start(struct wml_thread **out, void (*f)(void *arg), void *arg, struct wml_err *err)
{
    struct wml_thread *t = wml_xcalloc(1, sizeof *t);
    sigset_t all, old;
    t->f = f;
    t->arg = arg;
    /* Signals go to the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&t->id, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0) {
        free(t);
        *out = NULL;
        return wml_fail(err, WML_E_IO, "start a thread: %s", strerror(code));
    }
    *out = t;
    return true;
}

void wml_thread_join(struct wml_thread *t)
{
    if (t) pthread_join(t->id, NULL);
    free(t);
}

struct wml_mutex {
    pthread_mutex_t m;
};

struct wml_mutex *wml_mutex_new(void)
{
    struct wml_mutex *m = wml_xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->m, NULL);
    return m;
}

void wml_mutex_free(struct wml_mutex *m)
{
    if (m) pthread_mutex_destroy(&m->m);
    free(m);
}

void wml_mutex_lock(struct wml_mutex *m)
{
    pthread_mutex_lock(&m->m);
}

void wml_mutex_unlock(struct wml_mutex *m)
{
    pthread_mutex_unlock(&m->m);
}

struct wml_cond {
    pthread_cond_t c;
};

struct wml_cond *wml_cond_new(void)
{
    struct wml_cond *c = wml_xcalloc(1, sizeof *c);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->c, &attr);
    pthread_condattr_destroy(&attr);
    return c;
}

void wml_cond_free(struct wml_cond *c)
{
    if (c) pthread_cond_destroy(&c->c);
    free(c);
}

void wml_cond_signal(struct wml_cond *c)
{
    pthread_cond_broadcast(&c->c);
}

bool wml_cond_wait(struct wml_cond *c, struct wml_mutex *m, uint64_t ms)
{
    struct timespec t;
    if (ms == UINT64_MAX) return pthread_cond_wait(&c->c, &m->m) == 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (int32_t)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(&c->c, &m->m, &t) != ETIMEDOUT;
}

unsigned wml_cpu_count(void)
{
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}
