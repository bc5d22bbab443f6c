/* weights/internal.h - what the readers of the formats share. Internal to src/weights. */
#ifndef WML_WEIGHTS_INTERNAL_H
#define WML_WEIGHTS_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "weights/weights.h"

struct wml_weights {
    struct wml_arena arena;
    struct wml_map by_name; /* to struct wml_weight; nothing is ever removed: its order is the set's */
    WML_VEC(struct wml_weights_file) file;
    WML_VEC(void *) block; /* malloc'ed */
    uint64_t bytes;
    const char *format;
    size_t owners;
    const struct wml_weights_supposer *supposer; /* NULL: what is there was read */
    /* While an index is followed: name to the name of its shard (struct wml_str *), and the shard being read. */
    const struct wml_map *shard_of;
    struct wml_str shard;
};

struct wml_weights *wml_weights_blank(void); /* of one owner */
/* Maps the file and reads it by its content. */
bool wml_weights_add_file(struct wml_weights *w, const char *path, struct wml_err *err);
/* Takes a copy of name and dims. Bytes must be as many as dims and type need: that is the reader's business. */
bool wml_weights_add(struct wml_weights *w, const struct wml_weight *t, struct wml_err *err);
/* Bytes of n elements that must end at a byte, of `bits` each; false on overflow, or within a byte. */
bool wml_weights_size(const int64_t *dims, size_t rank, unsigned bits, uint64_t *bytes);

/* The readers; bytes are one file. Messages do not name the file. */
bool wml_weights_read_safetensors(struct wml_weights *w, struct wml_span bytes, struct wml_err *err);
bool wml_weights_read_torch_zip(struct wml_weights *w, struct wml_span bytes, struct wml_err *err);
bool wml_weights_read_torch_old(struct wml_weights *w, struct wml_span bytes, struct wml_err *err);
/* An index and the shards beside it. */
bool wml_weights_read_index(struct wml_weights *w, const char *path, struct wml_err *err);
/* The file of a folder to read, as a path: see wml_weights_open. */
bool wml_weights_choose(const char *folder, struct wml_buf *path, struct wml_err *err);

#endif
