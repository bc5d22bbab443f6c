/* Work shared out: who is free takes the next item. */
#include "os/crew.h"

#include "base/arena.h"
#include "os/thread.h"

struct crew {
    size_t n;
    bool (*f)(void *arg, size_t item, unsigned worker, struct wml_err *err);
    void *arg;
    struct wml_mutex *lock; /* of what follows */
    size_t next, failed;    /* failed: n is none */
    struct wml_err err;
};

struct worker {
    struct crew *crew;
    unsigned number;
    struct wml_thread *thread;
};

static bool take(struct crew *c, size_t *item)
{
    wml_mutex_lock(c->lock);
    bool more = c->failed == c->n && c->next < c->n;
    if (more) *item = c->next++;
    wml_mutex_unlock(c->lock);
    return more;
}

static void note_failure(struct crew *c, size_t item, const struct wml_err *err)
{
    wml_mutex_lock(c->lock);
    if (item < c->failed) {
        c->failed = item;
        c->err = *err;
    }
    wml_mutex_unlock(c->lock);
}

static void work(void *arg)
{
    const struct worker *w = arg;
    for (size_t item; take(w->crew, &item);) {
        struct wml_err err = {0};
        if (!w->crew->f(w->crew->arg, item, w->number, &err)) note_failure(w->crew, item, &err);
    }
}

bool wml_crew_run(unsigned workers, size_t n, bool (*f)(void *arg, size_t item, unsigned worker, struct wml_err *err), void *arg,
                  struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct crew crew = {.n = n, .f = f, .arg = arg, .lock = wml_mutex_new(), .failed = n};
    if (workers > n) workers = (unsigned)n;
    struct worker *w = WML_NEW_ARRAY(&arena, struct worker, workers + 1u);
    for (unsigned i = 0; i < workers + 1u; i++) w[i] = (struct worker){.crew = &crew, .number = i};
    for (unsigned i = 1; i < workers; i++) (void)wml_thread_start(&w[i].thread, work, &w[i], NULL); /* fewer do the same */
    work(&w[0]);
    for (unsigned i = 1; i < workers; i++) wml_thread_join(w[i].thread);
    wml_mutex_free(crew.lock);
    wml_arena_release(&arena);
    if (crew.failed < n && err) *err = crew.err;
    return crew.failed == n;
}
