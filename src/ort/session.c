/* ort/session.c - opens a model and reads what goes in and out. */
#include "ort/internal.h"

#include "os/file.h"
#include "os/path.h"

const char *wml_ort_label(const struct wml_model_source *m)
{
    return m->path ? m->path : "the model";
}

bool wml_ort_create(struct wml_ort *o, const struct wml_model_source *m, const OrtSessionOptions *so, OrtSession **out,
                    struct wml_err *err)
{
    if (!wml_check_cancel(o->cx, err)) return false;
    if (!m->path) {
        if (!m->bytes.len) return wml_fail(err, WML_E_LOAD, "the model is empty");
        return wml_ort_ok(o, o->api->CreateSessionFromArray(o->env, m->bytes.ptr, m->bytes.len, so, out), WML_E_LOAD,
                          err);
    }
    struct wml_file_info file = wml_file_info(m->path);
    if (file.kind == WML_FILE_NONE) return wml_fail(err, WML_E_NOT_FOUND, "%s does not exist", m->path);
    if (file.kind == WML_FILE_DIR) return wml_fail(err, WML_E_USAGE, "%s is a folder, not a model", m->path);
    if (!file.size) return wml_fail(err, WML_E_LOAD, "cannot load %s: the file is empty", m->path);
    struct wml_ort_path path = {0};
    bool ok = wml_ort_path_init(&path, m->path, err) &&
              wml_ort_ok(o, o->api->CreateSession(o->env, path.ptr, so, out), WML_E_LOAD, err);
    wml_ort_path_release(&path);
    return ok ? true : wml_wrap(err, "cannot load %s", m->path);
}

/* The model editor's sessions wait for more nodes before kernels are made: loading alone is what a question about types
 * needs, and an operator without a kernel does not end it. */
bool wml_ort_load(struct wml_ort *o, const struct wml_model_source *m, const OrtSessionOptions *so, OrtSession **out,
                  struct wml_err *err)
{
    const OrtModelEditorApi *editor = o->api->GetModelEditorApi();
    if (!editor || m->path) return wml_ort_create(o, m, so, out, err);
    if (!wml_check_cancel(o->cx, err)) return false;
    if (!m->bytes.len) return wml_fail(err, WML_E_LOAD, "the model is empty");
    return wml_ort_ok(o, editor->CreateModelEditorSessionFromArray(o->env, m->bytes.ptr, m->bytes.len, so, out), WML_E_LOAD, err);
}

enum side { INPUT, OPTIONAL, OUTPUT };

static OrtStatus *name_of(const struct wml_session *s, enum side side, size_t i, char **out)
{
    const OrtApi *api = s->o->api;
    OrtAllocator *alloc = s->o->alloc;
    return side == INPUT      ? api->SessionGetInputName(s->session, i, alloc, out)
           : side == OPTIONAL ? api->SessionGetOverridableInitializerName(s->session, i, alloc, out)
                              : api->SessionGetOutputName(s->session, i, alloc, out);
}

static OrtStatus *type_of(const struct wml_session *s, enum side side, size_t i, OrtTypeInfo **out)
{
    const OrtApi *api = s->o->api;
    return side == INPUT      ? api->SessionGetInputTypeInfo(s->session, i, out)
           : side == OPTIONAL ? api->SessionGetOverridableInitializerTypeInfo(s->session, i, out)
                              : api->SessionGetOutputTypeInfo(s->session, i, out);
}

static bool read_one(struct wml_session *s, enum side side, size_t i, struct wml_io *io, struct wml_err *err)
{
    const struct wml_ort *o = s->o;
    char *name = NULL;
    OrtTypeInfo *info = NULL;
    if (!wml_ort_ok(o, name_of(s, side, i, &name), WML_E_RUNTIME, err)) return false;
    io->name = wml_arena_cstr(&s->arena, wml_str(name));
    o->alloc->Free(o->alloc, name);
    if (!wml_ort_ok(o, type_of(s, side, i, &info), WML_E_RUNTIME, err)) return false;
    bool ok = wml_ort_read_io(o, info, &s->arena, io, err);
    o->api->ReleaseTypeInfo(info);
    return ok ? true : wml_wrap(err, "%s \"%s\"", side == OUTPUT ? "output" : "input", io->name);
}

static bool read_all(struct wml_session *s, struct wml_err *err)
{
    const struct wml_ort *o = s->o;
    const OrtApi *api = o->api;
    if (!wml_ort_ok(o, api->SessionGetInputCount(s->session, &s->n_inputs), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->SessionGetOverridableInitializerCount(s->session, &s->n_optional), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->SessionGetOutputCount(s->session, &s->n_outputs), WML_E_RUNTIME, err))
        return false;
    s->input = WML_NEW_ARRAY(&s->arena, struct wml_io, s->n_inputs + s->n_optional + 1);
    s->output = WML_NEW_ARRAY(&s->arena, struct wml_io, s->n_outputs + 1);
    s->output_name = WML_NEW_ARRAY(&s->arena, const char *, s->n_outputs + 1);
    for (size_t i = 0; i < s->n_inputs; i++)
        if (!read_one(s, INPUT, i, &s->input[i], err)) return false;
    for (size_t i = 0; i < s->n_optional; i++)
        if (!read_one(s, OPTIONAL, i, &s->input[s->n_inputs + i], err)) return false;
    for (size_t i = 0; i < s->n_outputs; i++) {
        if (!read_one(s, OUTPUT, i, &s->output[i], err)) return false;
        s->output_name[i] = s->output[i].name;
    }
    return true;
}

/* ORT goes on without an EP that cannot start, and everything runs on the CPU: not what was asked for. */
bool wml_ort_check_refusal(struct wml_ort *o, const struct wml_session_opts *opts, struct wml_err *err)
{
    if (!opts || !opts->n_devices || !o->refusal.len) return true;
    struct wml_buf text = {.max = 4096};
    wml_ort_clean_message(wml_buf_text(&o->refusal), &text);
    struct wml_str s = wml_buf_view(&text);
    static const char mark[] = " failed with error: ";
    for (size_t i = 0; i + sizeof mark < s.len; i++)
        if (!memcmp(s.ptr + i, mark, sizeof mark - 1)) {
            s = wml_str_sub(s, i + sizeof mark - 1, s.len);
            break;
        }
    wml_fail(err, WML_E_LOAD, "%s did not start: %.*s", opts->device[0]->ep, WML_ARG(s));
    wml_buf_release(&text);
    return wml_hint(err, "check the provider options (--ep-options), e.g. paths of libraries of the EP");
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
    if (opts && opts->observer && !(s->observe = wml_ort_observe_new(o, opts->observer, so, err))) goto done;
    wml_buf_clear(&o->refusal);
    bool look = opts && opts->look_only;
    if (!(look ? wml_ort_load : wml_ort_create)(o, m, so, &s->session, err) || !wml_ort_check_refusal(o, opts, err)) goto done;
    if (!read_all(s, err)) goto done;
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
    wml_ort_observe_free(s->observe);
    wml_arena_release(&s->arena);
    free(s);
}

const struct wml_io *wml_session_inputs(const struct wml_session *s, size_t *n)
{
    *n = s->n_inputs;
    return s->input;
}

const struct wml_io *wml_session_optional_inputs(const struct wml_session *s, size_t *n)
{
    *n = s->n_optional;
    return s->input + s->n_inputs;
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
