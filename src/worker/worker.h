/* worker/worker.h - run one job of code that may crash in a child of this same program.
 *
 * The child gets its request as a JSON object on standard input, reports what it is doing as JSON
 * lines on a private pipe, and leaves its reply as a JSON file renamed into place *before* it tears
 * anything down. So a driver that crashes, hangs or is killed at teardown costs nothing: the reply is
 * there, and `salvaged` says how the child ended. A child never outlives its parent. */
#ifndef WML_WORKER_WORKER_H
#define WML_WORKER_WORKER_H

#include "base/ctx.h"

struct wml_json_doc;
struct wml_json_val;

/* --- the parent's side --- */

struct wml_worker_call {
    const char *job;       /* a name of jobs.def: "load", "compile", "bench", ... */
    struct wml_str request; /* JSON object */
    uint64_t timeout_ms;   /* 0: none. Counts until the reply is there. */
    uint64_t quiet_ms;     /* a warning each time that nothing was heard for so long; 0: none */
    bool in_process;       /* no child: for debugging, and for code that is trusted (the CPU EP) */
    const char *dir;       /* working folder of the child; NULL: ours, so relative paths stay right.
                              With one, every path in the request must be absolute. */
    /* What the job tells while it runs (wml_job_event): an object. NULL: nobody listens. */
    void (*on_event)(void *arg, const struct wml_json_val *event);
    /* For a job that asks (wml_job_hear): a line for it, see wml_child_hooks. NULL: it is told nothing but the request. */
    bool (*more)(void *arg, struct wml_buf *out);
    void *arg;
};

enum wml_child_end {
    WML_CHILD_OK,        /* exit status 0, or in process */
    WML_CHILD_EXITED,    /* another exit status */
    WML_CHILD_SIGNALLED, /* a signal, or an exception code on Windows */
    WML_CHILD_TIMED_OUT, /* killed by us */
    WML_CHILD_CANCELLED  /* killed by us after Ctrl-C */
};

struct wml_worker_reply {
    struct wml_json_doc *json; /* the reply; its root is an object */
    enum wml_child_end end;
    int64_t status;  /* exit status, signal number or exception code; in process 0 */
    char name[64];   /* of the end: "SIGSEGV", "exit status 3"; "" in process */
    bool salvaged;   /* the reply is whole although the child did not end well */
    char phase[32];  /* what the child did last: "load", "run", "teardown", ... */
    char ended[160]; /* "was killed by SIGSEGV during teardown"; "" when it ended well */
    struct wml_buf log; /* last lines that the child and its libraries wrote to stdout and stderr */
    double wall_ms;
    uint64_t peak_rss; /* bytes; 0: unknown */
};

/* False when there is no reply, or the reply is a failure: err then carries the job's own code, message
 * and hint, or says how the child ended, during which phase, with its last line of output. The reply is
 * filled as far as known in both cases; release it in both cases. */
bool wml_worker_call(struct wml_ctx *cx, const struct wml_worker_call *call,
                     struct wml_worker_reply *reply, struct wml_err *err);
void wml_worker_reply_release(struct wml_worker_reply *reply);

/* --- the child's side --- */

struct wml_job_io {
    struct wml_ctx *cx;   /* log lines and progress go to the parent */
    struct wml_buf reply; /* the job writes a JSON object here */
    void *channel;        /* the driver's */
    void *state;          /* the job's own, for teardown */
};

/* Tells the parent what comes next, before something that may crash. */
void wml_job_phase(struct wml_job_io *io, const char *phase);
/* A JSON object for the parent's on_event, at once: what it holds is kept whatever becomes of this process. In process it
 * is dropped. */
void wml_job_event(struct wml_job_io *io, struct wml_str object);

/* The next line that the parent has for this job, or false: there is none, and there will be none. */
bool wml_job_hear(struct wml_job_io *io, struct wml_buf *line);

struct wml_job {
    const char *name, *summary;
    /* request: the parsed JSON object. On success io->reply holds the reply. */
    bool (*run)(struct wml_job_io *io, const struct wml_json_doc *request, struct wml_err *err);
    void (*teardown)(void *state); /* after the reply is safe; NULL: nothing to do */
};

#define JOB(name) extern const struct wml_job wml_job_##name;
#include "worker/jobs.def"
#undef JOB

/* The hidden command's word, argv[1] of a child. */
#define WML_WORKER_COMMAND "__job"
/* Entry of the child: argv as main got it. Returns the exit status; normally it does not return. */
int wml_worker_main(struct wml_ctx *cx, int argc, char **argv);

#endif
