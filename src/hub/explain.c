/* What the hub's refusals mean. It tells why in x-error-code; 401 and 404 are both said of what does not exist and of
 * what is not shown to everybody. */
#include "hub/internal.h"

enum { LONGEST_MESSAGE = 200 };

static bool is_code(const struct wml_http_answer *a, const char *code)
{
    return wml_str_is(wml_buf_view(&a->error_code), code);
}

/* The server's own words, unless they repeat the token. */
static struct wml_str words(const struct wml_hub *h, const struct wml_http_answer *a)
{
    const struct wml_buf *token = &h->http.token;
    if (token->len && wml_str_has(wml_buf_view(&a->error_message), wml_buf_text(token))) return WML_NO_STR;
    return wml_str_sub(wml_buf_view(&a->error_message), 0, LONGEST_MESSAGE);
}

static bool no_model(const struct wml_hub *h, struct wml_err *err)
{
    wml_fail(err, WML_E_NOT_FOUND, "%s has no model %s, or does not show it", wml_buf_text(&h->http.endpoint), h->id);
    if (h->http.token.len) return wml_hint(err, "check the spelling, and that the token (%s) may see it", h->token_from);
    return wml_hint(err, "check the spelling; for a private model set HF_TOKEN to a token that may see it");
}

static bool no_revision(const struct wml_hub *h, struct wml_err *err)
{
    wml_fail(err, WML_E_NOT_FOUND, "the model %s has no revision '%s'", h->id, h->revision);
    return wml_hint(err, "%s/%s/tree/main lists its branches and tags", wml_buf_text(&h->http.endpoint), h->id);
}

static bool gated(const struct wml_hub *h, struct wml_err *err)
{
    wml_fail(err, WML_E_NOT_FOUND, "the model %s is given only to those who accepted its conditions", h->id);
    return wml_hint(err, "accept them at %s/%s, then set HF_TOKEN to a token of that account", wml_buf_text(&h->http.endpoint), h->id);
}

static bool refused(const struct wml_hub *h, const struct wml_http_answer *a, struct wml_err *err)
{
    struct wml_str said = words(h, a);
    wml_fail(err, WML_E_NOT_FOUND, "%s refuses the model %s (%d%s%.*s)", wml_buf_text(&h->http.endpoint), h->id, a->status,
             said.len ? ", " : "", WML_ARG(said));
    if (h->http.token.len) return wml_hint(err, "the token (%s) may be wrong, outdated, or without the right to read this model", h->token_from);
    return wml_hint(err, "set HF_TOKEN to a token that may read it");
}

bool wml_hub_explain(const struct wml_hub *h, const struct wml_http_answer *a, struct wml_str name, struct wml_err *err)
{
    struct wml_str said = words(h, a);
    bool bad_token = a->status == 401 && wml_str_has(said, "Invalid credentials");
    if (is_code(a, "GatedRepo")) return gated(h, err);
    if (is_code(a, "RevisionNotFound")) return no_revision(h, err);
    if (is_code(a, "EntryNotFound") || (a->status == 404 && name.len && !a->error_code.len)) {
        wml_fail(err, WML_E_NOT_FOUND, "the model %s has no file %.*s in its revision '%s'", h->id, WML_ARG(name), h->revision);
        return false;
    }
    if (is_code(a, "RepoNotFound") || a->status == 404 || (a->status == 401 && !bad_token)) return no_model(h, err);
    if (a->status == 401 || a->status == 403) return refused(h, a, err);
    wml_fail(err, WML_E_IO, "%s%.*s of %s: %s answers %d%s%.*s", name.len ? "" : "the list of files", WML_ARG(name), h->id,
             wml_buf_text(&h->http.endpoint), a->status, said.len ? ", " : "", WML_ARG(said));
    return wml_hint(err, "try again later; what was received is kept");
}
