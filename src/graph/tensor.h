/* graph/tensor.h - tensors and where their bytes are.
 *
 * Nothing is copied to read a model. The payload says where the elements are:
 *   NONE      no elements, or strings (string_data)
 *   BORROWED  raw_data or a packed list inside a mapped file (or memory that outlives the model)
 *   OWNED     raw_data on the heap, freed with the model
 *   DERIVED   made chunk by chunk from another tensor while the model is written
 *   EXTERNAL  bytes of another file, mapped when first asked for
 * wml_tensor_bytes gives the same view of all of them: raw little-endian elements, sub-byte types
 * packed from the low end. */
#ifndef WML_GRAPH_TENSOR_H
#define WML_GRAPH_TENSOR_H

#include "base/dtype.h"
#include "graph/model.h"

enum wml_payload { WML_PAYLOAD_NONE, WML_PAYLOAD_BORROWED, WML_PAYLOAD_OWNED, WML_PAYLOAD_DERIVED,
                   WML_PAYLOAD_EXTERNAL };

/* How DERIVED bytes are made. `produce` fills out[0 .. n) with bytes [offset, offset + n) of the
 * result. Offsets ascend from 0 in steps of `chunk` (the last n is what is left), and a new walk may
 * start at 0 again. src holds the bytes of `source` (empty when source is NULL); those of `also` are at hand
 * for wml_tensor_peek. */
enum { WML_CHUNK = 1 << 18 };
struct wml_derived {
    const struct wml_tensor *source;
    const struct wml_tensor *const *also; /* as long as the model, like arg */
    size_t n_also;
    uint64_t size;
    size_t chunk; /* 0: WML_CHUNK */
    bool turned;  /* the source is the same matrix transposed, in whatever type of floats; nothing else was done to it */
    bool (*produce)(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out,
                    size_t n, struct wml_err *err);
    const void *arg; /* lives as long as the model, e.g. in its arena */
};

struct wml_external { /* parsed from the entries */
    struct wml_str location; /* as written, relative to the model's folder */
    uint64_t offset, length;
    bool has_length;
};

struct wml_tensor {
    struct wml_msg msg;
    struct wml_str name, doc;
    WML_VEC(int64_t) dims;
    int32_t dtype; /* enum wml_dtype */
    int32_t location;
    struct wml_segment *segment;
    /* Lists of numbers as their packed bytes: varints for the middle three. */
    struct wml_span float_data, int32_data, int64_data, uint64_data, double_data;
    WML_VEC(struct wml_str) string_data;
    struct wml_span raw; /* ptr NULL: absent */
    struct wml_entries external, metadata;
    /* not in the file */
    enum wml_payload payload;
    struct wml_value *value; /* the initializer it is, or NULL */
    const struct wml_derived *derived;
    struct wml_external ext;
    struct wml_span view; /* kept by wml_tensor_bytes for forms other than raw */
    const struct wml_tensor *stand_in; /* what the saver writes in its place, while it saves */
};

struct wml_sparse_tensor {
    struct wml_msg msg;
    struct wml_tensor *values, *indices; /* the name is that of values */
    WML_VEC(int64_t) dims;
};

/* Product of the dims; false on a negative dim or overflow. */
bool wml_tensor_count(const struct wml_tensor *t, uint64_t *count, struct wml_err *err);
/* Bytes of the elements by dims and type; false for strings and unknown types. */
bool wml_tensor_size(const struct wml_tensor *t, uint64_t *bytes, struct wml_err *err);
/* The elements. The span lives as long as the model; its length equals wml_tensor_size. Opens the
 * external file, decodes typed lists, runs a DERIVED converter (the result is kept). */
bool wml_tensor_bytes(struct wml_model *m, struct wml_tensor *t, struct wml_span *out,
                      struct wml_err *err);
/* As wml_tensor_bytes, but false without touching a file or allocating when it would have to. */
bool wml_tensor_peek(const struct wml_tensor *t, struct wml_span *out);
/* The elements as int64 (integer types, bool) or double (all but strings) in the arena; for shapes,
 * axes, scales: refuses more than 1 << 24 elements. */
bool wml_tensor_ints(struct wml_model *m, struct wml_tensor *t, int64_t **out, size_t *n,
                     struct wml_err *err);
bool wml_tensor_doubles(struct wml_model *m, struct wml_tensor *t, double **out, size_t *n,
                        struct wml_err *err);
/* Opens what a DERIVED tensor is made from; true for others. */
bool wml_tensor_open_sources(struct wml_model *m, const struct wml_tensor *t, struct wml_err *err);
/* The bytes of a DERIVED tensor, chunk by chunk, to write. Its sources must be at hand (peek). */
bool wml_tensor_produce(const struct wml_tensor *t,
                        bool (*write)(void *arg, const void *bytes, size_t n, struct wml_err *err),
                        void *arg, struct wml_err *err);

/* New tensors of the model. bytes are raw elements: `_copy` copies them to the heap, `_borrow` keeps
 * the pointer (it must outlive the model), `_own` takes a malloc'ed block. n_bytes must be what dims
 * and dtype need, else NULL with *err set. */
struct wml_tensor *wml_tensor_copy(struct wml_model *m, enum wml_dtype dtype, size_t rank,
                                   const int64_t *dims, const void *bytes, size_t n_bytes,
                                   struct wml_err *err);
struct wml_tensor *wml_tensor_borrow(struct wml_model *m, enum wml_dtype dtype, size_t rank,
                                     const int64_t *dims, struct wml_span bytes, struct wml_err *err);
struct wml_tensor *wml_tensor_own(struct wml_model *m, enum wml_dtype dtype, size_t rank,
                                  const int64_t *dims, void *block, size_t n_bytes,
                                  struct wml_err *err);
struct wml_tensor *wml_tensor_derive(struct wml_model *m, enum wml_dtype dtype, size_t rank,
                                     const int64_t *dims, const struct wml_derived *how);
struct wml_tensor *wml_tensor_f32(struct wml_model *m, float v);                /* scalar */
struct wml_tensor *wml_tensor_i64s(struct wml_model *m, size_t n, const int64_t *v); /* vector [n] */
struct wml_tensor *wml_tensor_strings(struct wml_model *m, size_t n, const struct wml_str *v);
/* An external tensor whose bytes are known becomes one with raw data: nothing of the reference stays. */
void wml_tensor_make_raw(struct wml_tensor *t, struct wml_span bytes);
/* Another tensor with the same bytes (shared, not copied), e.g. under another name. */
struct wml_tensor *wml_tensor_share(struct wml_model *m, const struct wml_tensor *t);
/* Same type, dims and bytes. Metadata and names are ignored. */
bool wml_tensor_eq(struct wml_model *m, struct wml_tensor *a, struct wml_tensor *b);

#endif
