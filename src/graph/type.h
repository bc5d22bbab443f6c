/* graph/type.h - types of values: tensor, sparse tensor, sequence, map, optional, opaque.
 *
 * A dimension is a size, a symbol or unknown. Exporters also write -1, "?" and "" for unknown; the
 * functions below see those as unknown, the structs keep what the file says. */
#ifndef WML_GRAPH_TYPE_H
#define WML_GRAPH_TYPE_H

#include "base/dtype.h"
#include "graph/model.h"

struct wml_dim {
    struct wml_msg msg;
    int64_t value;        /* valid when bit 1 of msg.has is set */
    struct wml_str param; /* a symbol */
    struct wml_str denotation;
};

struct wml_shape {
    struct wml_msg msg;
    WML_VEC(struct wml_dim) dim;
};

struct wml_tensor_type { /* also of sparse tensors */
    struct wml_msg msg;
    int32_t elem;            /* enum wml_dtype */
    struct wml_shape *shape; /* NULL: rank not known */
};

struct wml_elem_type { /* sequence, optional */
    struct wml_msg msg;
    struct wml_type *elem;
};

struct wml_map_type {
    struct wml_msg msg;
    int32_t key;
    struct wml_type *value;
};

struct wml_opaque_type {
    struct wml_msg msg;
    struct wml_str domain, name;
};

struct wml_type { /* one of the pointers is set */
    struct wml_msg msg;
    struct wml_tensor_type *tensor, *sparse;
    struct wml_elem_type *sequence, *optional;
    struct wml_map_type *map;
    struct wml_opaque_type *opaque;
    struct wml_str denotation;
};

/* One dimension as callers give it: size >= 0, or size -1 with a symbol (absent: unknown). */
struct wml_axis {
    int64_t size;
    struct wml_str symbol;
};

/* Element type of a (sparse) tensor type; WML_UNDEFINED for other kinds and NULL. */
enum wml_dtype wml_type_elem(const struct wml_type *t);
/* Rank, or -1 when it is not a tensor or the rank is not known. */
int64_t wml_type_rank(const struct wml_type *t);
/* Axis i < rank. */
struct wml_axis wml_type_axis(const struct wml_type *t, size_t i);
/* true when the rank and every size are known; *count is their product. */
bool wml_type_count(const struct wml_type *t, int64_t *count);
bool wml_type_is_static(const struct wml_type *t);
/* Same kind, element types and axes (unknown equals unknown). NULL equals NULL. */
bool wml_type_eq(const struct wml_type *a, const struct wml_type *b);

/* New types in the model's arena. rank -1 (axis ignored): no shape. Symbols are copied. */
struct wml_type *wml_type_tensor(struct wml_model *m, enum wml_dtype elem, int64_t rank,
                                 const struct wml_axis *axis);
struct wml_type *wml_type_static(struct wml_model *m, enum wml_dtype elem, size_t rank,
                                 const int64_t *sizes);
struct wml_type *wml_type_sequence(struct wml_model *m, struct wml_type *elem);
struct wml_type *wml_type_optional(struct wml_model *m, struct wml_type *elem);
struct wml_type *wml_type_copy(struct wml_model *m, const struct wml_type *t);

/* Types of values. Set replaces what inputs, outputs and value_info say when saved; NULL forgets. */
void wml_value_set_type(struct wml_value *v, struct wml_type *t);
/* Element type and shape of an initializer without a declared type come from its tensor. */
enum wml_dtype wml_value_elem(const struct wml_value *v);
int64_t wml_value_rank(const struct wml_value *v);
struct wml_axis wml_value_axis(const struct wml_value *v, size_t i);
bool wml_value_count(const struct wml_value *v, int64_t *count);
/* A tensor type for v: its own, or one made from its initializer; NULL when not known. */
struct wml_type *wml_value_type(struct wml_value *v);

/* "float[2,n,?]", "seq(int64[])"; "?" for NULL. As in the text form. */
void wml_type_text(const struct wml_type *t, struct wml_buf *out);

#endif
