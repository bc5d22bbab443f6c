/* Job "load": opens a model on a target and says where its nodes went. No run, no save path.
 *
 * request {"model","target","level"}    reply {"target","placement","elsewhere","level","level_note","load_ms"}
 * elsewhere: [{"op","name"}], nodes that the target's EP left to others */
#include "worker/job.h"

static bool load(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc);
    struct wml_job_session *s;
    struct wml_json j = {.out = &io->reply};
    if (!wml_job_target(io, request, &s, err)) return false;
    bool ok = wml_job_open(io, request, s, err);
    wml_json_begin(&j, '{');
    wml_job_session_put(&j, s);
    if (ok) wml_elsewhere_put(&j, s->session, s->target.ep_name);
    wml_json_end(&j, '}');
    return ok;
}

const struct wml_job wml_job_load = {
    .name = "load", .summary = "Open a model on a target and report the placement",
    .run = load, .teardown = wml_job_session_teardown,
};
