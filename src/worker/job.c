/* The common part of jobs: resolve the target, open the session, release both after the reply. */
#include "worker/job.h"

#include "os/sys.h"

enum wml_opt_level wml_opt_level_named(struct wml_str name, enum wml_opt_level fallback)
{
    for (int l = WML_LEVEL_DISABLED; l <= WML_LEVEL_ALL; l++)
        if (wml_str_is(name, wml_opt_level_name((enum wml_opt_level)l))) return (enum wml_opt_level)l;
    return fallback;
}

bool wml_job_target(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session **out,
                     struct wml_err *err)
{
    struct wml_job_session *s = wml_xcalloc(1, sizeof *s);
    s->cx = io->cx;
    io->state = *out = s;
    wml_job_phase(io, "resolve");
    if (!wml_ort_open(io->cx, &s->ort, err)) return false;
    wml_target_spec_get(request, &s->arena, &s->spec);
    return wml_target_resolve(io->cx, &s->spec, &s->target, err);
}

bool wml_job_open(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session *s,
                  struct wml_err *err)
{
    struct wml_session_opts opts = {.record_placement = true};
    struct wml_model_source m = {.path = wml_arena_cstr(&s->arena, wml_json_get_str(request, "model"))};
    opts.level = wml_opt_level_named(wml_json_get_str(request, "level"), WML_LEVEL_DISABLED);
    opts.threads = (unsigned)wml_json_get_int(request, "threads", 0);
    wml_target_session(&s->target, &opts);
    wml_job_phase(io, "load");
    uint64_t start = wml_now_ns();
    if (!wml_session_open_falling(s->ort, &m, &opts, &s->level, s->level_note, &s->session, err)) return false;
    s->load_ms = (double)(wml_now_ns() - start) / 1e6;
    return true;
}

void wml_job_session_put(struct wml_json *j, const struct wml_job_session *s)
{
    if (!s || !s->ort || !s->target.ep_name) return;
    wml_target_put(j, &s->target, s->ort);
    if (!s->session) return;
    wml_placement_put(j, s->session);
    wml_json_key(j, "level");
    wml_json_put_cstr(j, wml_opt_level_name(s->level));
    wml_json_key(j, "level_note");
    wml_json_put_cstr(j, s->level_note[0] ? s->level_note : NULL);
    wml_json_key(j, "load_ms");
    wml_json_put_fixed(j, s->load_ms, 3);
}

void wml_job_session_teardown(void *state)
{
    struct wml_job_session *s = state;
    wml_session_close(s->session);
    wml_target_release(&s->target);
    wml_arena_release(&s->arena);
    free(s);
}
