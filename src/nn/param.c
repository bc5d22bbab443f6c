/* nn/param.c - weights of the checkpoint as constants of the graph. */
#include <inttypes.h>
#include <math.h>
#include "nn/derive.h"
#include "nn/param.h"

/* ----------------------------------------------------------------- lookup */

static const struct wml_weight *use(struct wml_nn *b, struct wml_str name)
{
    return wml_weights_use(b->w, name);
}

/* weight and bias were gamma and beta in the first checkpoints of BERT. */
static const struct wml_weight *spelled(struct wml_nn *b, struct wml_str name)
{
    const struct wml_weight *w = use(b, name);
    if (w) return w;
    static const char *const old[2][2] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    for (size_t i = 0; i < 2 && !w; i++) {
        if (!wml_str_ends(name, old[i][0])) continue;
        const struct wml_str stem = wml_str_sub(name, 0, name.len - strlen(old[i][0]));
        w = use(b, wml_arena_fmt(&b->m->arena, "%.*s%s", WML_ARG(stem), old[i][1]));
    }
    return w;
}

static struct wml_str full_name(struct wml_nn *b, const char *name)
{
    if (*name == '/') return wml_str(name + 1);
    const struct wml_str path = b->depth ? b->scope[b->depth - 1].path : WML_NO_STR;
    return path.len ? wml_arena_fmt(&b->m->arena, "%.*s.%s", WML_ARG(path), name) : wml_str(name);
}

const struct wml_weight *wml_nn_find(struct wml_nn *b, const char *name)
{
    if (b->failed || !b->w) return NULL;
    const struct wml_str full = full_name(b, name);
    const struct wml_weight *w = spelled(b, full);
    if (w || !b->base.len) return w;
    const bool inside = full.len > b->base.len && full.ptr[b->base.len] == '.' &&
                        wml_str_eq(wml_str_sub(full, 0, b->base.len), b->base);
    if (inside) return spelled(b, wml_str_sub(full, b->base.len + 1, full.len));
    return spelled(b, wml_arena_fmt(&b->m->arena, "%.*s.%.*s", WML_ARG(b->base), WML_ARG(full)));
}

bool wml_nn_has(struct wml_nn *b, const char *name)
{
    if (b->sketch) return strcmp(name, "bias") == 0;
    return wml_nn_find(b, name) || (!b->failed && b->w && wml_weights_would_have(b->w, full_name(b, name)));
}

static const struct wml_weight *made_up(struct wml_nn *b, const char *name, size_t rank, const int64_t *dims)
{
    int64_t *known = WML_NEW_ARRAY(&b->m->arena, int64_t, rank + 1);
    struct wml_weight *w = WML_NEW(&b->m->arena, struct wml_weight);
    for (size_t i = 0; i < rank; i++) known[i] = dims[i] < 0 ? 1 : dims[i];
    *w = (struct wml_weight){.name = full_name(b, name), .dtype = WML_F32, .rank = rank, .dims = known,
                             .bytes = {(const unsigned char *)"", 0}, .used = true};
    return w;
}

static void dims_text(struct wml_buf *out, size_t rank, const int64_t *dims)
{
    wml_buf_char(out, '[');
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0) wml_buf_fmt(out, "%s?", i ? "," : "");
        else wml_buf_fmt(out, "%s%" PRId64, i ? "," : "", dims[i]);
    }
    wml_buf_char(out, ']');
}

static const struct wml_weight *wrong_shape(struct wml_nn *b, const struct wml_weight *w, size_t rank, const int64_t *dims)
{
    struct wml_buf has = {0}, wants = {0};
    dims_text(&has, w->rank, w->dims);
    dims_text(&wants, rank, dims);
    wml_nn_fail(b, WML_E_FORMAT, "weight '%.*s' is %s, but the config makes it %s", WML_ARG(w->name), wml_buf_text(&has),
                wml_buf_text(&wants));
    wml_nn_hint(b, "config.json and the weights are of different models, or one of them is damaged");
    wml_buf_release(&has);
    wml_buf_release(&wants);
    return NULL;
}

const struct wml_weight *wml_nn_need(struct wml_nn *b, const char *name, size_t rank, const int64_t *dims)
{
    if (b->failed) return NULL;
    if (b->sketch) return made_up(b, name, rank, dims);
    const struct wml_weight *w = wml_nn_find(b, name);
    if (!w) {
        const struct wml_str full = full_name(b, name);
        if (b->w && (w = wml_weights_make(b->w, full, rank, dims)) != NULL) return w;
        wml_nn_fail(b, WML_E_NOT_FOUND, "the checkpoint has no weight '%.*s'", WML_ARG(full));
        return wml_nn_hint(b, "it may be of another task: see the architectures in config.json, and --task");
    }
    bool same = w->rank == rank && w->dtype != WML_UNDEFINED;
    for (size_t i = 0; same && i < rank; i++) same = dims[i] < 0 || dims[i] == w->dims[i];
    return same ? w : wrong_shape(b, w, rank, dims);
}

/* ----------------------------------------------------------- initializers */

static struct wml_value *add_init(struct wml_nn *b, struct wml_str key, struct wml_str name, struct wml_tensor *t)
{
    if (!t) {
        b->failed = true;
        return NULL;
    }
    struct wml_value *v = wml_graph_add_init(b->g, name, t);
    wml_map_put(&b->shared, key, v);
    return v;
}

static bool nothing(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    (void)arg, (void)src, (void)offset, (void)out, (void)n;
    return wml_fail(err, WML_E_INTERNAL, "a sketch has no weights to write");
}

static struct wml_tensor *without_content(struct wml_nn *b, size_t rank, const int64_t *dims, bool transpose)
{
    static const struct wml_derived how = {.produce = nothing};
    int64_t turned[WML_NN_MAX_RANK];
    for (size_t i = 0; i < rank; i++) turned[i] = dims[transpose && i + 2 >= rank ? 2 * rank - 3 - i : i];
    return wml_tensor_derive(b->m, WML_F32, rank, turned, &how);
}

static struct wml_value *initializer(struct wml_nn *b, const struct wml_weight *w, const char *form, struct wml_span bytes,
                                     size_t rank, const int64_t *dims, struct wml_nn_recipe r)
{
    const struct wml_str name = wml_arena_fmt(&b->m->arena, "%.*s%s", WML_ARG(w->name), form);
    const struct wml_str key = wml_arena_fmt(&b->m->arena, "weight %.*s", WML_ARG(name));
    struct wml_value *known = wml_map_get(&b->shared, key);
    if (known) return known;
    if (b->sketch) return add_init(b, key, name, without_content(b, rank, dims, r.transpose));
    const bool as_stored = w->dtype == b->real && !r.transpose && !r.scale;
    return add_init(b, key, name, as_stored ? wml_tensor_borrow(b->m, b->real, rank, dims, bytes, b->err)
                                            : wml_nn_derive(b, w, bytes, rank, dims, r));
}

struct wml_value *wml_nn_param_of(struct wml_nn *b, const struct wml_weight *w)
{
    if (b->failed || !w) return NULL;
    return initializer(b, w, "", w->bytes, w->rank, w->dims, (struct wml_nn_recipe){0});
}

struct wml_value *wml_nn_param(struct wml_nn *b, const char *name, size_t rank, const int64_t *dims)
{
    return wml_nn_param_of(b, wml_nn_need(b, name, rank, dims));
}

struct wml_value *wml_nn_transposed(struct wml_nn *b, const struct wml_weight *w)
{
    if (b->failed || !w) return NULL;
    return initializer(b, w, ".transposed", w->bytes, 2, w->dims, (struct wml_nn_recipe){.transpose = true});
}

const struct wml_weight *wml_nn_part(struct wml_nn *b, const struct wml_weight *w, int64_t from, int64_t to)
{
    if (b->failed || !w) return NULL;
    if (from < 0 || to < from || !w->rank || to > w->dims[0])
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "'%.*s' has %" PRId64 " rows, %" PRId64 " are needed", WML_ARG(w->name),
                           w->rank ? w->dims[0] : 0, to);
    if (from == 0 && to == w->dims[0]) return w;
    const size_t row = w->dims[0] ? w->bytes.len / (size_t)w->dims[0] : 0;
    int64_t *dims = WML_NEW_ARRAY(&b->m->arena, int64_t, w->rank);
    memcpy(dims, w->dims, w->rank * sizeof *dims);
    dims[0] = to - from;
    struct wml_weight *part = WML_NEW(&b->m->arena, struct wml_weight);
    *part = *w;
    part->name = wml_arena_fmt(&b->m->arena, "%.*s.rows_%" PRId64 "_%" PRId64, WML_ARG(w->name), from, to);
    part->dims = dims;
    part->bytes = (struct wml_span){w->bytes.ptr + (size_t)from * row, (size_t)(to - from) * row};
    return part;
}

struct wml_value *wml_nn_rows(struct wml_nn *b, const struct wml_weight *w, int64_t from, int64_t to)
{
    return wml_nn_param_of(b, wml_nn_part(b, w, from, to));
}

static bool holds(const struct wml_weight *w, size_t rank, const int64_t *dims)
{
    int64_t had = 1, now = 1;
    for (size_t i = 0; i < w->rank; i++) had *= w->dims[i];
    for (size_t i = 0; i < rank; i++) now *= dims[i];
    return had == now;
}

struct wml_value *wml_nn_turned(struct wml_nn *b, const struct wml_weight *w, int64_t n, int64_t rows, int64_t columns)
{
    if (b->failed || !w) return NULL;
    const int64_t dims[3] = {n, rows, columns};
    if (!holds(w, 3, dims))
        return wml_nn_fail(b, WML_E_FORMAT, "weight '%.*s' is not %lld matrices of %lld by %lld", WML_ARG(w->name), (long long)n,
                           (long long)rows, (long long)columns);
    const struct wml_str form = wml_arena_fmt(&b->m->arena, ".turned_%lld_%lld", (long long)rows, (long long)columns);
    return initializer(b, w, form.ptr, w->bytes, 3, dims, (struct wml_nn_recipe){.transpose = true});
}

struct wml_value *wml_nn_scaled(struct wml_nn *b, const struct wml_weight *w, size_t axis, const float *scale)
{
    if (b->failed || !w) return NULL;
    return initializer(b, w, ".scaled", w->bytes, w->rank, w->dims, (struct wml_nn_recipe){.scale = scale, .axis = axis});
}

struct wml_value *wml_nn_scaled_transposed(struct wml_nn *b, const struct wml_weight *w, const float *scale)
{
    if (b->failed || !w) return NULL;
    return initializer(b, w, ".transposed.scaled", w->bytes, 2, w->dims, (struct wml_nn_recipe){.transpose = true, .scale = scale});
}

/* The length of every slice along the axis, whose index repeats every along * tail elements; a block at a time. */
static void slice_lengths(const struct wml_weight *w, size_t along, size_t tail, double *out)
{
    enum { BLOCK = 1024 };
    float block[BLOCK];
    const size_t item = wml_dtype_info(w->dtype)->bits / 8, n = item ? w->bytes.len / item : 0;
    for (size_t i = 0; i < along; i++) out[i] = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        wml_nn_to_float(w->dtype, w->bytes.ptr + first * item, count, block);
        for (size_t i = 0; i < count; i++) out[(first + i) / tail % along] += (double)block[i] * (double)block[i];
    }
    for (size_t i = 0; i < along; i++) out[i] = sqrt(out[i]);
}

struct wml_value *wml_nn_normed(struct wml_nn *b, const struct wml_weight *direction, const struct wml_weight *length)
{
    if (b->failed || !direction || !length) return NULL;
    size_t axis = 0, tail = 1;
    bool fits = length->rank == direction->rank && length->rank && length->dtype != WML_UNDEFINED;
    for (size_t i = 0; fits && i < length->rank; i++)
        if (length->dims[i] != 1) axis = i;
    for (size_t i = 0; fits && i < length->rank; i++) fits = length->dims[i] == (i == axis ? direction->dims[i] : 1);
    const int64_t along = fits ? length->dims[axis] : 0;
    const float *want = along > 0 ? wml_nn_read(b, length) : NULL;
    if (!want)
        return wml_nn_fail(b, WML_E_FORMAT, "weight '%.*s' does not hold the lengths of '%.*s'", WML_ARG(length->name), WML_ARG(direction->name));
    for (size_t i = axis + 1; i < direction->rank; i++) tail *= (size_t)direction->dims[i];
    double *is = wml_nn_room(b, "norm", sizeof *is, WML_DIMS(along));
    float *scale = wml_nn_room(b, "norm", sizeof *scale, WML_DIMS(along));
    if (!is || !scale) return NULL;
    slice_lengths(direction, (size_t)along, tail, is);
    for (int64_t i = 0; i < along; i++) scale[i] = (float)(want[i] / is[i]);
    return wml_nn_scaled(b, direction, axis, scale);
}

struct wml_value *wml_nn_reshaped(struct wml_nn *b, const struct wml_weight *w, size_t rank, const int64_t *dims)
{
    if (b->failed || !w) return NULL;
    struct wml_buf form = {0};
    wml_buf_char(&form, '.');
    for (size_t i = 0; i < rank; i++) wml_buf_fmt(&form, "%s%" PRId64, i ? "x" : "", dims[i]);
    struct wml_value *v = initializer(b, w, wml_buf_text(&form), w->bytes, rank, dims, (struct wml_nn_recipe){0});
    wml_buf_release(&form);
    return v;
}

const float *wml_nn_read(struct wml_nn *b, const struct wml_weight *w)
{
    if (b->failed || !w) return NULL;
    const unsigned bits = wml_dtype_info(w->dtype)->bits;
    const size_t n = bits >= 8 ? w->bytes.len / (bits / 8) : 0;
    float *out = wml_nn_room(b, w->name.ptr, sizeof *out, w->rank, w->dims);
    if (out && !b->sketch) wml_nn_to_float(w->dtype, w->bytes.ptr, n, out);
    return out;
}
