/* Job "resolve": says what a target means on this machine, without opening a model.
 *
 * request {"target"}    reply {"target"} */
#include "worker/job.h"

static bool resolve(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    struct wml_job_session *s;
    struct wml_json j = {.out = &io->reply};
    if (!wml_job_target(io, wml_json_root(doc), &s, err)) return false;
    wml_json_begin(&j, '{');
    wml_job_session_put(&j, s);
    wml_json_end(&j, '}');
    return true;
}

const struct wml_job wml_job_resolve = {
    .name = "resolve", .summary = "Say what a target means here",
    .run = resolve, .teardown = wml_job_session_teardown,
};
