/* Settings of a fetch: what the caller says, else the environment, read as huggingface_hub reads it. */
#include "hub/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

enum { TIMEOUT_S = 10, LONGEST_TOKEN = 4096 };

static bool is_true(const char *name)
{
    struct wml_buf b = {0};
    bool yes = false;
    if (wml_env(name, &b)) {
        static const char *const words[] = {"1", "ON", "YES", "TRUE"};
        for (size_t i = 0; i < WML_COUNT(words); i++) yes = yes || wml_str_ieq(wml_buf_view(&b), wml_str(words[i]));
    }
    wml_buf_release(&b);
    return yes;
}

/* $NAME and ${NAME}; one that is not set stays as it is. */
static void put_variables(struct wml_buf *out, struct wml_str s)
{
    struct wml_buf name = {0}, value = {0};
    for (size_t i = 0; i < s.len; i++) {
        bool braced = i + 1 < s.len && s.ptr[i + 1] == '{';
        size_t from = i + 1 + (braced ? 1 : 0), to = from;
        while (to < s.len && (s.ptr[to] == '_' || (s.ptr[to] >= '0' && s.ptr[to] <= '9') || (s.ptr[to] >= 'a' && s.ptr[to] <= 'z') ||
                              (s.ptr[to] >= 'A' && s.ptr[to] <= 'Z')))
            to++;
        wml_buf_clear(&name);
        wml_buf_clear(&value);
        wml_buf_str(&name, wml_str_sub(s, from, to));
        if (s.ptr[i] != '$' || to == from || (braced && (to == s.len || s.ptr[to] != '}')) || !wml_env(wml_buf_text(&name), &value)) {
            wml_buf_char(out, s.ptr[i]);
            continue;
        }
        wml_buf_str(out, wml_buf_view(&value));
        i = to - (braced ? 0 : 1);
    }
    wml_buf_release(&name);
    wml_buf_release(&value);
}

/* A path of the environment, "~" and variables replaced. false: not set. */
static bool env_path(const char *name, struct wml_buf *out)
{
    struct wml_buf raw = {0}, home = {0};
    bool set = wml_env_is_set(name) && wml_env(name, &raw);
    struct wml_str s = wml_buf_view(&raw);
    wml_buf_clear(out);
    if (set && s.ptr[0] == '~' && (s.len == 1 || s.ptr[1] == '/' || s.ptr[1] == '\\') && wml_path_home(&home)) {
        wml_buf_str(out, wml_buf_view(&home));
        s = wml_str_sub(s, 1, s.len);
    }
    if (set) put_variables(out, s);
    wml_buf_release(&raw);
    wml_buf_release(&home);
    return set;
}

static bool find_home(struct wml_buf *out, struct wml_err *err)
{
    struct wml_buf base = {0};
    bool ok = env_path("HF_HOME", out);
    if (!ok) {
        ok = env_path("XDG_CACHE_HOME", &base);
        if (!ok && wml_path_home(&base)) {
            wml_buf_cstr(&base, "/.cache");
            ok = true;
        }
        wml_buf_clear(out);
        if (ok) wml_path_join(out, wml_buf_view(&base), WML_STR("huggingface"));
    }
    wml_buf_release(&base);
    if (ok) return true;
    wml_fail(err, WML_E_NOT_FOUND, "there is no home folder for the cache of models");
    return wml_hint(err, "set HF_HUB_CACHE to a folder");
}

static void find_cache(struct wml_hub *h, struct wml_str home)
{
    struct wml_buf b = {0}, name = {0};
    if (h->opts->cache_dir) wml_buf_cstr(&b, h->opts->cache_dir);
    else if (!env_path("HF_HUB_CACHE", &b) && !env_path("HUGGINGFACE_HUB_CACHE", &b)) wml_path_join(&b, home, WML_STR("hub"));
    h->cache = wml_arena_cstr(&h->arena, wml_buf_view(&b));
    wml_buf_cstr(&name, "models--");
    for (const char *c = h->id; *c; c++) wml_buf_cstr(&name, *c == '/' ? "--" : (char[]){*c, '\0'});
    wml_buf_clear(&b);
    wml_path_join(&b, wml_str(h->cache), wml_buf_view(&name));
    h->repo = wml_arena_cstr(&h->arena, wml_buf_view(&b));
    wml_buf_release(&b);
    wml_buf_release(&name);
}

/* Line ends and blanks around it are no part of a token. */
static void take_token(struct wml_hub *h, struct wml_str s)
{
    s = wml_str_trim(s);
    wml_buf_clear(&h->http.token);
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] != '\r' && s.ptr[i] != '\n') wml_buf_char(&h->http.token, s.ptr[i]);
}

static bool find_token(struct wml_hub *h, struct wml_str home, struct wml_err *err)
{
    struct wml_buf b = {0}, path = {0};
    const char *from = "the caller's token";
    if (h->opts->token) take_token(h, wml_str(h->opts->token));
    else if (is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return true;
    else if (wml_env_is_set(from = "HF_TOKEN") && wml_env(from, &b)) take_token(h, wml_buf_view(&b));
    else if (wml_env_is_set(from = "HUGGING_FACE_HUB_TOKEN") && wml_env(from, &b)) take_token(h, wml_buf_view(&b));
    else {
        if (!env_path("HF_TOKEN_PATH", &path)) wml_path_join(&path, home, WML_STR("token"));
        from = "the file of HF_TOKEN_PATH, or token in HF_HOME,";
        if (wml_file_exists(wml_buf_text(&path)) && wml_file_read(wml_buf_text(&path), LONGEST_TOKEN, &b, NULL)) take_token(h, wml_buf_view(&b));
    }
    bool ok = h->http.token.len <= LONGEST_TOKEN;
    for (size_t i = 0; i < h->http.token.len; i++) ok = ok && h->http.token.ptr[i] > 0x20 && h->http.token.ptr[i] < 0x7f;
    wml_buf_release(&b);
    wml_buf_release(&path);
    h->token_from = from;
    return ok || wml_fail(err, WML_E_USAGE, "%s is no token: it has blanks or characters that are no ASCII", from);
}

static bool find_endpoint(struct wml_hub *h, struct wml_err *err)
{
    struct wml_buf *out = &h->http.endpoint;
    if (h->opts->endpoint) wml_buf_cstr(out, h->opts->endpoint);
    else if (!wml_env_is_set("HF_ENDPOINT") || !wml_env("HF_ENDPOINT", out)) wml_buf_cstr(out, "https://huggingface.co");
    while (out->len && out->ptr[out->len - 1] == '/') out->ptr[--out->len] = '\0';
    if (wml_str_starts(wml_buf_view(out), "https://") || wml_str_starts(wml_buf_view(out), "http://")) return true;
    wml_fail(err, WML_E_USAGE, "the endpoint '%s' is no web address", wml_buf_text(out));
    return wml_hint(err, "HF_ENDPOINT is the address of the hub or a mirror, as https://huggingface.co");
}

static uint64_t seconds(const char *name)
{
    struct wml_buf b = {0};
    uint64_t v = 0;
    if (!wml_env(name, &b) || !wml_parse_u64(wml_buf_view(&b), &v) || !v || v > 3600) v = TIMEOUT_S;
    wml_buf_release(&b);
    return v;
}

bool wml_hub_settings(struct wml_hub *h, struct wml_err *err)
{
    struct wml_buf home = {0};
    const bool named = h->opts->cache_dir || wml_env_is_set("HF_HUB_CACHE") || wml_env_is_set("HUGGINGFACE_HUB_CACHE");
    bool ok = find_home(&home, named ? NULL : err) || named;
    h->offline = h->opts->network == WML_HUB_OFFLINE || is_true("HF_HUB_OFFLINE") ||
                 (!wml_env_is_set("HF_HUB_OFFLINE") && is_true("TRANSFORMERS_OFFLINE"));
    h->progress = !is_true("HF_HUB_DISABLE_PROGRESS_BARS");
    if (ok) find_cache(h, wml_buf_view(&home));
    ok = ok && find_endpoint(h, err) && (h->offline || find_token(h, wml_buf_view(&home), err));
    if (ok && !env_path("CURL_CA_BUNDLE", &h->http.ca) && !env_path("REQUESTS_CA_BUNDLE", &h->http.ca)) env_path("SSL_CERT_FILE", &h->http.ca);
    h->http.cx = h->cx;
    h->http.retry_ms = h->opts->retry_ms ? h->opts->retry_ms : 500;
    h->http.timeout_s = seconds("HF_HUB_DOWNLOAD_TIMEOUT");
    h->http.head_timeout_s = seconds("HF_HUB_ETAG_TIMEOUT");
    wml_buf_release(&home);
    return ok;
}
