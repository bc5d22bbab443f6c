/* worker/job.h - what several jobs share: a session on a target, kept for teardown. Internal. */
#ifndef WML_WORKER_JOB_H
#define WML_WORKER_JOB_H

#include "worker/target.h"
#include "worker/worker.h"

struct wml_job_session {
    struct wml_arena arena;
    struct wml_ctx *cx;
    struct wml_ort *ort;
    struct wml_target_spec spec;
    struct wml_target target;
    struct wml_session *session;
    enum wml_opt_level level;
    char level_note[256];
    double load_ms;
};

/* Resolves the request's target ("resolve" phase). The state hangs on io for wml_job_session_teardown. */
bool wml_job_target(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session **out,
                     struct wml_err *err);
/* Opens request["model"] at request["level"] (default: disabled), placement recorded ("load" phase). */
bool wml_job_open(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session *s,
                  struct wml_err *err);
/* "target", "placement", "level", "level_note", "load_ms" into the reply object. */
void wml_job_session_put(struct wml_json *j, const struct wml_job_session *s);
void wml_job_session_teardown(void *state);
/* "all", "basic", ... */
enum wml_opt_level wml_opt_level_named(struct wml_str name, enum wml_opt_level fallback);

#endif
