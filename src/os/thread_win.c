/* Threads on Windows. */
#include "os/thread.h"

#include <process.h>
#include "base/arena.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

struct wml_thread {
    HANDLE handle;
    void (*f)(void *arg);
    void *arg;
};

static unsigned __stdcall run(void *arg)
{
    struct wml_thread *t = arg;
    t->f(t->arg);
    return 0;
}

bool wml_thread_start(struct wml_thread **out, void (*f)(void *arg), void *arg, struct wml_err *err)
{
    struct wml_thread *t = wml_xcalloc(1, sizeof *t);
    t->f = f;
    t->arg = arg;
    t->handle = (HANDLE)_beginthreadex(NULL, 0, run, t, 0, NULL);
    if (!t->handle) {
        free(t);
        *out = NULL;
        return wml_fail(err, WML_E_IO, "start a thread: the system has no room for one");
    }
    *out = t;
    return true;
}

void wml_thread_join(struct wml_thread *t)
{
    if (!t) return;
    WaitForSingleObject(t->handle, INFINITE);
    CloseHandle(t->handle);
    free(t);
}

struct wml_mutex {
    SRWLOCK m;
};

struct wml_mutex *wml_mutex_new(void)
{
    struct wml_mutex *m = wml_xcalloc(1, sizeof *m);
    InitializeSRWLock(&m->m);
    return m;
}

void wml_mutex_free(struct wml_mutex *m)
{
    free(m);
}

void wml_mutex_lock(struct wml_mutex *m)
{
    AcquireSRWLockExclusive(&m->m);
}

void wml_mutex_unlock(struct wml_mutex *m)
{
    ReleaseSRWLockExclusive(&m->m);
}

struct wml_cond {
    CONDITION_VARIABLE c;
};

struct wml_cond *wml_cond_new(void)
{
    struct wml_cond *c = wml_xcalloc(1, sizeof *c);
    InitializeConditionVariable(&c->c);
    return c;
}

void wml_cond_free(struct wml_cond *c)
{
    free(c);
}

void wml_cond_signal(struct wml_cond *c)
{
    WakeAllConditionVariable(&c->c);
}

bool wml_cond_wait(struct wml_cond *c, struct wml_mutex *m, uint64_t ms)
{
    DWORD limit = ms == UINT64_MAX ? INFINITE : (DWORD)WML_MIN(ms, (uint64_t)INFINITE - 1);
    return SleepConditionVariableSRW(&c->c, &m->m, limit, 0) != 0;
}

unsigned wml_cpu_count(void)
{
    DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n ? n : 1;
}
