/* onnx/clone.c - a second model over the same bytes: every message is copied by the rows of its table, weights and
 * strings stay where they are. What is found out later (types, decoded lists, opened files) belongs to the copy. */
#include "onnx/onnx.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "graph/tensor.h"
#include "onnx/pb.h"

static void copy_message(struct wml_arena *a, const struct wml_pb_message *type, const void *from, void *to);

static struct wml_tensor *copy_tensor(struct wml_arena *a, const struct wml_tensor *t)
{
    struct wml_tensor *to = WML_NEW(a, struct wml_tensor);
    copy_message(a, &wml_pb_tensor, t, to);
    return to;
}

/* What is not in the file. A source that is looked at through the copy keeps the copy's memory, so it is one too. */
static void copy_payload(struct wml_arena *a, const struct wml_tensor *from, struct wml_tensor *to)
{
    to->payload = from->payload;
    to->ext = from->ext;
    to->view = from->view;
    if (!from->derived) return;
    struct wml_derived *derived = WML_NEW(a, struct wml_derived);
    *derived = *from->derived;
    if (derived->source) derived->source = copy_tensor(a, derived->source);
    to->derived = derived;
}

static size_t size_of(const struct wml_pb_field *f)
{
    static const size_t size[] = {[WML_PB_I64] = 8, [WML_PB_I32] = 4, [WML_PB_F32] = 4, [WML_PB_STR] = sizeof(struct wml_str),
                                  [WML_PB_MSG] = sizeof(void *), [WML_PB_I64S] = 8, [WML_PB_F32S] = 4,
                                  [WML_PB_STRS] = sizeof(struct wml_str), [WML_PB_MSGS] = sizeof(void *), [WML_PB_MSGV] = 0,
                                  [WML_PB_SPAN] = sizeof(struct wml_span), [WML_PB_RAW] = sizeof(struct wml_span)};
    return f->kind == WML_PB_MSGV ? f->sub->size : size[f->kind];
}

static void *copy_of(struct wml_arena *a, const struct wml_pb_message *type, const void *from)
{
    void *to = wml_arena_alloc(a, type->size);
    memset(to, 0, type->size);
    copy_message(a, type, from, to);
    return to;
}

static void copy_list(struct wml_arena *a, const struct wml_pb_field *f, const struct wml_pb_list *from, struct wml_pb_list *to)
{
    size_t size = size_of(f);
    *to = (struct wml_pb_list){.len = from->len, .cap = from->len};
    if (!from->len) return;
    to->at = wml_arena_alloc(a, wml_array_size(from->len, size));
    memcpy(to->at, from->at, from->len * size);
    for (size_t i = 0; i < from->len && f->sub; i++) {
        unsigned char *slot = (unsigned char *)to->at + i * size;
        const unsigned char *was = (const unsigned char *)from->at + i * size;
        if (f->kind == WML_PB_MSGS) *(void **)(void *)slot = copy_of(a, f->sub, *(void *const *)(const void *)was);
        else {
            memset(slot, 0, size);
            copy_message(a, f->sub, was, slot);
        }
    }
}

static void copy_message(struct wml_arena *a, const struct wml_pb_message *type, const void *from, void *to)
{
    *(struct wml_msg *)to = *(const struct wml_msg *)from;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct wml_pb_field *f = &type->field[i];
        const void *x = (const unsigned char *)from + f->offset;
        void *y = (unsigned char *)to + f->offset;
        bool list = f->kind == WML_PB_I64S || f->kind == WML_PB_F32S || f->kind == WML_PB_STRS || f->kind == WML_PB_MSGS ||
                    f->kind == WML_PB_MSGV;
        if (list) copy_list(a, f, x, y);
        else memcpy(y, x, size_of(f));
        if (f->kind == WML_PB_MSG && *(void *const *)x) *(void **)y = copy_of(a, f->sub, *(void *const *)x);
    }
    if (type == &wml_pb_tensor) copy_payload(a, from, to);
}

struct wml_model *wml_onnx_clone(struct wml_model *m, struct wml_err *err)
{
    struct wml_model *to = wml_model_new();
    wml_model_sync(m);
    copy_message(&to->arena, &wml_pb_model, m, to);
    to->store->path = m->store->path;
    to->store->folder = m->store->folder;
    to->store->open = m->store->open;
    for (const struct wml_source *s = m->source; s; s = s->next) {
        struct wml_source shared = *s;
        shared.close = NULL; /* it is m's to close */
        wml_model_add_source(to, &shared);
    }
    if (wml_model_link(to, err)) return to;
    wml_model_free(to);
    return NULL;
}
