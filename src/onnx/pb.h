/* onnx/pb.h - protobuf messages as tables. One row per field says its number, kind and place in the
 * struct; the decoder and the encoder walk the same rows. Internal to src/onnx.
 *
 * Every struct starts with struct wml_msg. Rows are sorted by field number, all numbers are below 32.
 * A list is {T *at; size_t len, cap} as made by WML_VEC. */
#ifndef WML_ONNX_PB_H
#define WML_ONNX_PB_H

#include "graph/model.h"

enum wml_pb_kind {
    WML_PB_I64,   /* int64_t */
    WML_PB_I32,   /* int32_t; also enums */
    WML_PB_F32,   /* float */
    WML_PB_STR,   /* struct wml_str; string or bytes, aliasing the input */
    WML_PB_MSG,   /* pointer to a struct */
    WML_PB_I64S,  /* list of int64_t */
    WML_PB_F32S,  /* list of float */
    WML_PB_STRS,  /* list of struct wml_str */
    WML_PB_MSGS,  /* list of pointers to structs */
    WML_PB_MSGV,  /* list of structs */
    WML_PB_SPAN,  /* struct wml_span: a list of numbers, kept packed; see width */
    WML_PB_RAW    /* struct wml_span: TensorProto.raw_data */
};

struct wml_pb_field {
    const char *name;
    const struct wml_pb_message *sub;
    size_t offset;
    unsigned char number, kind;
    unsigned char width; /* SPAN: bytes of an element, 0 for varints */
    bool one_of;         /* setting it clears the other one_of fields of the message */
};

struct wml_pb_message {
    size_t size;
    const struct wml_pb_field *field;
    size_t n_fields;
};

extern const struct wml_pb_message wml_pb_model;
extern const struct wml_pb_message wml_pb_tensor;

struct wml_pb_list { /* what every list looks like to the codec */
    void *at;
    size_t len, cap;
};

enum { WML_PB_WIRE_VARINT = 0, WML_PB_WIRE_64 = 1, WML_PB_WIRE_LEN = 2, WML_PB_WIRE_GROUP = 3,
       WML_PB_WIRE_END = 4, WML_PB_WIRE_32 = 5 };
enum { WML_PB_MAX_DEPTH = 100 };

struct wml_tensor;
/* Where encoded bytes go. write returns false with *err set; made tells that a DERIVED tensor was made, NULL: nobody asks. */
struct wml_sink {
    void *arg;
    bool (*write)(void *arg, const void *bytes, size_t n, struct wml_err *err);
    void (*made)(void *arg, const struct wml_tensor *t);
};

/* Fills msg (zeroed, or decoded before: then the two merge) from bytes, which must outlive it. */
bool wml_pb_decode(struct wml_arena *arena, const struct wml_pb_message *type, void *msg,
                   struct wml_span bytes, struct wml_err *err);
/* Size of the encoded message; remembers the sizes of inner messages for wml_pb_encode, which must
 * follow without a change between. */
uint64_t wml_pb_measure(const struct wml_pb_message *type, void *msg);
bool wml_pb_encode(const struct wml_pb_message *type, void *msg, const struct wml_sink *sink,
                   struct wml_err *err);

#endif
