/* onnx/decode.c - the one protobuf decoder. Walks the rows of a message; strings and bytes alias the
 * input, the rest goes to the arena. Singular messages that occur twice merge, later numbers win, as
 * protobuf wants. Refuses nesting beyond 100, wire types that do not fit the field, lengths beyond
 * the enclosing message, and inputs that would unfold to far more memory than they have bytes. */
#include "onnx/pb.h"

#include <inttypes.h>

#include "base/num.h"
#include "graph/parts.h"

struct frame { /* path to the field at work, for messages */
    const struct frame *up;
    const char *name;
    size_t index; /* SIZE_MAX: not a list */
};

struct decoder {
    struct wml_arena *arena;
    uint64_t budget; /* bytes the arena may still grow by */
    struct wml_err *err;
};

/* Deep enough for what the depth limit allows, one word and one index each. */
enum { PATH_MAX_LEN = 600, PATH_ENDS = 6 };

static void write_path(const struct frame *f, char *out, size_t size)
{
    const struct frame *chain[WML_PB_MAX_DEPTH + 2];
    size_t n = 0, len = 0;
    for (; f && n < WML_COUNT(chain); f = f->up) chain[n++] = f;
    out[0] = '\0';
    const size_t all = n;
    while (n-- && len < size) {
        const char *dot = len ? "." : "";
        if (all > 2 * PATH_ENDS && n >= PATH_ENDS && all - n > PATH_ENDS) { /* the middle of a long path tells nothing */
            if (n == PATH_ENDS) len += (size_t)snprintf(out + len, size - len, "....");
            continue;
        }
        int k = chain[n]->index == SIZE_MAX
                    ? snprintf(out + len, size - len, "%s%s", dot, chain[n]->name)
                    : snprintf(out + len, size - len, "%s%s[%zu]", dot, chain[n]->name,
                               chain[n]->index);
        len += k > 0 ? (size_t)k : 0;
    }
}

/* Puts the path before the message of err; the deepest frame does it, callers pass the error on. */
static bool in_field(struct decoder *d, const struct frame *f)
{
    char path[PATH_MAX_LEN];
    write_path(f, path, sizeof path);
    return path[0] ? wml_wrap(d->err, "%s", path) : false;
}

static bool bad(struct decoder *d, const struct frame *f, const struct wml_rd *r, const char *what)
{
    wml_fail(d->err, WML_E_FORMAT, "byte %" PRIu64 ": %s", wml_rd_offset(r), what);
    return in_field(d, f);
}

static void *take(struct decoder *d, size_t size)
{
    if (size > d->budget) return NULL;
    d->budget -= size;
    return wml_arena_zalloc(d->arena, size);
}

static bool too_big(struct decoder *d, const struct frame *f, const struct wml_rd *r)
{
    return bad(d, f, r, "the message unfolds to more memory than a real model of this size needs");
}

/* Room for `extra` more elements; NULL when the budget is used up. Returns the list's new end. */
static void *reserve(struct decoder *d, void *field, size_t extra, size_t size)
{
    static const char nothing;
    struct wml_pb_list l;
    memcpy(&l, field, sizeof l);
    if (!extra && !l.at) return (void *)(uintptr_t)&nothing; /* nobody writes there */
    if (l.cap - l.len < extra) {
        size_t cap = WML_MAX(l.len + extra, 2 * l.len), bytes = 0;
        if (!wml_mul_size(cap, size, &bytes)) return NULL;
        void *grown = take(d, bytes);
        if (!grown) return NULL;
        if (l.len) memcpy(grown, l.at, l.len * size);
        l.at = grown;
        l.cap = cap;
        memcpy(field, &l, sizeof l);
    }
    return (char *)l.at + l.len * size;
}

static void grew(void *field, size_t by)
{
    struct wml_pb_list l;
    memcpy(&l, field, sizeof l);
    l.len += by;
    memcpy(field, &l, sizeof l);
}

static size_t list_len(const void *field)
{
    struct wml_pb_list l;
    memcpy(&l, field, sizeof l);
    return l.len;
}

/* How many fields with this tag follow each other; r stands behind the first tag. */
static size_t count_run(struct wml_rd r, uint64_t tag)
{
    size_t n = 0;
    uint64_t next = tag, len = 0;
    while (next == tag && wml_rd_varint(&r, &len, NULL) && wml_rd_skip(&r, len, NULL)) {
        n++;
        if (!wml_rd_left(&r) || !wml_rd_varint(&r, &next, NULL)) break;
    }
    return WML_MAX(n, 1);
}

static bool decode_message(struct decoder *d, const struct wml_pb_message *type, void *msg,
                           struct wml_rd r, const struct frame *at, int depth);

static bool number(struct decoder *d, const struct wml_pb_field *row, unsigned wire, void *field,
                   struct wml_rd *r)
{
    uint64_t v = 0;
    uint32_t bits = 0;
    if (wire == WML_PB_WIRE_32) {
        if (!wml_rd_u32(r, &bits, d->err)) return false;
        memcpy(field, &bits, sizeof bits);
        return true;
    }
    if (!wml_rd_varint(r, &v, d->err)) return false;
    if (row->kind == WML_PB_I32)
        memcpy(field, &(uint32_t){(uint32_t)(v & UINT32_MAX)}, sizeof(uint32_t));
    else
        memcpy(field, &v, sizeof v);
    return true;
}

/* A packed list into decoded numbers. */
static bool packed_numbers(struct decoder *d, const struct wml_pb_field *row, void *field,
                           struct wml_rd body, const struct frame *at)
{
    size_t n = 0;
    if (row->kind == WML_PB_F32S) {
        n = wml_rd_left(&body) / 4;
        float *out = reserve(d, field, n, sizeof *out);
        if (!out) return too_big(d, at, &body);
        if (wml_rd_left(&body) % 4) return bad(d, at, &body, "packed floats with a partial one");
        if (n) memcpy(out, body.p, n * 4);
        grew(field, n);
        return true;
    }
    for (const unsigned char *p = body.p; p < body.end; p++) n += !(*p & 0x80);
    int64_t *out = reserve(d, field, n, sizeof *out);
    if (!out) return too_big(d, at, &body);
    while (wml_rd_left(&body)) {
        uint64_t v = 0;
        if (!wml_rd_varint(&body, &v, d->err)) return in_field(d, at);
        memcpy(out++, &v, sizeof v);
        grew(field, 1);
    }
    return true;
}

static bool list_of_numbers(struct decoder *d, const struct wml_pb_field *row, unsigned wire,
                            struct wml_msg *msg, void *field, struct wml_rd *r,
                            const struct frame *at)
{
    if (wire == WML_PB_WIRE_LEN) {
        uint64_t len = 0;
        struct wml_rd body = {0};
        if (!wml_rd_varint(r, &len, d->err) || !wml_rd_sub(r, len, &body, d->err))
            return in_field(d, at);
        msg->packed |= 1u << row->number;
        return packed_numbers(d, row, field, body, at);
    }
    void *out = reserve(d, field, 1, row->kind == WML_PB_F32S ? sizeof(float) : sizeof(int64_t));
    if (!out) return too_big(d, at, r);
    if (!number(d, row, wire, out, r)) return in_field(d, at);
    grew(field, 1);
    return true;
}

/* Adds bytes to a list that is kept packed: the first stretch aliases the input. */
static bool add_span(struct decoder *d, struct wml_span *to, struct wml_span more)
{
    if (!to->len) {
        *to = more;
        return true;
    }
    unsigned char *joined = take(d, to->len + more.len);
    if (!joined) return false;
    memcpy(joined, to->ptr, to->len);
    if (more.len) memcpy(joined + to->len, more.ptr, more.len);
    *to = (struct wml_span){joined, to->len + more.len};
    return true;
}

static bool span_is_whole(const struct wml_pb_field *row, struct wml_span s)
{
    return row->width ? s.len % row->width == 0 : !s.len || !(s.ptr[s.len - 1] & 0x80);
}

/* One element per tag: takes the whole run at once, so that its bytes are gathered in one go. */
static bool unpacked_span(struct decoder *d, const struct wml_pb_field *row, uint64_t tag,
                          struct wml_span *out, struct wml_rd *r, const struct frame *at)
{
    struct wml_rd scan = *r;
    size_t bytes = 0, n = 0;
    for (;;) {
        const unsigned char *from = scan.p;
        uint64_t v = 0;
        if (row->width ? !wml_rd_skip(&scan, row->width, d->err) : !wml_rd_varint(&scan, &v, d->err))
            return in_field(d, at);
        bytes += (size_t)(scan.p - from);
        n++;
        struct wml_rd behind = scan;
        if (!wml_rd_left(&scan) || !wml_rd_varint(&behind, &v, NULL) || v != tag) break;
        scan = behind;
    }
    unsigned char *all = take(d, bytes + 1);
    if (!all) return too_big(d, at, r);
    unsigned char *to = all;
    while (n--) {
        const unsigned char *from = r->p;
        uint64_t v = 0;
        if (row->width ? !wml_rd_skip(r, row->width, d->err) : !wml_rd_varint(r, &v, d->err))
            return in_field(d, at);
        memcpy(to, from, (size_t)(r->p - from));
        to += r->p - from;
        if (n && !wml_rd_varint(r, &v, d->err)) return in_field(d, at);
    }
    return add_span(d, out, (struct wml_span){all, bytes}) || too_big(d, at, r);
}

static bool packed_span(struct decoder *d, const struct wml_pb_field *row, struct wml_msg *msg,
                        void *field, struct wml_rd *r, const struct frame *at)
{
    struct wml_span *out = field, more = {0};
    uint64_t len = 0;
    if (!wml_rd_varint(r, &len, d->err) || !wml_rd_bytes(r, len, &more, d->err))
        return in_field(d, at);
    if (!span_is_whole(row, more)) return bad(d, at, r, "packed list with a partial element");
    msg->packed |= 1u << row->number;
    return add_span(d, out, more) || too_big(d, at, r);
}

static bool nested(struct decoder *d, const struct wml_pb_field *row, void *field, struct wml_rd body,
                   const struct frame *at, int depth)
{
    void *sub = NULL;
    if (row->kind == WML_PB_MSGV) {
        sub = reserve(d, field, 1, row->sub->size);
    } else if (row->kind == WML_PB_MSGS) {
        void *slot = reserve(d, field, 1, sizeof(void *));
        sub = slot ? take(d, row->sub->size) : NULL;
        if (sub) memcpy(slot, &sub, sizeof sub);
    } else {
        memcpy(&sub, field, sizeof sub);
        if (!sub) sub = take(d, row->sub->size);
        if (sub) memcpy(field, &sub, sizeof sub);
    }
    if (!sub) return too_big(d, at, &body);
    if (row->kind != WML_PB_MSG) grew(field, 1);
    return decode_message(d, row->sub, sub, body, at, depth + 1);
}

/* A field with a length: string, bytes, message. */
static bool delimited(struct decoder *d, const struct wml_pb_field *row, uint64_t tag, bool first,
                      void *field, struct wml_rd *r, const struct frame *at, int depth)
{
    uint64_t len = 0;
    struct wml_rd body = {0};
    bool list = row->kind == WML_PB_STRS || row->kind == WML_PB_MSGS || row->kind == WML_PB_MSGV;
    if (list && first) {
        size_t size = row->kind == WML_PB_STRS   ? sizeof(struct wml_str)
                      : row->kind == WML_PB_MSGS ? sizeof(void *)
                                                 : row->sub->size;
        if (!reserve(d, field, count_run(*r, tag), size)) return too_big(d, at, r);
    }
    if (!wml_rd_varint(r, &len, d->err) || !wml_rd_sub(r, len, &body, d->err))
        return in_field(d, at);
    /* The format has no absent element: an empty string is a pointer with length 0. */
    struct wml_str s = {body.p ? (const char *)body.p : "", wml_rd_left(&body)};
    if (row->kind == WML_PB_STR) {
        memcpy(field, &s, sizeof s);
        return true;
    }
    if (row->kind == WML_PB_RAW) {
        memcpy(field, &(struct wml_span){(const unsigned char *)s.ptr, s.len}, sizeof(struct wml_span));
        return true;
    }
    if (row->kind != WML_PB_STRS) return nested(d, row, field, body, at, depth);
    struct wml_str *slot = reserve(d, field, 1, sizeof s);
    if (!slot) return too_big(d, at, r);
    *slot = s;
    grew(field, 1);
    return true;
}

static const struct wml_pb_field *find_row(const struct wml_pb_message *type, uint64_t num,
                                           size_t *hint)
{
    for (size_t i = *hint; i < type->n_fields; i++)
        if (type->field[i].number == num) return &type->field[*hint = i];
    for (size_t i = 0; i < *hint; i++)
        if (type->field[i].number == num) return &type->field[*hint = i];
    return NULL;
}

static bool wire_fits(const struct wml_pb_field *row, unsigned wire)
{
    switch ((enum wml_pb_kind)row->kind) {
    case WML_PB_I64:
    case WML_PB_I32: return wire == WML_PB_WIRE_VARINT;
    case WML_PB_F32: return wire == WML_PB_WIRE_32;
    case WML_PB_I64S: return wire == WML_PB_WIRE_VARINT || wire == WML_PB_WIRE_LEN;
    case WML_PB_F32S: return wire == WML_PB_WIRE_32 || wire == WML_PB_WIRE_LEN;
    case WML_PB_SPAN:
        return wire == WML_PB_WIRE_LEN || wire == (row->width == 4   ? WML_PB_WIRE_32
                                                   : row->width == 8 ? WML_PB_WIRE_64
                                                                     : WML_PB_WIRE_VARINT);
    default: return wire == WML_PB_WIRE_LEN;
    }
}

/* Steps over a field of any wire type; groups may nest. */
static bool skip_field(struct decoder *d, uint64_t tag, struct wml_rd *r, int depth)
{
    uint64_t v = 0;
    switch (tag & 7) {
    case WML_PB_WIRE_VARINT: return wml_rd_varint(r, &v, d->err);
    case WML_PB_WIRE_64: return wml_rd_skip(r, 8, d->err);
    case WML_PB_WIRE_32: return wml_rd_skip(r, 4, d->err);
    case WML_PB_WIRE_LEN: return wml_rd_varint(r, &v, d->err) && wml_rd_skip(r, v, d->err);
    case WML_PB_WIRE_GROUP: break;
    default:
        return wml_fail(d->err, WML_E_FORMAT, "byte %" PRIu64 ": impossible field type %u",
                        wml_rd_offset(r), (unsigned)(tag & 7));
    }
    if (depth >= WML_PB_MAX_DEPTH)
        return wml_fail(d->err, WML_E_FORMAT, "byte %" PRIu64 ": messages nest deeper than %d",
                        wml_rd_offset(r), WML_PB_MAX_DEPTH);
    for (;;) {
        uint64_t inner = 0;
        if (!wml_rd_varint(r, &inner, d->err)) return false;
        if ((inner & 7) == WML_PB_WIRE_END) {
            if (inner >> 3 == tag >> 3) return true;
            return wml_fail(d->err, WML_E_FORMAT, "byte %" PRIu64 ": group ends as another one",
                            wml_rd_offset(r));
        }
        if (!skip_field(d, inner, r, depth + 1)) return false;
    }
}

static bool keep_unknown(struct decoder *d, struct wml_msg *msg, uint64_t tag,
                         const unsigned char *from, struct wml_rd *r, const struct frame *at,
                         int depth)
{
    if (!skip_field(d, tag, r, depth)) return in_field(d, at);
    struct wml_unknown *first = msg->unknown;
    if (first && first->last->bytes.ptr + first->last->bytes.len == from) {
        first->last->bytes.len += (size_t)(r->p - from); /* neighbours in the file join */
        return true;
    }
    struct wml_unknown *u = take(d, sizeof *u);
    if (!u) return too_big(d, at, r);
    *u = (struct wml_unknown){.bytes = {from, (size_t)(r->p - from)}, .last = u};
    if (first) {
        first->last->next = u;
        first->last = u;
    } else {
        msg->unknown = u;
    }
    return true;
}

static void clear_siblings(const struct wml_pb_message *type, const struct wml_pb_field *row,
                           struct wml_msg *msg)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct wml_pb_field *f = &type->field[i];
        if (!f->one_of || f == row) continue;
        msg->has &= ~(1u << f->number);
        if (f->kind == WML_PB_STR) memset((char *)msg + f->offset, 0, sizeof(struct wml_str));
        if (f->kind == WML_PB_MSG) memset((char *)msg + f->offset, 0, sizeof(void *));
    }
}

static bool known_field(struct decoder *d, const struct wml_pb_field *row, uint64_t tag, bool first,
                        struct wml_msg *msg, struct wml_rd *r, const struct frame *at, int depth)
{
    void *field = (char *)msg + row->offset;
    unsigned wire = (unsigned)(tag & 7);
    if (!wire_fits(row, wire)) return bad(d, at, r, "the field is stored as another type");
    switch ((enum wml_pb_kind)row->kind) {
    case WML_PB_I64:
    case WML_PB_I32:
    case WML_PB_F32:
        if (!number(d, row, wire, field, r)) return in_field(d, at);
        msg->has |= 1u << row->number;
        return true;
    case WML_PB_I64S:
    case WML_PB_F32S: return list_of_numbers(d, row, wire, msg, field, r, at);
    case WML_PB_SPAN:
        return wire == WML_PB_WIRE_LEN ? packed_span(d, row, msg, field, r, at)
                                       : unpacked_span(d, row, tag, field, r, at);
    default: return delimited(d, row, tag, first, field, r, at, depth);
    }
}

static bool decode_message(struct decoder *d, const struct wml_pb_message *type, void *msg,
                           struct wml_rd r, const struct frame *up, int depth)
{
    struct wml_msg *head = msg;
    size_t hint = 0;
    uint64_t last = 0;
    if (depth > WML_PB_MAX_DEPTH) {
        bad(d, up, &r, "messages nest deeper than 100");
        return wml_hint(d->err, "no runtime reads that either: protobuf itself ends there; some 30 graphs in each other fit");
    }
    while (wml_rd_left(&r)) {
        const unsigned char *from = r.p;
        uint64_t tag = 0;
        if (!wml_rd_varint(&r, &tag, d->err)) return in_field(d, up);
        if (tag >> 3 == 0) return bad(d, up, &r, "field number 0");
        const struct wml_pb_field *row = find_row(type, tag >> 3, &hint);
        if (!row) {
            if (!keep_unknown(d, head, tag, from, &r, up, depth)) return false;
        } else {
            struct frame at = {up, row->name, SIZE_MAX};
            if (row->kind >= WML_PB_STRS && row->kind <= WML_PB_MSGV)
                at.index = list_len((char *)msg + row->offset);
            if (row->one_of) clear_siblings(type, row, head);
            if (!known_field(d, row, tag, tag != last, head, &r, &at, depth)) return false;
        }
        last = tag;
    }
    return true;
}

bool wml_pb_decode(struct wml_arena *arena, const struct wml_pb_message *type, void *msg,
                   struct wml_span bytes, struct wml_err *err)
{
    const uint64_t least = UINT64_C(256) << 20, most = UINT64_C(16) << 30;
    uint64_t budget = bytes.len < most / 64 ? least + 64 * (uint64_t)bytes.len : most;
    struct wml_err local = {0};
    struct decoder d = {arena, WML_MIN(budget, most), err ? err : &local};
    return decode_message(&d, type, msg, wml_rd(bytes.ptr, bytes.len), NULL, 0);
}
