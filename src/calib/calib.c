/* Calibration of many tensors: the list of methods, the passes, the parts of the threads and their merging. */
#include "calib/internal.h"

#include <assert.h>
#include <math.h>

static const struct wml_range_method *const methods[] = {
#define RANGE_METHOD(id, name) &wml_range_##id,
#include "calib/methods.def"
#undef RANGE_METHOD
};

struct tensor {
    struct wml_str name;
    struct wml_range_state state; /* merged */
    bool wanted;                  /* by this pass */
};

struct wml_calib {
    const struct wml_range_method *method;
    struct wml_range_opts opts;
    unsigned threads, pass; /* pass: 0 before the first */
    struct wml_arena names;
    WML_VEC(struct tensor) tensor;
    struct wml_range_state **part; /* [thread * tensors + tensor], NULL until that thread sees the tensor */
};

const struct wml_range_method *wml_range_method_at(size_t i)
{
    return i < WML_COUNT(methods) ? methods[i] : NULL;
}

const struct wml_range_method *wml_range_method_find(const char *name)
{
    for (size_t i = 0; i < WML_COUNT(methods); i++)
        if (!strcmp(methods[i]->name, name)) return methods[i];
    return NULL;
}

double wml_range_round(enum wml_dtype dtype, double x)
{
    float f = (float)x;
    return (double)(dtype == WML_F16 ? wml_half_to_float(wml_float_to_half(f)) : f) + 0.0; /* -0 becomes 0 */
}

struct wml_range wml_range_make(enum wml_dtype dtype, double low, double high, bool symmetric)
{
    double most = WML_MAX(fabs(low), fabs(high));
    if (symmetric) low = -most, high = most;
    return (struct wml_range){wml_range_round(dtype, WML_MIN(low, high)), wml_range_round(dtype, WML_MAX(low, high)), dtype};
}

struct wml_calib *wml_calib_new(const struct wml_range_method *m, const struct wml_range_opts *opts, unsigned threads,
                                struct wml_err *err)
{
    struct wml_range_opts o = opts ? *opts : (struct wml_range_opts){0};
    if (m->check && !m->check(&o, err)) {
        wml_wrap(err, "calibration method %s", m->name);
        return NULL;
    }
    struct wml_calib *c = wml_xcalloc(1, sizeof *c);
    c->method = m;
    c->opts = o;
    c->threads = WML_MAX(threads, 1u);
    return c;
}

static void release_state(const struct wml_calib *c, struct wml_range_state *s)
{
    if (s->own && c->method->collect->release) c->method->collect->release(s);
}

static void free_parts(struct wml_calib *c)
{
    for (size_t i = 0; c->part && i < c->threads * c->tensor.len; i++) {
        if (!c->part[i]) continue;
        release_state(c, c->part[i]);
        free(c->part[i]);
    }
    free(c->part);
    c->part = NULL;
}

void wml_calib_free(struct wml_calib *c)
{
    if (!c) return;
    free_parts(c);
    for (size_t i = 0; i < c->tensor.len; i++) release_state(c, &c->tensor.at[i].state);
    WML_VEC_RELEASE(&c->tensor);
    wml_arena_release(&c->names);
    free(c);
}

size_t wml_calib_add(struct wml_calib *c, struct wml_str tensor, enum wml_dtype dtype)
{
    assert(!c->pass && (dtype == WML_F32 || dtype == WML_F16));
    struct tensor t = {.name = wml_arena_str(&c->names, tensor), .wanted = true};
    t.state = (struct wml_range_state){.dtype = dtype, .extent = wml_extent_none()};
    WML_PUSH(&c->tensor, t);
    return c->tensor.len - 1;
}

static void merge_parts(struct wml_calib *c)
{
    const struct wml_range_collect *how = c->method->collect;
    for (size_t i = 0; i < c->threads * c->tensor.len; i++) {
        const struct wml_range_state *part = c->part[i];
        struct wml_range_state *into = &c->tensor.at[i % c->tensor.len].state;
        if (!part) continue;
        if (c->pass == 1) wml_extent_add(&into->extent, &part->extent);
        if (how->merge && part->own) how->merge(into, part);
    }
    free_parts(c);
}

bool wml_calib_pass(struct wml_calib *c)
{
    bool again = !c->pass && c->tensor.len;
    if (c->part) merge_parts(c);
    for (size_t i = 0; i < c->tensor.len && c->pass; i++) {
        struct tensor *t = &c->tensor.at[i];
        t->wanted = c->pass == 1 && c->method->collect->plan && t->state.extent.finite &&
                    c->method->collect->plan(&t->state, &c->opts);
        again |= t->wanted;
    }
    c->pass++;
    if (again) c->part = wml_xcalloc(c->threads * c->tensor.len, sizeof *c->part);
    return again;
}

bool wml_calib_wants(const struct wml_calib *c, size_t tensor)
{
    return c->part && c->tensor.at[tensor].wanted;
}

void wml_calib_observe(struct wml_calib *c, unsigned thread, size_t tensor, size_t sample, const void *data, size_t n)
{
    const struct wml_range_collect *how = c->method->collect;
    const struct tensor *t = &c->tensor.at[tensor];
    assert(c->part && thread < c->threads && tensor < c->tensor.len);
    if (!t->wanted || !n) return;
    struct wml_range_state **part = &c->part[thread * c->tensor.len + tensor];
    if (!*part) {
        *part = wml_xcalloc(1, sizeof **part);
        **part = (struct wml_range_state){.dtype = t->state.dtype, .extent = wml_extent_none()};
    }
    if (c->pass == 1) {
        struct wml_extent piece = wml_extent_of(t->state.dtype, data, n);
        wml_extent_add(&(*part)->extent, &piece);
        if (how->first) how->first(*part, sample, &piece, data, n);
    } else {
        how->second(*part, &t->state, data, n);
    }
}

struct wml_extent wml_calib_extent(const struct wml_calib *c, size_t tensor)
{
    struct wml_extent e = c->tensor.at[tensor].state.extent;
    if (!e.finite) e.low = e.high = e.least = 0;
    return e;
}

struct wml_range wml_calib_range(const struct wml_calib *c, size_t tensor)
{
    const struct wml_range_state *s = &c->tensor.at[tensor].state;
    if (!s->extent.finite) return (struct wml_range){.dtype = s->dtype};
    return c->method->finish(s, &c->opts);
}

void wml_calib_finish(const struct wml_calib *c, struct wml_ranges *out)
{
    for (size_t i = 0; i < c->tensor.len; i++) wml_ranges_put(out, c->tensor.at[i].name, wml_calib_range(c, i));
}
