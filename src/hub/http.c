/* The pool of requests, over one multi handle of libcurl. See http.h. */
#include "hub/http.h"

#include <inttypes.h>
#include "base/arena.h"
#include "os/sys.h"
#include "text/words.h"

enum {
    TRIES = 5,           /* without a byte of progress between them */
    TRIES_UNREACHABLE = 2, /* no such host, nobody listens: most likely there is no network */
    REDIRECTS = 10,
    CONNECT_S = 10,
    TICK_MS = 100,
    LONGEST_PAUSE_MS = 8000,
    LONGEST_WAIT_MS = 300000 /* what a server may ask for */
};

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct wml_http_job *job = arg;
    struct wml_str line = wml_str_trim((struct wml_str){bytes, size * count});
    if (job->answered) return size * count; /* trailers */
    if (line.len) {
        wml_http_answer_line(&job->answer, line);
        return size * count;
    }
    if (job->answer.status < 200) return size * count;
    job->answered = true;
    if (job->answer.status >= 300 || job->head) return size * count;
    bool ok = true;
    if (job->answer.status == 200) job->skip = job->from;
    else if (job->answer.status == 206 && job->answer.range_from != job->from)
        ok = wml_fail(&job->err, WML_E_IO, "%s: the server sends another part than was asked for", job->what);
    if (ok && (!job->start || job->start(job, &job->err))) return size * count;
    job->end = WML_HTTP_REFUSED;
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct wml_http_job *job = arg;
    size_t n = size * count, skip = (size_t)WML_MIN(job->skip, (uint64_t)n);
    if (job->answer.status >= 300 || job->answer.status < 200) return n; /* an error page, nobody reads it */
    job->skip -= skip;
    if (n == skip) return n;
    if (job->to && n - skip > job->to - job->from) {
        job->end = WML_HTTP_REFUSED;
        wml_fail(&job->err, WML_E_IO, "%s: the server sends more bytes than it announced", job->what);
        return 0;
    }
    if (!job->body(job, bytes + skip, n - skip, &job->err)) {
        job->end = WML_HTTP_REFUSED;
        return 0;
    }
    job->from += n - skip;
    return n;
}

static bool may_see_token(const struct wml_http *h, const char *url)
{
    struct wml_buf origin = {0};
    bool same = wml_curl_origin(&h->curl, url, &origin) && wml_str_eq(wml_buf_view(&origin), wml_buf_view(&h->origin));
    wml_buf_release(&origin);
    return same;
}

static void add_headers(struct wml_http *h, struct wml_http_job *job)
{
    struct wml_buf line = {0};
    wml_buf_fmt(&line, "User-Agent: winml/%s; %s", WML_VERSION, h->curl.version());
    job->headers = h->curl.slist_append(job->headers, wml_buf_text(&line));
    if (h->token.len && may_see_token(h, wml_buf_text(&job->url))) {
        wml_buf_clear(&line);
        wml_buf_fmt(&line, "Authorization: Bearer %s", wml_buf_text(&h->token));
        job->headers = h->curl.slist_append(job->headers, wml_buf_text(&line));
    }
    wml_buf_release(&line);
}

/* The settings of libcurl are `long` by its contract. */
static bool set_up(struct wml_http *h, struct wml_http_job *job)
{
    CURLcode code = CURLE_OK;
    char range[48];
#define SET(option, value) code = code ? code : h->curl.easy_setopt(job->easy, CURLOPT_##option, value)
    SET(URL, wml_buf_text(&job->url));
    SET(PRIVATE, job);
    SET(NOSIGNAL, 1L);
    SET(NOBODY, job->head ? 1L : 0L);
    SET(FOLLOWLOCATION, 0L);
    SET(SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CONNECTTIMEOUT, (long)CONNECT_S);
    SET(LOW_SPEED_LIMIT, 1L);
    SET(LOW_SPEED_TIME, (long)(job->body && !job->head ? h->timeout_s : h->head_timeout_s));
    SET(BUFFERSIZE, 262144L);
    SET(HTTPHEADER, job->headers);
    SET(ERRORBUFFER, job->reason);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, job);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, job);
    if (job->alone) SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (h->ca.len) SET(CAINFO, wml_buf_text(&h->ca));
    if (job->from && !job->to) snprintf(range, sizeof range, "%" PRIu64 "-", job->from);
    else snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, job->from, job->to - 1);
    if (!job->head && (job->from || (job->to && !job->whole))) SET(RANGE, range);
#undef SET
    return code == CURLE_OK;
}

static void take_down(struct wml_http *h, struct wml_http_job *job)
{
    if (!job->easy) return;
    if (h->curl.multi_remove_handle(h->multi, job->easy) == CURLM_OK) h->active--;
    h->curl.easy_cleanup(job->easy);
    h->curl.slist_free_all(job->headers);
    job->easy = NULL;
    job->headers = NULL;
}

static bool begin(struct wml_http *h, struct wml_http_job *job, struct wml_err *err)
{
    job->end = WML_HTTP_ANSWERED;
    job->answered = false;
    job->skip = 0;
    job->reason[0] = '\0';
    job->progress_from = job->from;
    job->easy = h->curl.easy_init();
    add_headers(h, job);
    if (job->easy && set_up(h, job) && h->curl.multi_add_handle(h->multi, job->easy) == CURLM_OK) {
        h->active++;
        return true;
    }
    if (job->easy) h->curl.easy_cleanup(job->easy);
    h->curl.slist_free_all(job->headers);
    job->easy = NULL;
    job->headers = NULL;
    return wml_fail(err, WML_E_INTERNAL, "libcurl refuses a request for %s", job->what);
}

/* Not worth a new try: they answer the same next time. */
static bool is_final(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_URL_MALFORMAT || code == CURLE_OUT_OF_MEMORY || code == CURLE_COULDNT_RESOLVE_PROXY ||
           code == CURLE_SSL_CONNECT_ERROR;
}

static bool is_unreachable(CURLcode code)
{
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT;
}

static bool is_passing(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static void tell_lost(struct wml_http *h, struct wml_http_job *job, CURLcode code)
{
    struct wml_buf server = {0};
    if (!wml_curl_origin(&h->curl, wml_buf_text(&job->url), &server)) wml_buf_cstr(&server, "the server");
    job->end = WML_HTTP_LOST;
    if (code == CURLE_OK) {
        wml_fail(&job->err, WML_E_IO, "%s: %s answers %d%s%.*s", job->what, wml_buf_text(&server), job->answer.status,
                 job->answer.error_message.len ? ", " : "", 200, wml_buf_text(&job->answer.error_message));
        if (job->answer.status == 429) wml_hint(&job->err, "it asks for fewer requests: wait some minutes; those with a token may ask more often");
        else wml_hint(&job->err, "try again later; what was received is kept");
    } else {
        wml_fail(&job->err, WML_E_IO, "%s: no answer from %s: %s", job->what, wml_buf_text(&server),
                 job->reason[0] ? job->reason : h->curl.easy_strerror(code));
        if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
            wml_hint(&job->err, "a proxy that reads along has a certificate of its own: name the file with it in CURL_CA_BUNDLE");
        else wml_hint(&job->err, "check the network and the proxy settings (HTTPS_PROXY); HF_HUB_OFFLINE=1 takes what the cache has");
    }
    wml_buf_release(&server);
}

/* Puts the job aside for another try; false: it had all it gets. */
static bool try_again(struct wml_http *h, struct wml_http_job *job, CURLcode code)
{
    if (job->from > job->progress_from) job->tries = 0;
    job->tries++;
    unsigned most = is_unreachable(code) ? TRIES_UNREACHABLE : TRIES;
    uint64_t pause = WML_MIN(h->retry_ms << WML_MIN(job->tries - 1, 10u), (uint64_t)LONGEST_PAUSE_MS);
    if (code == CURLE_OK && job->answer.wait_ms) pause = job->answer.wait_ms;
    if (is_final(code) || job->tries >= most || pause > LONGEST_WAIT_MS) return false;
    if (code == CURLE_OK)
        wml_log(h->cx, pause >= 2000 ? WML_LOG_WARN : WML_LOG_INFO, "%s: the server answers %d, trying again in %.1f s", job->what, job->answer.status, (double)pause / 1000);
    else
        wml_log(h->cx, WML_LOG_INFO, "%s: %s, trying again in %.1f s", job->what, job->reason[0] ? job->reason : h->curl.easy_strerror(code), (double)pause / 1000);
    job->not_before = wml_now_ns() + pause * 1000000;
    job->next = h->waiting;
    h->waiting = job;
    return true;
}

/* A redirect of a HEAD is the answer when it names the file, or leads away from the endpoint with a name for it: where
 * it leads is where the bytes are. */
static bool ends_here(struct wml_http *h, const struct wml_http_job *job, const char *target)
{
    const struct wml_http_answer *a = &job->answer;
    return job->head && (a->linked_etag.len || (a->etag.len && !may_see_token(h, target)));
}

/* Sets the address of the next request. */
static bool follow(struct wml_http *h, struct wml_http_job *job, struct wml_buf *target, struct wml_err *err)
{
    struct wml_buf here = {0}, there = {0};
    const char *wrong = NULL;
    if (!wml_curl_origin(&h->curl, wml_buf_text(target), &there)) wrong = "to what is no web address";
    else if (++job->redirects > REDIRECTS) wrong = "in a circle";
    else if (wml_curl_origin(&h->curl, wml_buf_text(&job->url), &here) && wml_str_starts(wml_buf_view(&here), "https:") && wml_str_starts(wml_buf_view(&there), "http:"))
        wrong = "from https to http";
    wml_buf_clear(&job->url);
    wml_buf_str(&job->url, wml_buf_view(target));
    wml_buf_release(&here);
    wml_buf_release(&there);
    return !wrong || wml_fail(err, WML_E_IO, "%s: the server redirects %s", job->what, wrong);
}

enum step { AGAIN, OVER };

static enum step settle(struct wml_http *h, struct wml_http_job *job, CURLcode code)
{
    struct wml_http_answer *a = &job->answer;
    struct wml_buf target = {0};
    enum step step = OVER;
    take_down(h, job);
    if (job->end == WML_HTTP_REFUSED) return OVER;
    bool complete = !job->to || job->from >= job->to;
    if (code == CURLE_OK && a->status >= 200 && a->status < 300 && !job->head && !complete) code = CURLE_PARTIAL_FILE;
    if (code != CURLE_OK || is_passing(a->status) || !a->status) {
        if (!try_again(h, job, code)) {
            tell_lost(h, job, code);
            return OVER;
        }
        return AGAIN;
    }
    bool redirect = a->status >= 301 && a->status <= 308 && a->status != 304 && a->location.len;
    if (!redirect) return OVER;
    if (!wml_curl_join(&h->curl, wml_buf_text(&job->url), wml_buf_text(&a->location), &target)) wml_buf_clear(&target);
    wml_buf_clear(&a->location);
    wml_buf_str(&a->location, wml_buf_view(&target));
    if (!ends_here(h, job, wml_buf_text(&target))) {
        step = AGAIN;
        if (!follow(h, job, &target, &job->err) || !begin(h, job, &job->err)) {
            job->end = WML_HTTP_REFUSED;
            step = OVER;
        }
    }
    wml_buf_release(&target);
    return step;
}

static bool finish(struct wml_http *h, const struct wml_http_owner *owner, struct wml_err *err)
{
    int left;
    for (CURLMsg *m; (m = h->curl.multi_info_read(h->multi, &left)) != NULL;) {
        if (m->msg != CURLMSG_DONE) continue;
        const CURLcode code = m->data.result;
        char *private = NULL;
        h->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
        struct wml_http_job *job = (void *)private;
        if (settle(h, job, code) == OVER && !owner->ended(owner->arg, job, err)) return false;
    }
    return true;
}

static struct wml_http_job *take_waiting(struct wml_http *h)
{
    for (struct wml_http_job **at = &h->waiting; *at; at = &(*at)->next) {
        struct wml_http_job *job = *at;
        if (job->not_before > wml_now_ns()) continue;
        *at = job->next;
        return job;
    }
    return NULL;
}

/* Until the next one's time, at most a tick. */
static int pause_ms(const struct wml_http *h)
{
    uint64_t now = wml_now_ns(), ms = TICK_MS;
    for (const struct wml_http_job *job = h->waiting; job; job = job->next)
        ms = WML_MIN(ms, job->not_before > now ? (job->not_before - now) / 1000000 + 1 : 0);
    return (int)ms;
}

/* What waits for its next try holds its place. */
static bool fill(struct wml_http *h, const struct wml_http_owner *owner, unsigned most, bool *later, struct wml_err *err)
{
    unsigned waiting = 0;
    for (struct wml_http_job *job; (job = take_waiting(h)) != NULL;)
        if (!begin(h, job, err)) return false;
    for (struct wml_http_job *job = h->waiting; job; job = job->next) waiting++;
    *later = waiting > 0;
    while (h->active + waiting < most) {
        struct wml_http_job *job = NULL;
        bool more = false;
        if (!owner->next(owner->arg, &job, &more, err)) return false;
        *later = *later || more;
        if (!job) return true;
        if (!begin(h, job, err)) return false;
    }
    return true;
}

bool wml_http_run(struct wml_http *h, const struct wml_http_owner *owner, unsigned most, struct wml_err *err)
{
    for (bool later = true; h->active || later;) {
        int running = 0;
        if (!wml_check_cancel(h->cx, err) || !fill(h, owner, most, &later, err)) return false;
        if (h->curl.multi_perform(h->multi, &running) != CURLM_OK) return wml_fail(err, WML_E_INTERNAL, "libcurl gives up");
        const unsigned before = h->active;
        if (!finish(h, owner, err)) return false;
        if (h->active < before) later = true; /* there is room for more */
        else if (h->active || later) h->curl.multi_poll(h->multi, NULL, 0, pause_ms(h), NULL);
    }
    return true;
}

void wml_http_job_release(struct wml_http *h, struct wml_http_job *job)
{
    for (struct wml_http_job **at = &h->waiting; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            break;
        }
    take_down(h, job);
    wml_buf_release(&job->url);
    wml_http_answer_release(&job->answer);
}

static bool next_one(void *arg, struct wml_http_job **job, bool *later, struct wml_err *err)
{
    struct wml_http_job **one = arg;
    (void)later;
    (void)err;
    *job = *one;
    *one = NULL;
    return true;
}

static bool one_ended(void *arg, struct wml_http_job *job, struct wml_err *err)
{
    (void)arg;
    if (job->end != WML_HTTP_ANSWERED) *err = job->err;
    return job->end == WML_HTTP_ANSWERED;
}

bool wml_http_one(struct wml_http *h, struct wml_http_job *job, struct wml_err *err)
{
    struct wml_http_job *one = job;
    return wml_http_run(h, &(struct wml_http_owner){&one, next_one, one_ended}, 1, err);
}

bool wml_http_open(struct wml_http *h, struct wml_err *err)
{
    if (!wml_curl_open(&h->curl, h->cx, err)) return false;
    h->multi = h->curl.multi_init();
    if (!h->multi) return wml_fail(err, WML_E_INTERNAL, "libcurl gives no handle");
    if (wml_curl_origin(&h->curl, wml_buf_text(&h->endpoint), &h->origin)) return true;
    wml_fail(err, WML_E_USAGE, "the endpoint '%s' is no web address", wml_buf_text(&h->endpoint));
    return wml_hint(err, "HF_ENDPOINT is the address of the hub or a mirror, as https://huggingface.co");
}

void wml_http_close(struct wml_http *h)
{
    if (h->multi) h->curl.multi_cleanup(h->multi);
    wml_curl_close(&h->curl);
    wml_buf_release(&h->endpoint);
    wml_buf_release(&h->origin);
    wml_buf_release(&h->token);
    wml_buf_release(&h->ca);
    h->multi = NULL;
}
