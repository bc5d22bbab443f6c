/* Finds libcurl: WINML_CURL, beside the program, then where the system's loader looks. */
#include "hub/curl.h"

#include "os/path.h"
#include "os/sys.h"

/* Debian's second one differs in the TLS library below only. */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.dll", "libcurl-x64.dll", "libcurl-arm64.dll",
                                    "libcurl-4.dll"};

static bool load(struct wml_curl *c, const char *path, struct wml_err *err)
{
    void *symbol;
    const char *missing = NULL;
    if (!wml_dl_open(path, &c->dl, err)) return false;
#define LOAD(result, name, args)                                                                                       \
    symbol = wml_dl_symbol(c->dl, "curl_" #name);                                                                      \
    memcpy(&c->name, &symbol, sizeof symbol);                                                                          \
    if (!symbol) missing = missing ? missing : "curl_" #name;
    WML_CURL_FUNCTIONS(LOAD)
#undef LOAD
    if (!missing && c->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return true;
    if (!missing) wml_fail(err, WML_E_UNSUPPORTED, "%s does not start", path);
    else wml_fail(err, WML_E_UNSUPPORTED, "%s%s%s is too old, or not libcurl: it has no %s", path, c->version ? ", " : "", c->version ? c->version() : "", missing);
    wml_hint(err, "libcurl 7.66 or newer is needed; WINML_CURL names another one");
    wml_dl_close(c->dl);
    *c = (struct wml_curl){0};
    return false;
}

static bool load_beside(struct wml_curl *c, const char *program, struct wml_err *err)
{
    struct wml_buf path = {0};
    bool ok = false;
    for (size_t i = 0; !ok && program && i < WML_COUNT(names); i++) {
        wml_buf_clear(&path);
        wml_path_join(&path, wml_path_dir(wml_str(program)), wml_str(names[i]));
        ok = load(c, wml_buf_text(&path), err);
    }
    wml_buf_release(&path);
    return ok;
}

bool wml_curl_open(struct wml_curl *c, const struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_buf own = {0};
    struct wml_err why = {0}, old = {0};
    *c = (struct wml_curl){0};
    bool named = wml_env_is_set("WINML_CURL") && wml_env("WINML_CURL", &own);
    bool ok = named ? load(c, wml_buf_text(&own), err) : load_beside(c, cx ? cx->program : NULL, &why);
    wml_buf_release(&own);
    if (ok) return true;
    if (named) return wml_hint(err, "WINML_CURL must be the path of libcurl; unset it to take the system's");
    for (size_t i = 0; !ok && i < WML_COUNT(names); i++) {
        ok = load(c, names[i], &why);
        if (!ok && why.code == WML_E_UNSUPPORTED) old = why;
    }
    if (ok) return true;
    if (old.code) {
        if (err) *err = old;
        return false;
    }
    wml_fail(err, WML_E_UNSUPPORTED, "libcurl is not there, which fetches models");
    return wml_hint(err, "install it (Debian and Ubuntu: apt-get install libcurl4; Windows: libcurl.dll from curl.se beside "
                         "winml.exe), or name it in WINML_CURL; a folder on this machine works without");
}

/* The libraries below it (TLS, LDAP, Kerberos) have state of their own, which would be lost with the code that knows it. */
void wml_curl_close(struct wml_curl *c)
{
    if (c->dl) c->global_cleanup();
    wml_dl_leave(c->dl);
    *c = (struct wml_curl){0};
}

bool wml_curl_origin(const struct wml_curl *c, const char *url, struct wml_buf *out)
{
    CURLU *u = c->url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    bool ok = u && c->url_set(u, CURLUPART_URL, url, CURLU_URLENCODE) == CURLUE_OK &&
              c->url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && c->url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              c->url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
              (wml_str_ieq(wml_str(scheme), WML_STR("https")) || wml_str_ieq(wml_str(scheme), WML_STR("http")));
    if (ok) wml_buf_fmt(out, "%s://%s:%s", scheme, host, port);
    for (size_t i = 0; ok && i < out->len; i++)
        if (out->ptr[i] >= 'A' && out->ptr[i] <= 'Z') out->ptr[i] = (char)(out->ptr[i] + 'a' - 'A');
    c->free(scheme);
    c->free(host);
    c->free(port);
    c->url_cleanup(u);
    return ok;
}

bool wml_curl_join(const struct wml_curl *c, const char *base, const char *reference, struct wml_buf *out)
{
    CURLU *u = c->url();
    char *whole = NULL;
    bool ok = u && c->url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
              c->url_set(u, CURLUPART_URL, reference, CURLU_URLENCODE) == CURLUE_OK &&
              c->url_get(u, CURLUPART_URL, &whole, 0) == CURLUE_OK;
    if (ok) wml_buf_cstr(out, whole);
    c->free(whole);
    c->url_cleanup(u);
    return ok;
}
