/* flow/build/share.c - one file of weights for two graphs of the same layers. */
#include "flow/build/internal.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"

struct comparison {
    struct wml_span want;
    size_t at;
    bool differs;
};

static bool compare(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct comparison *c = arg;
    (void)err;
    c->differs = c->differs || n > c->want.len - c->at || memcmp(c->want.ptr + c->at, bytes, n) != 0;
    c->at += c->differs ? 0 : n;
    return true;
}

/* Without keeping what a DERIVED tensor is made of. */
static bool is_same(struct wml_model *m, struct wml_tensor *t, struct wml_span want, bool *same, struct wml_err *err)
{
    struct comparison c = {.want = want};
    struct wml_span bytes;
    if (t->payload != WML_PAYLOAD_DERIVED) {
        if (!wml_tensor_bytes(m, t, &bytes, err)) return false;
        *same = bytes.len == want.len && memcmp(bytes.ptr, want.ptr, want.len) == 0;
        wml_model_drop(m, bytes);
        return true;
    }
    if (!wml_tensor_open_sources(m, t, err) || !wml_tensor_produce(t, compare, &c, err)) return false;
    *same = !c.differs && c.at == want.len;
    if (t->derived->source && wml_tensor_peek(t->derived->source, &bytes)) wml_model_drop(m, bytes);
    return true;
}

static bool share(struct wml_model *m, struct wml_value *v, struct wml_model *with, struct wml_tensor *other, struct wml_err *err)
{
    const struct wml_tensor *t = v->init;
    struct wml_span bytes;
    bool same = t->dtype == other->dtype && t->dims.len == other->dims.len &&
                (!t->dims.len || memcmp(t->dims.at, other->dims.at, t->dims.len * sizeof *t->dims.at) == 0);
    if (!same || other->payload != WML_PAYLOAD_EXTERNAL) return true;
    if (!wml_tensor_bytes(with, other, &bytes, err) || !is_same(m, v->init, bytes, &same, err)) return false;
    wml_model_drop(with, bytes);
    if (!same) return true;
    struct wml_tensor *shared = wml_tensor_borrow(m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at, bytes, err);
    if (shared) wml_value_set_init(v, shared);
    return shared != NULL;
}

/* m knows the files of `with` as its own, but does not close them. */
static void lend_files(struct wml_model *m, const struct wml_model *with)
{
    for (const struct wml_source *s = with->source; s; s = s->next) {
        struct wml_source copy = *s;
        copy.handle = NULL;
        copy.close = NULL;
        if (s->bytes.ptr) wml_model_add_source(m, &copy);
    }
}

bool wml_build_share(struct wml_model *m, struct wml_model *with, struct wml_err *err)
{
    struct wml_map by_name = {0};
    bool ok = true;
    wml_model_sync(m); /* its list of initializers */
    for (size_t i = 0; i < with->graph->initializer.len; i++)
        wml_map_put(&by_name, with->graph->initializer.at[i]->name, with->graph->initializer.at[i]);
    for (size_t i = 0; ok && i < m->graph->initializer.len; i++) {
        struct wml_value *v = m->graph->initializer.at[i]->value;
        struct wml_tensor *other = v ? wml_map_get(&by_name, v->name) : NULL;
        ok = !other || share(m, v, with, other, err);
    }
    wml_map_release(&by_name);
    if (ok) lend_files(m, with);
    return ok;
}
