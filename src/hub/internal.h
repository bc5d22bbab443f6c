/* hub/internal.h - the parts of a fetch. Internal to src/hub. */
#ifndef WML_HUB_INTERNAL_H
#define WML_HUB_INTERNAL_H

#include "base/hash.h"
#include "base/vec.h"
#include "hub/http.h"
#include "hub/hub.h"

struct wml_hub_names { WML_VEC(struct wml_str) v; };

struct wml_hub {
    struct wml_ctx *cx;
    const struct wml_hub_opts *opts;
    struct wml_arena arena;
    const char *id, *revision;
    const char *cache, *repo; /* the cache, and the model's folder in it */
    bool offline, progress;
    struct wml_http http;     /* open: http.curl.dl */
    const char *token_from;   /* for messages */
};

/* name.c */
bool wml_hub_take_id(struct wml_hub *h, const char *id, const char *revision, struct wml_err *err);
/* A path inside a model, as the hub may list it: relative, "/" between, no odd parts. */
bool wml_hub_is_file_name(struct wml_str name);
/* Fits a file name of the cache: letters, digits, "._-", none first that hides. */
bool wml_hub_is_word(struct wml_str s);
bool wml_hub_is_commit(struct wml_str s); /* 40 hex digits */
/* Percent encoding; keep_slashes: "/" stays. */
void wml_hub_escape(struct wml_buf *out, struct wml_str s, bool keep_slashes);
/* The address of a file of a commit. */
void wml_hub_file_url(const struct wml_hub *h, const char *commit, struct wml_str name, struct wml_buf *out);

/* env.c: cache folder, endpoint, token, switches. */
bool wml_hub_settings(struct wml_hub *h, struct wml_err *err);

/* explain.c: a final answer that is no success, as an error. `name`: the file it was about, absent: the model. */
bool wml_hub_explain(const struct wml_hub *h, const struct wml_http_answer *a, struct wml_str name, struct wml_err *err);

/* list.c: what the hub says the revision is, and its files. *lost: the hub could not be reached. */
bool wml_hub_read_list(struct wml_hub *h, struct wml_str text, const char **commit, struct wml_hub_names *names, struct wml_err *err);
bool wml_hub_list(struct wml_hub *h, const char **commit, struct wml_hub_names *names, bool *lost, struct wml_err *err);

/* choose.c */
struct wml_hub_choice {
    struct wml_hub_names files; /* to fetch, sorted, each once */
    struct wml_str index;       /* among them: it names weights that are wanted as well; absent: none */
    struct wml_hub_names lack;  /* files a reader may look for which the model does not have */
};
/* `place` is named in errors: what has these names. */
bool wml_hub_choose(struct wml_hub *h, const struct wml_hub_names *names, const char *place, struct wml_hub_choice *out,
                    struct wml_err *err);
/* The weights that the index at `path` names; each must be among names. */
bool wml_hub_read_index(struct wml_hub *h, const char *path, const struct wml_hub_names *names, const char *place,
                        struct wml_hub_names *out, struct wml_err *err);
void wml_hub_choice_release(struct wml_hub_choice *c);
bool wml_hub_has(const struct wml_hub_names *names, struct wml_str name);

/* cache.c: the layout. Paths go to the arena. */
const char *wml_hub_path(struct wml_hub *h, const char *folder, struct wml_str name);
const char *wml_hub_snapshot(struct wml_hub *h, const char *commit, struct wml_str name); /* name absent: the folder */
/* The commit that the revision was, NULL: not known. */
const char *wml_hub_read_ref(struct wml_hub *h);
void wml_hub_write_ref(struct wml_hub *h, const char *commit);
bool wml_hub_known_absent(struct wml_hub *h, const char *commit, struct wml_str name);
void wml_hub_note_absent(struct wml_hub *h, const char *commit, struct wml_str name);
/* Files of a snapshot that can be opened. false: there is no such snapshot. */
bool wml_hub_list_snapshot(struct wml_hub *h, const char *commit, struct wml_hub_names *names);
/* Puts the blob under its name into the snapshot: a link, else the file itself (fresh: nobody else has it yet), else a
 * copy. */
bool wml_hub_place(struct wml_hub *h, const char *commit, struct wml_str name, struct wml_str etag, bool fresh,
                   struct wml_err *err);

/* download.c: the files of a commit that are not in the snapshot yet. */
bool wml_hub_download(struct wml_hub *h, const char *commit, const struct wml_hub_names *names, struct wml_err *err);

/* sum.c: a blob's name is the SHA-256 of its content (large files), or the SHA-1 that git gives it. Other names say
 * nothing, and everything fits them. */
struct wml_hub_sum {
    struct wml_str expected;
    bool is_git;
    struct wml_sha256 sha256;
    struct wml_sha1 sha1;
};
void wml_hub_sum_begin(struct wml_hub_sum *s, struct wml_str etag, uint64_t size);
void wml_hub_sum_add(struct wml_hub_sum *s, const void *bytes, size_t n);
bool wml_hub_sum_fits(struct wml_hub_sum *s);

#endif
