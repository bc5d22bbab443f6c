/* onnx/stand_in.c - stand-ins for tensors while a model is written. */
#include "onnx/stand_in.h"

#include <inttypes.h>

enum { HAS_DIMS = 1u << 1, HAS_LOCATION = 1u << 14, EXTERNAL = 1 };

static struct wml_tensor *blank(struct wml_stand_ins *s, struct wml_tensor *t)
{
    struct wml_tensor *c = WML_NEW(&s->arena, struct wml_tensor);
    c->msg = t->msg;
    c->msg.packed &= HAS_DIMS; /* the typed lists stay behind */
    c->name = t->name;
    c->doc = t->doc;
    c->dims.at = t->dims.at;
    c->dims.len = c->dims.cap = t->dims.len;
    c->dtype = t->dtype;
    c->metadata = t->metadata;
    t->stand_in = c;
    WML_PUSH(&s->v, t);
    return c;
}

static void entry(struct wml_stand_ins *s, struct wml_tensor *c, const char *key, struct wml_str value)
{
    struct wml_entry e = {.key = wml_str(key), .value = wml_arena_str(&s->arena, value)};
    WML_PUSH_IN(&s->arena, &c->external, e);
}

void wml_stand_in_add(struct wml_stand_ins *s, struct wml_tensor *t, struct wml_str location,
                      uint64_t offset, uint64_t length)
{
    struct wml_tensor *c = blank(s, t);
    c->location = EXTERNAL;
    c->payload = WML_PAYLOAD_EXTERNAL;
    c->msg.has |= HAS_LOCATION;
    entry(s, c, "location", location);
    entry(s, c, "offset", wml_arena_fmt(&s->arena, "%" PRIu64, offset));
    entry(s, c, "length", wml_arena_fmt(&s->arena, "%" PRIu64, length));
}

void wml_stand_in_inline(struct wml_stand_ins *s, struct wml_tensor *t, struct wml_span bytes)
{
    struct wml_tensor *c = blank(s, t);
    c->raw = bytes;
    c->payload = WML_PAYLOAD_BORROWED;
    c->msg.has &= ~(uint32_t)HAS_LOCATION;
}

void wml_stand_ins_clear(struct wml_stand_ins *s)
{
    for (size_t i = 0; i < s->v.len; i++) s->v.at[i]->stand_in = NULL;
    s->v.len = 0;
    wml_arena_reset(&s->arena);
}

void wml_stand_ins_release(struct wml_stand_ins *s)
{
    wml_stand_ins_clear(s);
    WML_VEC_RELEASE(&s->v);
    wml_arena_release(&s->arena);
}
