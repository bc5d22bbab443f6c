/* weights/pickle.h - the part of Python's pickle machine that dictionaries of tensors need. Internal to src/weights.
 *
 * Nothing is ever called or imported: a pickle can name functions, and those few that rebuild tensors are known by name
 * (pickle_torch.c); any other name ends the reading with an error that says it. Values may share and contain each
 * other (a list can hold itself): whoever walks them must not recurse without a limit. */
#ifndef WML_WEIGHTS_PICKLE_H
#define WML_WEIGHTS_PICKLE_H

#include "base/dtype.h"
#include "base/map.h"
#include "base/rd.h"
#include "base/vec.h"

enum wml_pickle_kind {
    WML_PICKLE_MARK, /* on the stack only */
    WML_PICKLE_NONE, WML_PICKLE_BOOL, WML_PICKLE_INT, WML_PICKLE_FLOAT, WML_PICKLE_STR, WML_PICKLE_BYTES,
    WML_PICKLE_LONG, /* an integer that no int64_t holds: text is its two's complement */
    WML_PICKLE_TUPLE, WML_PICKLE_LIST, /* item */
    WML_PICKLE_DICT,                   /* item: key, value, key, value ...; a key may come twice, the last one counts */
    WML_PICKLE_GLOBAL, WML_PICKLE_STORAGE, WML_PICKLE_TENSOR
};

/* One block of elements, which tensors are views of. One struct for each key. */
struct wml_pickle_storage {
    struct wml_str key;
    enum wml_dtype dtype; /* U8 where it is untyped */
    uint64_t n;           /* elements */
    /* for the archive's reader */
    struct wml_span bytes;
    bool ready;
};

struct wml_pickle_tensor {
    struct wml_pickle_storage *storage;
    enum wml_dtype dtype; /* that of the storage, but for untyped ones */
    int64_t offset;       /* in elements of dtype */
    size_t rank;
    const int64_t *dims, *strides; /* in elements; no dim is negative, no stride checked */
};

struct wml_pickle_global; /* a name that is known */

struct wml_pickle {
    enum wml_pickle_kind kind;
    union {
        int64_t number;      /* INT, BOOL */
        struct wml_str text; /* STR, BYTES, LONG: in the pickle's bytes */
        WML_VEC(struct wml_pickle *) item;
        const struct wml_pickle_global *global;
        struct wml_pickle_storage *storage;
        const struct wml_pickle_tensor *tensor;
    };
};

struct wml_pickle_ctx { /* zero is valid; lives as long as the values */
    struct wml_arena arena;
    struct wml_map storages; /* by key, in the order in which they were met */
};

void wml_pickle_release(struct wml_pickle_ctx *cx);
/* One pickle, from its first byte to its STOP; r stands behind it then. */
bool wml_pickle_read(struct wml_pickle_ctx *cx, struct wml_rd *r, struct wml_pickle **out, struct wml_err *err);
struct wml_pickle *wml_pickle_new(struct wml_pickle_ctx *cx, enum wml_pickle_kind kind);

/* What names mean (pickle_torch.c). `call` is REDUCE: fn(*args). `persistent` is a reference to what lies outside of the
 * pickle. Each puts its value into *out. */
bool wml_pickle_find(struct wml_pickle_ctx *cx, struct wml_str module, struct wml_str name, struct wml_pickle **out,
                     struct wml_err *err);
bool wml_pickle_call(struct wml_pickle_ctx *cx, const struct wml_pickle *fn, const struct wml_pickle *args,
                     struct wml_pickle **out, struct wml_err *err);
bool wml_pickle_persistent(struct wml_pickle_ctx *cx, const struct wml_pickle *id, struct wml_pickle **out,
                           struct wml_err *err);

#endif
