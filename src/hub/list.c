/* Asks the hub what a revision is now: {"sha": commit, "siblings": [{"rfilename": name}, ...]}. */
#include "hub/internal.h"

#include "text/json.h"

enum { ANSWER_MAX = 64 << 20 };

struct answer {
    struct wml_http_job job;
    struct wml_buf text;
};

/* A new try that the server answers from the start again passes over what is there: see http.h. */
static bool add(struct wml_http_job *job, const void *bytes, size_t n, struct wml_err *err)
{
    struct answer *a = (void *)job;
    wml_buf_add(&a->text, bytes, n);
    return !a->text.failed || wml_fail(err, WML_E_FORMAT, "%s is larger than %d MiB", job->what, ANSWER_MAX >> 20);
}

bool wml_hub_read_list(struct wml_hub *h, struct wml_str text, const char **commit, struct wml_hub_names *names, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    const struct wml_json_val *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    bool ok = wml_json_parse(text, &doc, err);
    const struct wml_json_val *root = wml_json_root(doc);
    struct wml_str sha = wml_json_get_str(root, "sha");
    if (ok && !wml_hub_is_word(sha)) ok = wml_fail(err, WML_E_FORMAT, "it names no commit");
    while (ok && wml_json_next(wml_json_get(root, "siblings"), &it, &key, &one)) {
        struct wml_str name = wml_json_get_str(one, "rfilename");
        if (!name.len) continue;
        if (wml_hub_is_file_name(name)) WML_PUSH(&names->v, wml_arena_str(&h->arena, name));
        else wml_log(h->cx, WML_LOG_WARN, "a file of %s is left out: its name is no safe path", h->id);
    }
    if (ok) *commit = wml_arena_cstr(&h->arena, sha);
    wml_json_free(doc);
    if (ok) return true;
    wml_wrap(err, "what %s says of %s is not understood", wml_buf_text(&h->http.endpoint), h->id);
    return wml_hint(err, "check that HF_ENDPOINT is a hub of models, and that no proxy answers in its place");
}

bool wml_hub_list(struct wml_hub *h, const char **commit, struct wml_hub_names *names, bool *lost, struct wml_err *err)
{
    struct answer a = {.job = {.what = "the list of files", .body = add}, .text = {.max = ANSWER_MAX}};
    wml_buf_fmt(&a.job.url, "%s/api/models/%s/revision/", wml_buf_text(&h->http.endpoint), h->id);
    wml_hub_escape(&a.job.url, wml_str(h->revision), false);
    bool ok = wml_http_one(&h->http, &a.job, err);
    *lost = !ok && a.job.end == WML_HTTP_LOST;
    if (ok && (a.job.answer.status < 200 || a.job.answer.status > 299)) ok = wml_hub_explain(h, &a.job.answer, WML_NO_STR, err);
    ok = ok && wml_hub_read_list(h, wml_buf_view(&a.text), commit, names, err);
    wml_http_job_release(&h->http, &a.job);
    wml_buf_release(&a.text);
    return ok;
}
