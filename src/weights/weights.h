/* weights/weights.h - the tensors of a checkpoint by name: safetensors, PyTorch's .bin and .pt, one file or shards.
 *
 *     struct wml_weights *w = NULL;
 *     if (!wml_weights_open(folder, &w, err)) return false;
 *     const struct wml_weight *q = wml_weights_use(w, WML_STR("encoder.layer.0.attention.self.query.weight"));
 *     ...                                                    q->bytes lie in a mapped file: nothing was read or copied
 *     for (size_t i = 0; i < wml_weights_len(w); i++)
 *         if (!wml_weights_at(w, i)->used) ...                                      what the model had no place for
 *     wml_weights_close(w);
 *
 * Bytes are little endian, in C order, exactly as many as dims and type need, checked against the file's length when it
 * is opened. They may lie at ANY address: read elements by memcpy or wml_dtype_load, never through a cast pointer.
 * They live as long as the set. A set counts its owners: whoever keeps spans for longer (a model that borrows them) holds
 * the set too, once for each file that it lists among its own:
 *
 *     for (size_t i = 0; i < wml_weights_n_files(w); i++) {
 *         const struct wml_weights_file *f = wml_weights_file(w, i);
 *         wml_model_add_source(m, &(struct wml_source){.path = f->path, .bytes = f->map.bytes, .file = f->map.file,
 *             .handle = wml_weights_hold(w), .close = close_weights, .drop = wml_map_drop});
 *     }
 *
 * Spans outside of all files are heap memory of the set: tensors that were not in C order, members that were deflated.
 * One set belongs to one thread. */
#ifndef WML_WEIGHTS_WEIGHTS_H
#define WML_WEIGHTS_WEIGHTS_H

#include "base/dtype.h"
#include "base/rd.h"
#include "os/map.h"

enum { WML_WEIGHT_MAX_RANK = 32 };

struct wml_weight {
    struct wml_str name;
    enum wml_dtype dtype; /* WML_UNDEFINED: a type without a number (6-bit floats): only its bytes are known */
    size_t rank;          /* 0: a scalar */
    const int64_t *dims;  /* none is negative; NULL for scalars */
    struct wml_span bytes; /* two names may have the same: tied weights of a PyTorch file */
    bool used;
};

struct wml_weights_file {
    struct wml_str path; /* as it was opened; absent: memory */
    struct wml_map_file map;
};

struct wml_weights;

/* A folder: model.safetensors, else model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json. Or one
 * file: told by its content, an index by its name. WML_E_NOT_FOUND lists what the folder has instead; WML_E_FORMAT: a
 * damaged file; WML_E_UNSUPPORTED: another format, or a pickle that asks for more than dictionaries and tensors. */
bool wml_weights_open(const char *path, struct wml_weights **out, struct wml_err *err);
/* From memory, which must outlive the set; no index. */
bool wml_weights_parse(struct wml_span bytes, struct wml_weights **out, struct wml_err *err);
struct wml_weights *wml_weights_hold(struct wml_weights *w); /* w itself, with one owner more */
void wml_weights_close(struct wml_weights *w);               /* one owner less; the last one unmaps. NULL is fine */

/* NULL: there is none of that name. `use` marks it. */
const struct wml_weight *wml_weights_find(const struct wml_weights *w, struct wml_str name);
const struct wml_weight *wml_weights_use(struct wml_weights *w, struct wml_str name);
void wml_weights_forget_use(struct wml_weights *w); /* as if none had been used */
/* In the order of the files (sorted by name) and of their bytes or, PyTorch, of their dictionary. */
size_t wml_weights_len(const struct wml_weights *w);
const struct wml_weight *wml_weights_at(const struct wml_weights *w, size_t i); /* i < len */
uint64_t wml_weights_bytes(const struct wml_weights *w); /* of all tensors; what two names share counts twice */

/* A checkpoint that is not there, for tools which have a config only: whatever a model needs comes to be when its shape is
 * asked for, and then is in the set. `shape` chooses the dims that are -1, or refuses (NULL: those without -1 only). */
struct wml_weights_supposer {
    bool (*has)(void *arg, struct wml_str name); /* of tensors that a model can do without; NULL: none of them */
    bool (*shape)(void *arg, struct wml_str name, size_t rank, int64_t *dims);
    void *arg;
    enum wml_dtype dtype;
    struct wml_span bytes; /* every tensor takes what it needs from their start; longer ones are refused */
};
struct wml_weights *wml_weights_suppose(const struct wml_weights_supposer *s);
/* Of any set: it has that name, or would have it. */
bool wml_weights_would_have(const struct wml_weights *w, struct wml_str name);
/* A new tensor of a supposed set, used; NULL: refused, of another set, or the name is there. */
const struct wml_weight *wml_weights_make(struct wml_weights *w, struct wml_str name, size_t rank, const int64_t *dims);

const char *wml_weights_format(const struct wml_weights *w); /* "safetensors", "PyTorch" */
size_t wml_weights_n_files(const struct wml_weights *w);     /* an index does not count */
const struct wml_weights_file *wml_weights_file(const struct wml_weights *w, size_t i);

#endif
