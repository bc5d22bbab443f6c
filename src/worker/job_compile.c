/* Job "compile": lets an EP compile models into EPContext models. Several models share one context. The
 * working folder is private, so that what compilers drop there stays out of the user's folders. Nothing is
 * loaded from the product: that is another process's work.
 *
 * request {"models":[{"model","output"}],"target","embed","session":false}
 * reply   {"target","compiled":n,"compile_ms":[...]} */
#include "worker/job.h"

#include "os/file.h"
#include "os/sys.h"

/* The session back end: an ordinary session that is told to leave its contexts in a file. */
static bool by_session(struct wml_job_session *s, const struct wml_model_source *m,
                       const struct wml_compile_opts *opts, struct wml_err *err)
{
    struct wml_session_opts o = opts->session;
    struct wml_session *session = NULL;
    struct wml_pair *config = WML_NEW_ARRAY(&s->arena, struct wml_pair, o.n_config + 3);
    for (size_t i = 0; i < o.n_config; i++) config[i] = o.config[i];
    config[o.n_config++] = (struct wml_pair){"ep.context_enable", "1"};
    config[o.n_config++] = (struct wml_pair){"ep.context_embed_mode", opts->embed ? "1" : "0"};
    config[o.n_config++] = (struct wml_pair){"ep.context_file_path", opts->output};
    o.config = config;
    if (!wml_session_open(s->ort, m, &o, &session, err)) return false;
    wml_session_close(session);
    if (!wml_file_exists(opts->output))
        return wml_fail(err, WML_E_RUNTIME, "%s took no node of the model: no context was written",
                        s->target.ep_name);
    return true;
}

static bool compile_one(const struct wml_json_val *request, struct wml_job_session *s, size_t i, size_t n,
                        struct wml_err *err)
{
    static const struct wml_pair sharing[] = {{"ep.share_ep_contexts", "1"}, {"ep.stop_share_ep_contexts", "1"}};
    const struct wml_json_val *one = wml_json_at(wml_json_get(request, "models"), i);
    struct wml_model_source m = {.path = wml_arena_cstr(&s->arena, wml_json_get_str(one, "model"))};
    struct wml_compile_opts opts = {.embed = wml_json_get_bool(request, "embed", false),
                                    .output = wml_arena_cstr(&s->arena, wml_json_get_str(one, "output"))};
    wml_target_session(&s->target, &opts.session);
    if (n > 1) {
        opts.session.config = sharing;
        opts.session.n_config = i + 1 == n ? 2 : 1;
    }
    if (wml_json_get_bool(request, "session", false)) return by_session(s, &m, &opts, err);
    return wml_ort_compile(s->ort, &m, &opts, err);
}

static bool compile(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc);
    size_t n = wml_json_len(wml_json_get(request, "models"));
    struct wml_job_session *s;
    struct wml_json j = {.out = &io->reply};
    bool ok = wml_job_target(io, request, &s, err);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "compile_ms");
    wml_json_begin(&j, '[');
    for (size_t i = 0; ok && i < n; i++) {
        wml_job_phase(io, "compile");
        wml_note_progress(io->cx, "Compiling", s->target.ep->label, i, n > 1 ? n : 0, NULL);
        uint64_t start = wml_now_ns();
        ok = compile_one(request, s, i, n, err);
        wml_json_put_fixed(&j, (double)(wml_now_ns() - start) / 1e6, 3);
    }
    wml_json_end(&j, ']');
    if (s->target.ep_name) wml_target_put(&j, &s->target, s->ort);
    wml_json_end(&j, '}');
    return ok;
}

const struct wml_job wml_job_compile = {
    .name = "compile", .summary = "Compile models for a target into EPContext models",
    .run = compile, .teardown = wml_job_session_teardown,
};
