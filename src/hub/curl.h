/* hub/curl.h - libcurl, opened at run time: the program starts without it and says what to install. Internal to src/hub.
 *
 * The headers give types and numbers only; its C interface has been the same since 7.66. */
#ifndef WML_HUB_CURL_H
#define WML_HUB_CURL_H

#include <curl/curl.h>
#include "base/ctx.h"

/* result, name behind "curl_", arguments */
#define WML_CURL_FUNCTIONS(F)                                                                                          \
    F(CURLcode, global_init, (long))                                                                                   \
    F(void, global_cleanup, (void))                                                                                    \
    F(char *, version, (void))                                                                                         \
    F(CURL *, easy_init, (void))                                                                                       \
    F(void, easy_cleanup, (CURL *))                                                                                    \
    F(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                                                                \
    F(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                                                                 \
    F(const char *, easy_strerror, (CURLcode))                                                                         \
    F(CURLM *, multi_init, (void))                                                                                     \
    F(CURLMcode, multi_cleanup, (CURLM *))                                                                             \
    F(CURLMcode, multi_add_handle, (CURLM *, CURL *))                                                                  \
    F(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                                                               \
    F(CURLMcode, multi_perform, (CURLM *, int *))                                                                      \
    F(CURLMcode, multi_poll, (CURLM *, struct curl_waitfd *, unsigned, int, int *))                                    \
    F(CURLMsg *, multi_info_read, (CURLM *, int *))                                                                    \
    F(struct curl_slist *, slist_append, (struct curl_slist *, const char *))                                          \
    F(void, slist_free_all, (struct curl_slist *))                                                                     \
    F(CURLU *, url, (void))                                                                                            \
    F(void, url_cleanup, (CURLU *))                                                                                    \
    F(CURLUcode, url_set, (CURLU *, CURLUPart, const char *, unsigned))                                                \
    F(CURLUcode, url_get, (const CURLU *, CURLUPart, char **, unsigned))                                               \
    F(void, free, (void *))

struct wml_dl;

struct wml_curl { /* zero is valid and closed */
    struct wml_dl *dl;
#define WML_CURL_MEMBER(result, name, args) result(*name) args;
    WML_CURL_FUNCTIONS(WML_CURL_MEMBER)
#undef WML_CURL_MEMBER
};

bool wml_curl_open(struct wml_curl *c, const struct wml_ctx *cx, struct wml_err *err);
void wml_curl_close(struct wml_curl *c);

/* What a URL begins with, "https://host:443": two URLs of the same text go to the same server. false: no http or https
 * URL. */
bool wml_curl_origin(const struct wml_curl *c, const char *url, struct wml_buf *out);
/* Where `reference`, absolute or not, leads when `base` says it. */
bool wml_curl_join(const struct wml_curl *c, const char *base, const char *reference, struct wml_buf *out);

#endif
