/* os/spawn.h - child processes.
 *
 * The child gets `input` on stdin (and what `more` gives later), a private pipe whose descriptor number
 * is told to it in the environment variable WINML_CHANNEL (Windows: an inherited HANDLE), and stdout
 * and stderr captured into one bounded tail. It dies when this process dies (PR_SET_PDEATHSIG with a
 * check of the parent; a Job object on Windows), and it runs in its own process group, which is killed
 * whole. All waiting happens in wml_child_wait, which calls on_line for every line of the channel. */
#ifndef WML_OS_SPAWN_H
#define WML_OS_SPAWN_H

#include <stdatomic.h>
#include "base/str.h"

enum wml_child_how {
    WML_CHILD_RUNNING,
    WML_CHILD_EXIT,    /* status: exit code */
    WML_CHILD_SIGNAL,  /* status: signal number, or the exception code on Windows */
    WML_CHILD_TIMEOUT, /* killed by us */
    WML_CHILD_CANCEL   /* killed by us */
};

struct wml_spawn {
    const char *program;
    const char *const *argv; /* argv[0] .. NULL */
    struct wml_str input;
    const char *const *env; /* NAME=VALUE .. NULL: added to ours. NULL: none */
    const char *dir;        /* working folder; NULL: ours */
    size_t keep_output;     /* bytes of stdout + stderr kept, the newest; 0: 64 KiB */
    bool channel;
    bool echo_output;       /* also write the child's output to our stderr */
};

struct wml_child_result {
    enum wml_child_how how;
    int64_t status;
    uint64_t peak_rss; /* bytes; 0: not known. Linux: never less than our own heap at the start */
    double wall_ms;
    struct wml_buf output; /* tail of stdout and stderr */
};

struct wml_child_hooks {
    void *arg;
    /* One line of the channel without its newline. Returning > 0 sets the time limit to that many ms
     * from now; 0 keeps it. */
    uint64_t (*on_line)(void *arg, struct wml_str line);
    /* What the child reads next, appended, once it has been given everything before; nothing appended: nothing yet, ask again.
     * false: its input ends. NULL: it ends after `input`. */
    bool (*more)(void *arg, struct wml_buf *out);
    const atomic_bool *cancel; /* NULL: none */
    uint64_t timeout_ms;       /* 0: none */
    /* Called each time that the channel was silent for quiet_ms more. ms: since the last word. NULL: nobody minds. */
    void (*on_quiet)(void *arg, uint64_t ms);
    uint64_t quiet_ms;
};
/* One call: starts, feeds, listens, waits, reaps; no process is left behind. false only when it could
 * not start. Once the child is dead its group is killed too, and what is still in the pipes is read for
 * at most 200 ms. result is filled and must be released in both cases. */
bool wml_child_run(const struct wml_spawn *s, const struct wml_child_hooks *hooks,
                   struct wml_child_result *result, struct wml_err *err);
void wml_child_result_release(struct wml_child_result *r);
/* "SIGSEGV", "exception 0xC0000005 (access violation)", "exit status 3". */
void wml_child_describe(const struct wml_child_result *r, struct wml_buf *out);

/* The child's side: the channel's writing end. false when there is none (not started by us). */
bool wml_channel_open(intptr_t *channel);
bool wml_channel_write(intptr_t channel, struct wml_str bytes);
/* All of stdin, at most max bytes. */
bool wml_stdin_read(struct wml_buf *out, uint64_t max, struct wml_err *err);
/* A line of stdin without its end. Reads no byte beyond it, so that what follows is there for the next call. false: there is
 * none, or Ctrl-C (cancel may be NULL). A line of more than `max` bytes is cut into several. */
bool wml_stdin_line(struct wml_buf *out, size_t max, const atomic_bool *cancel);
/* Ends this process at once: no atexit handlers, no destructors, buffers of stdio flushed first. */
WML_NORETURN void wml_exit_now(int status);

#endif
