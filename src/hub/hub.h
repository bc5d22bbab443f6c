/* hub/hub.h - a model id ("org/name") to a folder on this machine, from the Hugging Face hub or a mirror of it.
 *
 * The cache is that of the Python package huggingface_hub, in its layout, with its locks: either finds what the other
 * fetched, and goes on with what the other left unfinished (docs/internals/hub.md). A file appears there whole and, where
 * the hub says what its content must hash to, checked. A fetch that ends early loses nothing that was received in order.
 *
 * Environment: HF_ENDPOINT, HF_TOKEN (HUGGING_FACE_HUB_TOKEN), HF_TOKEN_PATH, HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HOME,
 * HF_HUB_CACHE (HUGGINGFACE_HUB_CACHE), HF_HUB_OFFLINE (TRANSFORMERS_OFFLINE), HF_HUB_ETAG_TIMEOUT,
 * HF_HUB_DOWNLOAD_TIMEOUT, HF_HUB_DISABLE_PROGRESS_BARS, the proxy variables of curl, CURL_CA_BUNDLE
 * (REQUESTS_CA_BUNDLE, SSL_CERT_FILE), and WINML_CURL, the path of libcurl, which is loaded when the network is needed.
 *
 * The token goes to the endpoint only, never to where it redirects, and into no message. */
#ifndef WML_HUB_HUB_H
#define WML_HUB_HUB_H

#include "base/ctx.h"

enum wml_hub_what {
    WML_HUB_MODEL, /* configuration, tokenizer, preprocessor, and the weights: safetensors, else PyTorch's .bin */
    WML_HUB_CONFIG, /* the same without the weights */
    WML_HUB_FACTS   /* what the model is and takes, a few kilobytes: config.json, those of tokenizer and preprocessor, the index of weights */
};

enum wml_hub_network {
    WML_HUB_NEWEST,      /* asks what the revision is now; the cache serves when the hub cannot be reached */
    WML_HUB_CACHE_FIRST, /* asks only when the cache lacks something */
    WML_HUB_OFFLINE      /* never asks; HF_HUB_OFFLINE makes it so */
};

struct wml_hub_opts { /* zero is valid */
    const char *revision; /* branch, tag, commit, refs/pr/N; NULL: what the id says behind "@", else main */
    enum wml_hub_what what;
    const char *const *patterns; /* .. NULL: these files instead; * ? [] as in a shell, * also over "/" */
    enum wml_hub_network network;
    const char *cache_dir; /* NULL: as the environment says */
    const char *endpoint;  /* NULL: as the environment says */
    const char *token;     /* NULL: as the environment says; "": none */
    unsigned retry_ms;     /* pause before the first new try, doubled for each further one; 0: 500 */
    uint32_t piece;        /* bytes of a large file that one connection gets at a time; 0: 8 MiB */
};

/* "name" or "org/name", with "@revision" or without, as the hub allows them. */
bool wml_hub_is_id(struct wml_str text);

/* Sets *folder to that of the snapshot; its last part is the commit. The files asked for are in it, more may be. `opts`
 * may be NULL. Reports progress, can be cancelled. One thread at a time for one `cx`.
 *
 * WML_E_USAGE: no id, no revision, no token; WML_E_NOT_FOUND: the hub, or the cache when offline, has no such model,
 * revision or file, or shows it only to others; WML_E_IO: network or disk; WML_E_VERIFY: bytes that are not what the hub
 * says; WML_E_UNSUPPORTED: no libcurl. */
bool wml_hub_fetch(struct wml_ctx *cx, const char *id, const struct wml_hub_opts *opts, struct wml_buf *folder,
                   struct wml_err *err);

#endif
