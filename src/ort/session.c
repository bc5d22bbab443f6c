/* ort/session.c - opens a model and reads what goes in and out. */
#include "ort/internal.h"

#include "os/file.h"
#include "os/path.h"

const char *wml_ort_label(const struct wml_model_source *m)
{
    return m->path ? m->path : "the model";
}

bool wml_ort_create(struct wml_ort *o, const struct wml_model_source *m, const OrtSessionOptions *so,
                    OrtSession **out, struct wml_err *err)
{
    if (!wml_check_cancel(o->cx, err)) return false;
    if (!m->path) {
        if (!m->bytes.len) return wml_fail(err, WML_E_LOAD, "the model is empty");
        return wml_ort_ok(o, o->api->CreateSessionFromArray(o->env, m->bytes.ptr, m->bytes.len, so, out),
                          WML_E_LOAD, err);
    }
    struct wml_file_info file = wml_file_info(m->path);
    if (file.kind == WML_FILE_NONE)
        return wml_fail(err, WML_E_NOT_FOUND, "%s does not exist", m->path);
    if (file.kind == WML_FILE_DIR)
        return wml_fail(err, WML_E_USAGE, "%s is a folder, not a model", m->path);
    if (!file.size) return wml_fail(err, WML_E_LOAD, "cannot load %s: the file is empty", m->path);
    struct wml_ort_path path = {0};
    bool ok = wml_ort_path_init(&path, m->path, err) &&
              wml_ort_ok(o, o->api->CreateSession(o->env, path.ptr, so, out), WML_E_LOAD, err);
    wml_ort_path_release(&path);
    return ok ? true : wml_wrap(err, "cannot load %s", m->path);
}

static bool read_side(struct wml_session *s, bool input, struct wml_err *err)
{
    const struct wml_ort *o = s->o;
    const OrtApi *api = o->api;
    size_t n = 0;
    if (!wml_ort_ok(o, input ? api->SessionGetInputCount(s->session, &n) : api->SessionGetOutputCount(s->session, &n),
                    WML_E_RUNTIME, err))
        return false;
    struct wml_io *io = WML_NEW_ARRAY(&s->arena, struct wml_io, n + 1);
    const char **names = WML_NEW_ARRAY(&s->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        char *name = NULL;
        OrtTypeInfo *info = NULL;
        OrtStatus *st = input ? api->SessionGetInputName(s->session, i, o->alloc, &name)
                              : api->SessionGetOutputName(s->session, i, o->alloc, &name);
        if (!wml_ort_ok(o, st, WML_E_RUNTIME, err)) return false;
        io[i].name = names[i] = wml_arena_cstr(&s->arena, wml_str(name));
        o->alloc->Free(o->alloc, name);
        st = input ? api->SessionGetInputTypeInfo(s->session, i, &info)
                   : api->SessionGetOutputTypeInfo(s->session, i, &info);
        if (!wml_ort_ok(o, st, WML_E_RUNTIME, err)) return false;
        bool ok = wml_ort_read_io(o, info, &s->arena, &io[i], err);
        api->ReleaseTypeInfo(info);
        if (!ok) return wml_wrap(err, "%s \"%s\"", input ? "input" : "output", io[i].name);
    }
    if (input) {
        s->input = io;
        s->input_name = names;
        s->n_inputs = n;
    } else {
        s->output = io;
        s->output_name = names;
        s->n_outputs = n;
    }
    return true;
}

bool wml_session_open(struct wml_ort *o, const struct wml_model_source *m, const struct wml_session_opts *opts,
                      struct wml_session **out, struct wml_err *err)
{
    static const struct wml_session_opts plain = {0};
    bool ok = false;
    OrtSessionOptions *so = NULL;
    struct wml_session *s = wml_xcalloc(1, sizeof *s);
    s->o = o;
    s->label = wml_arena_cstr(&s->arena, wml_path_name(wml_str(wml_ort_label(m))));
    if (!wml_ort_options(o, m, opts ? opts : &plain, &so, err)) goto done;
    if (!wml_ort_create(o, m, so, &s->session, err)) goto done;
    if (!read_side(s, true, err) || !read_side(s, false, err)) goto done;
    ok = true;
done:
    if (so) o->api->ReleaseSessionOptions(so);
    if (!ok) {
        wml_session_close(s);
        s = NULL;
    }
    *out = s;
    return ok;
}

void wml_session_close(struct wml_session *s)
{
    if (!s) return;
    if (s->session) s->o->api->ReleaseSession(s->session);
    wml_arena_release(&s->arena);
    free(s);
}

const struct wml_io *wml_session_inputs(const struct wml_session *s, size_t *n)
{
    *n = s->n_inputs;
    return s->input;
}

const struct wml_io *wml_session_outputs(const struct wml_session *s, size_t *n)
{
    *n = s->n_outputs;
    return s->output;
}

bool wml_session_end_profile(struct wml_session *s, struct wml_buf *path, struct wml_err *err)
{
    char *name = NULL;
    if (!wml_ort_ok(s->o, s->o->api->SessionEndProfiling(s->session, s->o->alloc, &name), WML_E_TRACE, err))
        return wml_wrap(err, "end profiling of %s", s->label);
    wml_buf_cstr(path, name ? name : "");
    if (name) s->o->alloc->Free(s->o->alloc, name);
    return path->len ? true : wml_fail(err, WML_E_TRACE, "%s: profiling was not on", s->label);
}
