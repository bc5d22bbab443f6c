/* hub/http.h - many HTTP requests at once, in one thread: redirects, ranges, new tries, who may see the token. Internal
 * to src/hub.
 *
 * A job is one thing to get. The pool asks its owner for jobs while there is room and hands each back when it has ended.
 * What was received stays received: a new try asks for the rest, and where a server knows no ranges what is there already
 * is passed over. A redirect is followed here, not by libcurl, so that the token is sent where the endpoint is and nowhere
 * else. Messages name a server, never a whole address: signed addresses are secrets. */
#ifndef WML_HUB_HTTP_H
#define WML_HUB_HTTP_H

#include "hub/curl.h"

struct wml_http_answer { /* the last one of a job; texts are empty when the header was not there */
    int status;          /* 0: none came */
    struct wml_buf location, etag, linked_etag, commit, error_code, error_message;
    uint64_t length, linked_size;     /* UINT64_MAX: not said */
    uint64_t range_from, range_total; /* of a 206; UINT64_MAX: not said */
    uint64_t wait_ms;                 /* Retry-After; 0: not said */
};

enum wml_http_end {
    WML_HTTP_ANSWERED, /* any status, redirects followed; what `from` .. `to` asks for is complete when it is 2xx */
    WML_HTTP_REFUSED,  /* by start or body; err is theirs */
    WML_HTTP_LOST      /* the server cannot be reached, or says again and again that it cannot now; err says so */
};

struct wml_http_job {
    /* The owner's. */
    struct wml_buf url; /* follows redirects */
    const char *what;   /* for log lines */
    bool head;
    bool alone;         /* a connection of its own rather than a share of one */
    bool whole;         /* `to` is the end: without a range while `from` is 0 */
    uint64_t from, to;  /* bytes wanted; `from` moves on with what body took. to 0: to the end, wherever it is */
    /* The headers of a 2xx are there. May set `skip`. false: leave it. NULL: fine. */
    bool (*start)(struct wml_http_job *job, struct wml_err *err);
    bool (*body)(struct wml_http_job *job, const void *bytes, size_t n, struct wml_err *err);
    /* The pool's. */
    enum wml_http_end end;
    struct wml_http_answer answer;
    struct wml_err err;
    uint64_t skip;             /* bytes of the body that nobody wants */
    bool answered;             /* past the headers */
    unsigned tries, redirects;
    uint64_t not_before, progress_from; /* ns; `from` of the last try */
    CURL *easy;
    struct curl_slist *headers;
    char reason[CURL_ERROR_SIZE];
    struct wml_http_job *next;
};

struct wml_http {
    struct wml_ctx *cx;
    struct wml_curl curl;
    CURLM *multi;
    struct wml_buf endpoint, origin; /* without a slash at its end; see wml_curl_origin */
    struct wml_buf token;            /* empty: none */
    struct wml_buf ca;               /* file of certificates; empty: the system's */
    uint64_t retry_ms, timeout_s, head_timeout_s;
    struct wml_http_job *waiting; /* for their next try */
    unsigned active;              /* jobs under way */
};

struct wml_http_owner {
    void *arg;
    /* The next job, or NULL: none now; *later: ask again in a moment. false: stop everything. */
    bool (*next)(void *arg, struct wml_http_job **job, bool *later, struct wml_err *err);
    /* The job is the owner's again. false: stop everything. */
    bool (*ended)(void *arg, struct wml_http_job *job, struct wml_err *err);
};

/* Opens libcurl. The settings are filled before. */
bool wml_http_open(struct wml_http *h, struct wml_err *err);
void wml_http_close(struct wml_http *h);
/* Until the owner has no more jobs. When it stops early, jobs that were under way are the owner's as well, without
 * ended. `most`: jobs at once. */
bool wml_http_run(struct wml_http *h, const struct wml_http_owner *owner, unsigned most, struct wml_err *err);
/* What a job owns, not itself; ends it when it is under way. Before the pool closes, and not within start or body. */
void wml_http_job_release(struct wml_http *h, struct wml_http_job *job);
/* A single request. */
bool wml_http_one(struct wml_http *h, struct wml_http_job *job, struct wml_err *err);

/* answer.c: takes in a header line; a status line begins a new answer. */
void wml_http_answer_line(struct wml_http_answer *a, struct wml_str line);
void wml_http_answer_release(struct wml_http_answer *a);

#endif
