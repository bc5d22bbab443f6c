/* onnx/encode.c - the one protobuf encoder. Two walks over the same rows: the first measures and
 * keeps the size of every message in it, the second writes. Fields go out in number order, unknown
 * ones last. Large byte strings go to the sink directly, never through a copy. */
#include "onnx/pb.h"

#include "graph/parts.h"
#include "graph/tensor.h"

enum { STAGE = 32 * 1024, DIRECT = 4 * 1024 };

struct encoder {
    const struct wml_sink *sink;
    struct wml_err *err;
    size_t len;
    unsigned char stage[STAGE];
};

static bool flush(struct encoder *e)
{
    size_t n = e->len;
    e->len = 0;
    return !n || e->sink->write(e->sink->arg, e->stage, n, e->err);
}

static bool put(struct encoder *e, const void *bytes, size_t n)
{
    if (n > STAGE - e->len && !flush(e)) return false;
    if (n >= DIRECT) return flush(e) && e->sink->write(e->sink->arg, bytes, n, e->err);
    if (n) memcpy(e->stage + e->len, bytes, n);
    e->len += n;
    return true;
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7) n++;
    return n;
}

static bool put_varint(struct encoder *e, uint64_t v)
{
    unsigned char b[10];
    size_t n = 0;
    do {
        b[n++] = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    } while (v >>= 7);
    return put(e, b, n);
}

static bool put_tag(struct encoder *e, const struct wml_pb_field *row, unsigned wire)
{
    return put_varint(e, (uint64_t)row->number << 3 | wire);
}

static struct wml_pb_list list_at(const void *field)
{
    struct wml_pb_list l;
    memcpy(&l, field, sizeof l);
    return l;
}

static uint64_t int_at(const struct wml_pb_field *row, const void *field)
{
    int32_t narrow;
    uint64_t wide;
    if (row->kind != WML_PB_I32) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    memcpy(&narrow, field, sizeof narrow);
    return (uint64_t)(int64_t)narrow; /* negative ones take ten bytes in protobuf */
}

/* The message to write for element i of a message field: tensors may have a stand-in. */
static void *message_at(const struct wml_pb_field *row, const struct wml_pb_list *l, size_t i)
{
    if (row->kind == WML_PB_MSGV) return (char *)l->at + i * row->sub->size;
    void *msg;
    memcpy(&msg, (char *)l->at + i * sizeof msg, sizeof msg);
    if (row->sub == &wml_pb_tensor && msg) {
        const struct wml_tensor *stand_in = ((struct wml_tensor *)msg)->stand_in;
        if (stand_in) memcpy(&msg, &stand_in, sizeof msg);
    }
    return msg;
}

/* The messages of a field as a list, whatever its kind. */
static struct wml_pb_list messages_of(const struct wml_pb_field *row, void *field)
{
    void *one;
    if (row->kind != WML_PB_MSG) return list_at(field);
    memcpy(&one, field, sizeof one);
    return (struct wml_pb_list){field, one ? 1 : 0, 1};
}

static uint64_t raw_size(const struct wml_tensor *t)
{
    return t->payload == WML_PAYLOAD_DERIVED && !t->view.ptr ? t->derived->size : t->raw.len;
}

static bool raw_present(const struct wml_tensor *t)
{
    return t->raw.ptr || t->payload == WML_PAYLOAD_DERIVED;
}

static uint64_t numbers_body(const struct wml_pb_field *row, const struct wml_pb_list *l)
{
    uint64_t n = 0;
    if (row->kind == WML_PB_F32S) return 4 * (uint64_t)l->len;
    for (size_t i = 0; i < l->len; i++) {
        int64_t v;
        memcpy(&v, (const char *)l->at + i * sizeof v, sizeof v);
        n += varint_size((uint64_t)v);
    }
    return n;
}

static size_t count_elements(const struct wml_pb_field *row, struct wml_span s)
{
    if (row->width) return s.len / row->width;
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += !(s.ptr[i] & 0x80);
    return n;
}

static uint64_t with_length(uint64_t tag, uint64_t body)
{
    return tag + varint_size(body) + body;
}

static uint64_t field_size(const struct wml_pb_field *row, const struct wml_msg *head, void *msg)
{
    void *field = (char *)msg + row->offset;
    const uint64_t tag = varint_size((uint64_t)row->number << 3);
    const bool packed = head->packed >> row->number & 1, has = head->has >> row->number & 1;
    uint64_t n = 0;
    struct wml_pb_list l;
    struct wml_str s;
    struct wml_span bytes;
    switch ((enum wml_pb_kind)row->kind) {
    case WML_PB_I64:
    case WML_PB_I32: return has ? tag + varint_size(int_at(row, field)) : 0;
    case WML_PB_F32: return has ? tag + 4 : 0;
    case WML_PB_STR: memcpy(&s, field, sizeof s); return s.ptr ? with_length(tag, s.len) : 0;
    case WML_PB_RAW: return raw_present(msg) ? with_length(tag, raw_size(msg)) : 0;
    case WML_PB_STRS:
        l = list_at(field);
        for (size_t i = 0; i < l.len; i++) n += with_length(tag, ((struct wml_str *)l.at)[i].len);
        return n;
    case WML_PB_I64S:
    case WML_PB_F32S:
        l = list_at(field);
        if (!l.len && !packed) return 0;
        n = numbers_body(row, &l);
        return packed ? with_length(tag, n) : n + tag * l.len;
    case WML_PB_SPAN:
        memcpy(&bytes, field, sizeof bytes);
        if (packed) return with_length(tag, bytes.len);
        return bytes.len + tag * count_elements(row, bytes);
    default:
        l = messages_of(row, field);
        for (size_t i = 0; i < l.len; i++)
            n += with_length(tag, wml_pb_measure(row->sub, message_at(row, &l, i)));
        return n;
    }
}

uint64_t wml_pb_measure(const struct wml_pb_message *type, void *msg)
{
    struct wml_msg *head = msg;
    head->size = 0;
    for (size_t i = 0; i < type->n_fields; i++) head->size += field_size(&type->field[i], head, msg);
    for (const struct wml_unknown *u = head->unknown; u; u = u->next) head->size += u->bytes.len;
    return head->size;
}

static bool put_numbers(struct encoder *e, const struct wml_pb_field *row, bool packed,
                        const struct wml_pb_list *l)
{
    const bool floats = row->kind == WML_PB_F32S;
    if (!l->len && !packed) return true;
    if (packed && !(put_tag(e, row, WML_PB_WIRE_LEN) && put_varint(e, numbers_body(row, l))))
        return false;
    for (size_t i = 0; i < l->len; i++) {
        if (!packed && !put_tag(e, row, floats ? WML_PB_WIRE_32 : WML_PB_WIRE_VARINT)) return false;
        if (floats ? !put(e, (const char *)l->at + 4 * i, 4)
                   : !put_varint(e, ((const uint64_t *)l->at)[i]))
            return false;
    }
    return true;
}

static bool put_span(struct encoder *e, const struct wml_pb_field *row, bool packed,
                     struct wml_span s)
{
    if (packed)
        return put_tag(e, row, WML_PB_WIRE_LEN) && put_varint(e, s.len) && put(e, s.ptr, s.len);
    const unsigned wire = row->width == 4   ? WML_PB_WIRE_32
                          : row->width == 8 ? WML_PB_WIRE_64
                                            : WML_PB_WIRE_VARINT;
    for (size_t at = 0, n; at < s.len; at += n) {
        for (n = row->width ? row->width : 1; !row->width && s.ptr[at + n - 1] & 0x80;) n++;
        if (!put_tag(e, row, wire) || !put(e, s.ptr + at, n)) return false;
    }
    return true;
}

static bool put_raw(struct encoder *e, const struct wml_pb_field *row, const struct wml_tensor *t)
{
    if (!raw_present(t)) return true;
    if (!put_tag(e, row, WML_PB_WIRE_LEN) || !put_varint(e, raw_size(t))) return false;
    if (t->payload != WML_PAYLOAD_DERIVED || t->view.ptr) return put(e, t->raw.ptr, t->raw.len);
    if (!flush(e) || !wml_tensor_produce(t, e->sink->write, e->sink->arg, e->err)) return false;
    if (e->sink->made) e->sink->made(e->sink->arg, t);
    return true;
}

static bool put_message(struct encoder *e, const struct wml_pb_message *type, void *msg);

static bool put_field(struct encoder *e, const struct wml_pb_field *row, const struct wml_msg *head,
                      void *msg)
{
    void *field = (char *)msg + row->offset;
    const bool packed = head->packed >> row->number & 1, has = head->has >> row->number & 1;
    struct wml_pb_list l;
    struct wml_str s;
    struct wml_span bytes;
    switch ((enum wml_pb_kind)row->kind) {
    case WML_PB_I64:
    case WML_PB_I32:
        return !has || (put_tag(e, row, WML_PB_WIRE_VARINT) && put_varint(e, int_at(row, field)));
    case WML_PB_F32: return !has || (put_tag(e, row, WML_PB_WIRE_32) && put(e, field, 4));
    case WML_PB_STR:
        memcpy(&s, field, sizeof s);
        return !s.ptr || (put_tag(e, row, WML_PB_WIRE_LEN) && put_varint(e, s.len) &&
                          put(e, s.ptr, s.len));
    case WML_PB_RAW: return put_raw(e, row, msg);
    case WML_PB_STRS:
        l = list_at(field);
        for (size_t i = 0; i < l.len; i++) {
            s = ((struct wml_str *)l.at)[i];
            if (!put_tag(e, row, WML_PB_WIRE_LEN) || !put_varint(e, s.len) || !put(e, s.ptr, s.len))
                return false;
        }
        return true;
    case WML_PB_I64S:
    case WML_PB_F32S: l = list_at(field); return put_numbers(e, row, packed, &l);
    case WML_PB_SPAN: memcpy(&bytes, field, sizeof bytes); return put_span(e, row, packed, bytes);
    default:
        l = messages_of(row, field);
        for (size_t i = 0; i < l.len; i++) {
            struct wml_msg *sub = message_at(row, &l, i);
            if (!put_tag(e, row, WML_PB_WIRE_LEN) || !put_varint(e, sub->size) ||
                !put_message(e, row->sub, sub))
                return false;
        }
        return true;
    }
}

static bool put_message(struct encoder *e, const struct wml_pb_message *type, void *msg)
{
    const struct wml_msg *head = msg;
    for (size_t i = 0; i < type->n_fields; i++)
        if (!put_field(e, &type->field[i], head, msg)) return false;
    for (const struct wml_unknown *u = head->unknown; u; u = u->next)
        if (!put(e, u->bytes.ptr, u->bytes.len)) return false;
    return true;
}

bool wml_pb_encode(const struct wml_pb_message *type, void *msg, const struct wml_sink *sink,
                   struct wml_err *err)
{
    struct encoder e = {.sink = sink, .err = err};
    return put_message(&e, type, msg) && flush(&e);
}
