/* A model id to a folder: asks the hub, or looks into the cache, and fetches what is not there. */
#include "hub/internal.h"

#include "os/file.h"

/* "org/name (revision main)", for errors about what is in the cache. */
static const char *cached_place(struct wml_hub *h)
{
    return wml_arena_fmt(&h->arena, "%s, revision '%s', in the cache %s,", h->id, h->revision, h->cache).ptr;
}

static bool finish(struct wml_hub *h, const char *commit, struct wml_buf *folder)
{
    wml_buf_clear(folder);
    wml_buf_cstr(folder, wml_hub_snapshot(h, commit, WML_NO_STR));
    return true;
}

static void put_missing(struct wml_hub *h, struct wml_err *err)
{
    if (h->opts->network == WML_HUB_OFFLINE || !h->offline) wml_hint(err, "run once with the network to fetch it");
    else wml_hint(err, "unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE) to fetch it");
}

/* Whatever was fetched completely, by whom ever. */
static bool from_cache(struct wml_hub *h, struct wml_buf *folder, struct wml_err *err)
{
    const char *commit = wml_hub_read_ref(h), *place = cached_place(h);
    struct wml_hub_names names = {0}, weights = {0};
    struct wml_hub_choice choice = {0};
    bool ok = commit && wml_hub_list_snapshot(h, commit, &names);
    if (!ok) {
        wml_fail(err, WML_E_NOT_FOUND, "the model %s, revision '%s', is not in the cache %s", h->id, h->revision, h->cache);
        put_missing(h, err);
    } else {
        ok = wml_hub_choose(h, &names, place, &choice, err);
        if (ok && choice.index.len) ok = wml_hub_read_index(h, wml_hub_snapshot(h, commit, choice.index), &names, place, &weights, err);
    }
    if (ok) finish(h, commit, folder);
    wml_hub_choice_release(&choice);
    WML_VEC_RELEASE(&names.v);
    WML_VEC_RELEASE(&weights.v);
    return ok;
}

static bool fetch_listed(struct wml_hub *h, const char *commit, const struct wml_hub_names *names, struct wml_err *err)
{
    const char *place = wml_arena_fmt(&h->arena, "the model %s", h->id).ptr;
    struct wml_hub_names weights = {0};
    struct wml_hub_choice choice = {0};
    bool ok = wml_hub_choose(h, names, place, &choice, err) && wml_hub_download(h, commit, &choice.files, err);
    if (ok && choice.index.len)
        ok = wml_hub_read_index(h, wml_hub_snapshot(h, commit, choice.index), names, place, &weights, err) &&
             wml_hub_download(h, commit, &weights, err);
    for (size_t i = 0; ok && i < choice.lack.v.len; i++) wml_hub_note_absent(h, commit, choice.lack.v.at[i]);
    wml_hub_choice_release(&choice);
    WML_VEC_RELEASE(&weights.v);
    return ok;
}

/* *lost: nothing was decided, the cache may serve. The revision is remembered last, when what it names is there. */
static bool from_hub(struct wml_hub *h, struct wml_buf *folder, bool *lost, struct wml_err *err)
{
    struct wml_hub_names names = {0};
    const char *commit = NULL;
    *lost = true;
    bool ok = wml_http_open(&h->http, err) && wml_hub_list(h, &commit, &names, lost, err);
    if (ok) {
        *lost = false;
        ok = fetch_listed(h, commit, &names, err);
    }
    if (ok) wml_hub_write_ref(h, commit);
    WML_VEC_RELEASE(&names.v);
    return ok && finish(h, commit, folder);
}

static bool fetch(struct wml_hub *h, struct wml_buf *folder, struct wml_err *err)
{
    struct wml_err why = {0};
    bool lost = false;
    if (h->offline) return from_cache(h, folder, err);
    if (h->opts->network == WML_HUB_CACHE_FIRST && from_cache(h, folder, NULL)) return true;
    if (from_hub(h, folder, &lost, &why)) return true;
    if (lost && from_cache(h, folder, NULL)) {
        wml_log(h->cx, WML_LOG_WARN, "%s; %s is taken from the cache, as it was last", why.msg, h->id);
        return true;
    }
    if (err) *err = why;
    return wml_wrap(err, "fetch %s", h->id);
}

bool wml_hub_fetch(struct wml_ctx *cx, const char *id, const struct wml_hub_opts *opts, struct wml_buf *folder,
                   struct wml_err *err)
{
    static const struct wml_hub_opts none = {0};
    struct wml_hub h = {.cx = cx, .opts = opts ? opts : &none};
    bool ok = wml_hub_take_id(&h, id, h.opts->revision, err) && wml_hub_settings(&h, err) && fetch(&h, folder, err);
    wml_http_close(&h.http);
    wml_arena_release(&h.arena);
    return ok;
}
