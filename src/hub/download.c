/* Files of a commit into the cache. First all are asked for at once what they are (HEAD); then their bytes come, large
 * ones in pieces over several connections.
 *
 * A blob grows in ETAG.incomplete, and only at its end: pieces that come early wait in memory, at most MOST of them. So
 * what is there is always a good beginning, for us and for others who go on from its length. */
#include "hub/internal.h"

#include <inttypes.h>
#include "os/file.h"
#include "os/grow.h"
#include "os/lock.h"
#include "os/map.h"
#include "os/path.h"

enum { PIECE = 8 << 20, MOST = 6, MOST_HEADS = 16, MOVES = 3 };

enum state {
    ASK,  /* what it is */
    WAIT, /* for its lock */
    BUSY, /* the lock is ours */
    DONE
};

struct file {
    struct run *run;
    struct wml_str name, etag;
    uint64_t size;
    struct wml_buf location; /* where the bytes are; empty: the hub tells by a redirect */
    struct wml_http_job head;
    enum state state;
    bool direct; /* the hub has the bytes itself, under the ETag that it told */
    bool no_ranges, again, told;
    unsigned moves; /* times that the hub had to be asked anew */
    struct wml_lock lock;
    struct wml_grow out;
    struct wml_hub_sum sum;
    struct piece *first; /* in order; it goes straight to the file */
};

struct piece {
    struct wml_http_job job;
    struct file *file;
    struct wml_buf held; /* until those before it are there */
    bool complete, dropped, changed;
    struct piece *next;
};

struct run {
    struct wml_hub *h;
    const char *commit;
    struct file *file;
    size_t n, at; /* at: heads asked for so far */
    unsigned pieces;
    uint64_t received, total;
    bool changed;
};

static struct wml_str plain_etag(const struct wml_http_answer *a)
{
    struct wml_str s = wml_buf_view(a->linked_etag.len ? &a->linked_etag : &a->etag);
    if (wml_str_starts(s, "W/")) s = wml_str_sub(s, 2, s.len);
    if (s.len > 1 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"') s = wml_str_sub(s, 1, s.len - 1);
    return s;
}

static bool next_head(void *arg, struct wml_http_job **job, bool *later, struct wml_err *err)
{
    struct run *r = arg;
    (void)later;
    (void)err;
    while (r->at < r->n && r->file[r->at].state != ASK) r->at++;
    if (r->at == r->n) return true;
    struct file *f = &r->file[r->at++];
    wml_http_job_release(&r->h->http, &f->head);
    f->head = (struct wml_http_job){.what = wml_arena_cstr(&r->h->arena, f->name), .head = true};
    wml_hub_file_url(r->h, r->commit, f->name, &f->head.url);
    *job = &f->head;
    return true;
}

static bool head_ended(void *arg, struct wml_http_job *job, struct wml_err *err)
{
    struct run *r = arg;
    struct file *f = r->file;
    const struct wml_http_answer *a = &job->answer;
    while (&f->head != job) f++;
    if (job->end != WML_HTTP_ANSWERED) {
        if (err) *err = job->err;
        return false;
    }
    if (a->status >= 400 || a->status < 200) {
        if (wml_str_is(wml_buf_view(&a->error_code), "EntryNotFound")) wml_hub_note_absent(r->h, r->commit, f->name);
        return wml_hub_explain(r->h, a, f->name, err);
    }
    struct wml_str etag = plain_etag(a);
    f->size = a->linked_size != UINT64_MAX || a->status >= 300 ? a->linked_size : a->length;
    if (!wml_hub_is_word(etag) || f->size == UINT64_MAX) {
        wml_fail(err, WML_E_FORMAT, "%s does not say what %s is: %s is missing", wml_buf_text(&r->h->http.endpoint), job->what,
                 f->size == UINT64_MAX ? "its size" : "a good ETag");
        return wml_hint(err, "check that HF_ENDPOINT is a hub of models, and that no proxy answers in its place");
    }
    f->etag = wml_arena_str(&r->h->arena, etag);
    f->direct = a->status < 300;
    wml_buf_clear(&f->location);
    wml_buf_str(&f->location, wml_buf_view(f->direct ? &job->url : &a->location));
    f->state = WAIT;
    return true;
}

static const char *blob_path(struct file *f, const char *suffix)
{
    struct wml_hub *h = f->run->h;
    return wml_hub_path(h, "blobs", wml_arena_fmt(&h->arena, "%.*s%s", WML_ARG(f->etag), suffix));
}

static void tell_progress(const struct run *r, const struct file *f)
{
    if (!r->h->progress) return;
    const char *item = f->head.what;
    wml_note_progress(r->h->cx, "Downloading", item, r->received / 1000000, WML_MAX(r->total / 1000000, (uint64_t)1), "MB");
}

static bool append(struct file *f, struct wml_str bytes, struct wml_err *err)
{
    wml_hub_sum_add(&f->sum, bytes.ptr, bytes.len);
    return wml_grow_write(&f->out, bytes.ptr, bytes.len, err);
}

/* The piece, and those behind it. */
static void drop(struct file *f, struct piece *from)
{
    struct piece **at = &f->first;
    while (*at && *at != from) at = &(*at)->next;
    while (*at) {
        struct piece *p = *at;
        *at = p->next;
        f->run->received -= p->held.len;
        f->run->pieces--;
        wml_http_job_release(&f->run->h->http, &p->job);
        wml_buf_release(&p->held);
        free(p);
    }
}

static void let_go(struct file *f, enum state state)
{
    drop(f, f->first);
    wml_grow_close(&f->out);
    wml_lock_release(&f->lock);
    f->state = state;
}

/* What an earlier run received counts, and is hashed first. */
static bool take_up(struct file *f, struct wml_err *err)
{
    const char *path = blob_path(f, ".incomplete");
    struct wml_map_file map = {0};
    if (!wml_grow_open(&f->out, path, err)) return false;
    if (f->out.size > f->size && !wml_grow_cut(&f->out, 0, err)) return false;
    wml_hub_sum_begin(&f->sum, f->etag, f->size);
    if (f->out.size) {
        if (!wml_map_open(path, &map, err)) return false;
        wml_hub_sum_add(&f->sum, map.bytes.ptr, (size_t)f->out.size);
        wml_map_close(&map);
        wml_log(f->run->h->cx, WML_LOG_INFO, "%s: going on at byte %" PRIu64 " of %" PRIu64, f->head.what, f->out.size, f->size);
    }
    f->run->received += f->out.size;
    return wml_grow_reserve(&f->out, f->size, err);
}

static bool spoilt(struct file *f, struct wml_err *err)
{
    const char *path = blob_path(f, ".incomplete");
    const bool again = f->again;
    f->again = true;
    f->run->received -= f->out.size;
    wml_grow_close(&f->out);
    wml_file_remove(path);
    let_go(f, WAIT);
    if (!again) {
        wml_log(f->run->h->cx, WML_LOG_WARN, "%s: what was received is not what the hub says it is; once more from the start", f->head.what);
        return true;
    }
    wml_fail(err, WML_E_VERIFY, "%s of %s: the bytes received do not hash to %.*s, as the hub says they do", f->head.what,
             f->run->h->id, WML_ARG(f->etag));
    return wml_hint(err, "try again later; when it stays, a proxy or a mirror changes the file on its way");
}

static bool complete(struct file *f, struct wml_err *err)
{
    struct wml_hub *h = f->run->h;
    drop(f, f->first);
    if (!wml_hub_sum_fits(&f->sum)) return spoilt(f, err);
    const char *from = blob_path(f, ".incomplete"), *to = blob_path(f, "");
    bool ok = wml_grow_flush(&f->out, err);
    wml_grow_close(&f->out);
    ok = ok && wml_file_rename(from, to, err) && wml_hub_place(h, f->run->commit, f->name, f->etag, true, err);
    let_go(f, DONE);
    return ok;
}

/* Pieces at the front go to the file as far as they are there. */
static bool advance(struct file *f, struct wml_err *err)
{
    for (struct piece *p; (p = f->first) != NULL && f->out.size < f->size;) {
        if (!append(f, wml_buf_view(&p->held), err)) return false;
        wml_buf_release(&p->held);
        if (!p->complete) return true;
        f->first = p->next;
        f->run->pieces--;
        wml_http_job_release(&f->run->h->http, &p->job);
        free(p);
    }
    return f->out.size < f->size || complete(f, err);
}

static bool piece_start(struct wml_http_job *job, struct wml_err *err)
{
    struct piece *p = (void *)job;
    struct file *f = p->file;
    const struct wml_http_answer *a = &job->answer;
    uint64_t size = a->status == 206 ? a->range_total : a->length;
    struct wml_str etag = plain_etag(a);
    if (f->direct && !job->redirects && etag.len && !wml_str_eq(etag, f->etag)) {
        p->changed = true;
        return false;
    }
    if (size != UINT64_MAX && size != f->size) {
        wml_fail(err, WML_E_IO, "%s of %s: the server has %" PRIu64 " bytes, the hub says %" PRIu64, job->what, f->run->h->id, size, f->size);
        return wml_hint(err, "try again later; when it stays, a proxy or a mirror changes the file on its way");
    }
    if (a->status == 206 || (job->whole && !job->from)) return true;
    f->no_ranges = true; /* it sends all of it, whatever is asked for */
    p->dropped = p != f->first;
    job->to = f->size;
    return !p->dropped;
}

static bool piece_body(struct wml_http_job *job, const void *bytes, size_t n, struct wml_err *err)
{
    struct piece *p = (void *)job;
    struct file *f = p->file;
    if (!wml_check_cancel(f->run->h->cx, err)) return false; /* libcurl may come here often before the pool does */
    f->run->received += n;
    tell_progress(f->run, f);
    if (p == f->first) return append(f, (struct wml_str){bytes, n}, err);
    wml_buf_add(&p->held, bytes, n);
    return !p->held.failed || wml_fail(err, WML_E_MEMORY, "no memory to download %s", job->what);
}

/* NULL: everything of it is on its way. */
static struct piece *next_piece(struct file *f)
{
    uint64_t from = f->out.size;
    struct piece **at = &f->first;
    for (; *at; at = &(*at)->next) from = (*at)->job.to;
    if (from >= f->size || (f->no_ranges && f->first)) return NULL;
    struct piece *p = wml_xcalloc(1, sizeof *p);
    const uint64_t piece = f->run->h->opts->piece ? f->run->h->opts->piece : PIECE, most = piece + piece / 4;
    bool last = f->no_ranges || f->size - from <= most;
    p->file = f;
    p->job = (struct wml_http_job){.what = f->head.what, .from = from, .to = last ? f->size : from + piece,
                                   .whole = last, .alone = f->size > most, .start = piece_start, .body = piece_body};
    p->held.max = (size_t)most;
    if (f->location.len) wml_buf_str(&p->job.url, wml_buf_view(&f->location));
    else wml_hub_file_url(f->run->h, f->run->commit, f->name, &p->job.url);
    *at = p;
    f->run->pieces++;
    return p;
}

/* Tries to get the lock; with it, looks what there is. */
static bool try_begin(struct file *f, bool *busy, struct wml_err *err)
{
    struct run *r = f->run;
    struct wml_buf path = {0}, name = {0};
    wml_buf_fmt(&name, "%.*s/%.*s.lock", WML_ARG(wml_path_name(wml_str(r->h->repo))), WML_ARG(f->etag));
    wml_path_join(&path, wml_str(r->h->cache), WML_STR(".locks"));
    const char *locks = wml_arena_cstr(&r->h->arena, wml_buf_view(&path));
    wml_buf_clear(&path);
    wml_path_join(&path, wml_str(locks), wml_buf_view(&name));
    const char *lock = wml_arena_cstr(&r->h->arena, wml_buf_view(&path));
    wml_buf_clear(&path);
    wml_buf_str(&path, wml_path_dir(wml_str(lock)));
    bool ok = wml_dir_make(wml_buf_text(&path), err) && wml_dir_make(wml_hub_path(r->h, "blobs", WML_NO_STR), err) &&
              wml_lock_try(&f->lock, lock, err);
    wml_buf_release(&path);
    wml_buf_release(&name);
    *busy = ok && !f->lock.file;
    if (!ok) return false;
    if (*busy) {
        if (!f->told) wml_log(r->h->cx, WML_LOG_INFO, "%s: another process fetches it, waiting", f->head.what);
        f->told = true;
        return true;
    }
    f->state = BUSY;
    if (wml_file_exists(blob_path(f, ""))) {
        r->received += f->size;
        ok = wml_hub_place(r->h, r->commit, f->name, f->etag, false, err);
        let_go(f, DONE);
        return ok;
    }
    return take_up(f, err) && (f->out.size < f->size || complete(f, err));
}

static bool next_job(void *arg, struct wml_http_job **job, bool *later, struct wml_err *err)
{
    struct run *r = arg;
    for (size_t i = 0; i < r->n && r->pieces < MOST; i++) {
        struct file *f = &r->file[i];
        bool busy = false;
        if (f->state == WAIT && !try_begin(f, &busy, err)) return false;
        if (busy || f->state == WAIT) *later = true;
        struct piece *p = f->state == BUSY ? next_piece(f) : NULL;
        if (p) {
            *job = &p->job;
            return true;
        }
    }
    return true;
}

/* An address that was given out may be good for a while only: the hub gives another one. */
static bool failed(struct piece *p, struct wml_err *err)
{
    struct file *f = p->file;
    const struct wml_http_answer *a = &p->job.answer;
    if (p->job.end != WML_HTTP_ANSWERED) {
        if (err) *err = p->job.err;
        return false;
    }
    if (f->location.len && (a->status == 401 || a->status == 403 || a->status == 404 || a->status == 410) && f->moves++ < MOVES) {
        wml_buf_clear(&f->location);
        f->direct = false;
        drop(f, p);
        return true;
    }
    if (a->status == 416)
        return wml_fail(err, WML_E_IO, "%s of %s: the server has fewer bytes than the hub says, %" PRIu64, p->job.what, f->run->h->id, f->size);
    return wml_hub_explain(f->run->h, a, f->name, err);
}

static bool piece_ended(void *arg, struct wml_http_job *job, struct wml_err *err)
{
    struct run *r = arg;
    struct piece *p = (void *)job;
    struct file *f = p->file;
    if (p->dropped) {
        drop(f, p);
        return true;
    }
    if (p->changed) {
        r->changed = true;
        r->received -= f->out.size;
        let_go(f, ASK);
        return f->moves++ < MOVES || wml_fail(err, WML_E_IO, "%s of %s changes while it is fetched", f->head.what, r->h->id);
    }
    if (job->end != WML_HTTP_ANSWERED || job->answer.status < 200 || job->answer.status > 299) return failed(p, err);
    p->complete = true;
    return advance(f, err);
}

static bool run_files(struct run *r, struct wml_err *err)
{
    const struct wml_http_owner heads = {r, next_head, head_ended}, pieces = {r, next_job, piece_ended};
    do {
        r->changed = false;
        r->at = 0;
        if (!wml_http_run(&r->h->http, &heads, MOST_HEADS, err)) return false;
        r->total = 0;
        for (size_t i = 0; i < r->n; i++) r->total += r->file[i].size;
        if (!wml_http_run(&r->h->http, &pieces, MOST, err)) return false;
    } while (r->changed);
    return true;
}

bool wml_hub_download(struct wml_hub *h, const char *commit, const struct wml_hub_names *names, struct wml_err *err)
{
    struct run r = {.h = h, .commit = commit, .file = wml_xcalloc(names->v.len + 1, sizeof *r.file)};
    for (size_t i = 0; i < names->v.len; i++) {
        if (wml_file_exists(wml_hub_snapshot(h, commit, names->v.at[i]))) continue;
        r.file[r.n++] = (struct file){.run = &r, .name = names->v.at[i]};
    }
    bool ok = !r.n || run_files(&r, err);
    if (r.n && h->progress) wml_end_progress(h->cx);
    for (size_t i = 0; i < r.n; i++) {
        let_go(&r.file[i], DONE);
        wml_http_job_release(&h->http, &r.file[i].head);
        wml_buf_release(&r.file[i].location);
    }
    free(r.file);
    return ok;
}
