/* The words between parent and child: envelopes of replies, and the table of jobs. Both sides are the
 * same binary, but a child may die while writing, so the reader trusts nothing. */
#include "worker/wire.h"

static const struct wml_job *const jobs[] = {
#define JOB(name) &wml_job_##name,
#include "worker/jobs.def"
#undef JOB
};

const struct wml_job *wml_job_find(const char *name)
{
    for (size_t i = 0; i < WML_COUNT(jobs); i++)
        if (strcmp(jobs[i]->name, name) == 0) return jobs[i];
    return NULL;
}

void wml_wire_reply(struct wml_buf *out, struct wml_str reply, const struct wml_err *err)
{
    struct wml_json j = {.out = out};
    bool ok = !err || err->code == WML_OK;
    wml_json_begin(&j, '{');
    wml_json_key(&j, "ok");
    wml_json_put_bool(&j, ok);
    if (!ok) {
        wml_json_key(&j, "code");
        wml_json_put_cstr(&j, wml_code_name(err->code));
        wml_json_key(&j, "msg");
        wml_json_put_cstr(&j, err->msg);
        wml_json_key(&j, "hint");
        wml_json_put_cstr(&j, err->hint);
    }
    if (reply.len) {
        wml_json_key(&j, "reply");
        wml_json_put_raw(&j, reply);
    }
    wml_json_end(&j, '}');
}

static enum wml_code code_named(struct wml_str name)
{
    for (int c = WML_OK; c <= WML_E_INTERNAL; c++)
        if (wml_str_is(name, wml_code_name((enum wml_code)c))) return (enum wml_code)c;
    return WML_E_CHILD;
}

bool wml_wire_read(struct wml_str envelope, struct wml_json_doc **reply, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    *reply = NULL;
    if (!wml_json_parse(envelope, &doc, err)) return wml_wrap(err, "the reply of the child process");
    const struct wml_json_val *root = wml_json_root(doc), *inner = wml_json_get(root, "reply");
    bool ok = wml_json_get_bool(root, "ok", false);
    if (wml_json_is_object(inner)) {
        struct wml_buf text = {0};
        wml_json_print(inner, &text);
        bool parsed = wml_json_parse(wml_buf_view(&text), reply, err);
        wml_buf_release(&text);
        if (!parsed) ok = false;
    }
    if (!ok && wml_json_is_string(wml_json_get(root, "msg"))) {
        struct wml_str msg = wml_json_get_str(root, "msg"), hint = wml_json_get_str(root, "hint");
        wml_fail(err, code_named(wml_json_get_str(root, "code")), "%.*s", WML_ARG(msg));
        if (hint.len) wml_hint(err, "%.*s", WML_ARG(hint));
    } else if (!ok) {
        wml_fail(err, WML_E_CHILD, "the child process left a reply that cannot be read");
    } else if (!*reply) {
        ok = wml_json_parse(WML_STR("{}"), reply, err);
    }
    wml_json_free(doc);
    return ok;
}
