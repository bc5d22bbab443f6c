/* Samples for calibration. Files of arrays are mapped once and cut along their axis of samples. */
#include "flow/samples.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "flow/samples/images.h"
#include "flow/samples_text.h"
#include "os/file.h"
#include "os/path.h"
#include "os/thread.h"
#include "text/npy.h"

struct file { /* with one sample */
    const char *path;
    struct wml_npys arrays;
    bool is_kept;
};

struct wml_samples {
    struct wml_samples_spec spec;
    bool is_kept; /* whoever opened it is not its owner */
    struct wml_io *input;
    size_t n_inputs, count;
    struct wml_arena arena;
    struct wml_npys arrays;           /* one file with all samples */
    int64_t *step;                    /* per array: rows of its first axis that one sample takes; 0: that axis is dropped */
    WML_VEC(struct file) file;        /* or one file per sample */
    struct wml_mutex *lock;           /* of what they keep */
    uint64_t bytes;                   /* so much */
    struct wml_texts *texts;          /* or texts */
    struct wml_pictures *pictures;    /* or pictures */
    const char *text;
    atomic_bool told;                 /* of arrays that are no inputs */
};

static const struct wml_io *find_input(const struct wml_samples *s, struct wml_str name)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (wml_str_is(name, s->input[i].name)) return &s->input[i];
    return NULL;
}

/* How many samples an array holds, and what one of them takes. Inputs of unknown rank get rows of one. */
static bool measure(struct wml_samples *s, size_t i, size_t *count, struct wml_err *err)
{
    const struct wml_npy *a = &s->arrays.v.at[i];
    const struct wml_io *in = find_input(s, a->name);
    s->step[i] = 1;
    if (!in || !a->rank) {
        *count = 1;
        s->step[i] = -1;
        return true;
    }
    bool own_axis = in->has_shape && a->rank == in->rank + 1;
    if (own_axis) s->step[i] = 0;
    else if (in->has_shape && in->rank && in->dim[0] > 0) s->step[i] = in->dim[0];
    int64_t step = s->step[i] ? s->step[i] : 1;
    if (a->dim[0] <= 0 || a->dim[0] % step)
        return wml_fail(err, WML_E_USAGE, "%s: array '%.*s' has %" PRId64 " rows, input '%s' takes %" PRId64 " at a time", s->spec.data,
                        WML_ARG(a->name), a->dim[0], in->name, step);
    *count = (size_t)(a->dim[0] / step);
    return true;
}

static bool open_arrays(struct wml_samples *s, struct wml_err *err)
{
    size_t count = 0, n = 0;
    if (!wml_npy_load(s->spec.data, &s->arrays, err)) return false;
    if (!s->arrays.v.len) return wml_fail(err, WML_E_USAGE, "%s holds no arrays", s->spec.data);
    s->step = WML_NEW_ARRAY(&s->arena, int64_t, s->arrays.v.len);
    for (size_t i = 0; i < s->arrays.v.len; i++) {
        if (!measure(s, i, &n, err)) return false;
        if (s->step[i] < 0) continue; /* the same in every sample */
        if (count && n != count)
            return wml_fail(err, WML_E_USAGE, "%s: '%.*s' has %zu samples, others have %zu", s->spec.data, WML_ARG(s->arrays.v.at[i].name), n,
                            count);
        count = n;
    }
    s->count = count ? count : 1;
    return true;
}

static bool fail_empty(const struct wml_samples *s, const char *text, struct wml_err *err)
{
    wml_fail(err, WML_E_NOT_FOUND, "the folder %s holds no samples", s->spec.data);
    if (text) return wml_hint(err, "texts are given file by file: --calibration-data %s", text);
    return wml_hint(err, "a folder holds pictures, .npz files (one per sample), or .npy files (one per input)");
}

/* Files of one sample each, or of one input each, which are left to open_arrays. */
static bool list_folder(struct wml_samples *s, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    struct wml_buf path = {0};
    const char *text = NULL;
    bool arrays = false;
    if (!wml_dir_list(s->spec.data, &list, err)) return false;
    for (size_t i = 0; i < list.v.len; i++) {
        if (list.v.at[i].is_dir) continue;
        wml_buf_clear(&path);
        wml_path_join(&path, wml_str(s->spec.data), list.v.at[i].name);
        struct file one = {.path = wml_arena_cstr(&s->arena, wml_buf_view(&path))};
        if (wml_str_ends(list.v.at[i].name, ".npz")) WML_PUSH(&s->file, one);
        arrays = arrays || wml_str_ends(list.v.at[i].name, ".npy");
        if (!text && wml_texts_are(one.path)) text = one.path;
    }
    wml_buf_release(&path);
    wml_dir_list_release(&list);
    s->count = s->file.len;
    s->lock = s->file.len ? wml_mutex_new() : NULL;
    return s->file.len || arrays || fail_empty(s, text, err);
}

static bool open_data(struct wml_samples *s, struct wml_err *err)
{
    struct wml_str name = wml_path_name(wml_str(s->spec.data));
    bool folder = wml_dir_exists(s->spec.data);
    if (!folder && wml_texts_are(s->spec.data)) {
        if (!wml_texts_open(s->spec.data, s->spec.tokenizer, s->spec.count, s->input, s->n_inputs, &s->texts, err)) return false;
        s->count = wml_texts_count(s->texts);
        s->text = wml_arena_fmt(&s->arena, "texts of %.*s", WML_ARG(name)).ptr;
        return true;
    }
    if (wml_pictures_are(s->spec.data)) {
        if (!wml_pictures_open(s->spec.data, s->spec.preprocessor, s->spec.beside, s->spec.count, s->input, s->n_inputs, &s->spec.feed, s->spec.cx,
                               &s->pictures, err))
            return false;
        s->count = wml_pictures_count(s->pictures);
        s->text = wml_arena_fmt(&s->arena, "pictures of %.*s", WML_ARG(name)).ptr;
        return true;
    }
    if (folder && !list_folder(s, err)) return false;
    if (!s->file.len && !open_arrays(s, err))
        return wml_hint(err, "calibration data is a .npz file, a folder of .npz files (one per sample) or of .npy files (one per input), a folder of pictures, or .txt or .jsonl texts");
    s->text = wml_arena_fmt(&s->arena, s->file.len ? "files of %.*s" : "arrays of %.*s", WML_ARG(name)).ptr;
    return true;
}

static void copy_inputs(struct wml_samples *s, const struct wml_io *input, size_t n)
{
    s->n_inputs = n;
    s->input = WML_NEW_ARRAY(&s->arena, struct wml_io, n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t rank = input[i].has_shape ? input[i].rank : 0;
        int64_t *dim = WML_NEW_ARRAY(&s->arena, int64_t, rank + 1);
        const char **symbol = WML_NEW_ARRAY(&s->arena, const char *, rank + 1);
        for (size_t d = 0; d < rank; d++) {
            dim[d] = input[i].dim[d];
            symbol[d] = wml_arena_cstr(&s->arena, wml_str(input[i].symbol ? input[i].symbol[d] : ""));
        }
        s->input[i] = input[i];
        s->input[i].name = wml_arena_cstr(&s->arena, wml_str(input[i].name));
        s->input[i].dim = dim;
        s->input[i].symbol = symbol;
    }
}

static bool are_same(const struct wml_io *a, const struct wml_io *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->dtype != b->dtype || a->has_shape != b->has_shape) return false;
    if (!a->has_shape) return true;
    if (a->rank != b->rank) return false;
    for (size_t d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d] || strcmp(a->symbol ? a->symbol[d] : "", b->symbol ? b->symbol[d] : "") != 0) return false;
    return true;
}

static bool serves(const struct wml_samples *s, const struct wml_samples_spec *spec, const struct wml_io *input, size_t n)
{
    bool same = s && s->n_inputs == n && s->spec.count == spec->count && strcmp(s->spec.data, spec->data) == 0;
    for (size_t i = 0; same && i < n; i++) same = are_same(&s->input[i], &input[i]);
    return same;
}

bool wml_samples_open(const struct wml_samples_spec *spec, const struct wml_io *input, size_t n, struct wml_samples **out,
                      struct wml_err *err)
{
    bool keep = spec->data && spec->kept;
    if (keep && serves(*spec->kept, spec, input, n)) {
        *out = *spec->kept;
        return true;
    }
    struct wml_samples *s = wml_xcalloc(1, sizeof *s);
    *s = (struct wml_samples){.spec = *spec, .count = spec->count, .text = "random data"};
    copy_inputs(s, input, n);
    bool ok = !spec->data || open_data(s, err);
    if (ok && s->count > spec->count) s->count = spec->count;
    if (ok && keep) {
        wml_samples_drop(spec->kept);
        s->is_kept = true;
        *spec->kept = s;
    }
    if (ok) *out = s;
    else wml_samples_close(s);
    return ok;
}

void wml_samples_close(struct wml_samples *s)
{
    if (!s || s->is_kept) return;
    for (size_t i = 0; i < s->file.len; i++) wml_npys_release(&s->file.at[i].arrays);
    WML_VEC_RELEASE(&s->file);
    wml_mutex_free(s->lock);
    wml_npys_release(&s->arrays);
    wml_texts_close(s->texts);
    wml_pictures_close(s->pictures);
    wml_arena_release(&s->arena);
    free(s);
}

void wml_samples_drop(struct wml_samples **kept)
{
    if (*kept) (*kept)->is_kept = false;
    wml_samples_close(*kept);
    *kept = NULL;
}

size_t wml_samples_count(const struct wml_samples *s)
{
    return s->count;
}

const char *wml_samples_text(const struct wml_samples *s)
{
    return s->text;
}

bool wml_samples_are_random(const struct wml_samples *s)
{
    return !s->spec.data;
}

static bool has_all(const struct wml_samples *s, const struct wml_npys *arrays)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (!wml_npys_find(arrays, wml_str(s->input[i].name))) return false;
    return true;
}

/* Labels and the like beside the inputs are left out, and told of once. Where an input is missing, all names are shown. */
static void keep_inputs(struct wml_samples *s, struct wml_npys *views)
{
    struct wml_buf extra = {0};
    size_t n = 0;
    if (!has_all(s, views)) return;
    for (size_t i = 0; i < views->v.len; i++) {
        if (find_input(s, views->v.at[i].name)) views->v.at[n++] = views->v.at[i];
        else wml_buf_fmt(&extra, "%s'%.*s'", extra.len ? ", " : "", WML_ARG(views->v.at[i].name));
    }
    views->v.len = n;
    if (extra.len && s->spec.cx && !atomic_exchange(&s->told, true))
        wml_log(s->spec.cx, WML_LOG_WARN, "%s: no inputs of the model, left out: %.300s", s->spec.data, wml_buf_text(&extra));
    wml_buf_release(&extra);
}

/* Array a of sample i: a view into the file's array. */
static struct wml_npy cut(const struct wml_samples *s, size_t a, size_t i)
{
    struct wml_npy v = s->arrays.v.at[a];
    if (s->step[a] < 0) return v;
    int64_t rows = s->step[a] ? s->step[a] : 1;
    size_t bytes = v.data.len / (size_t)v.dim[0] * (size_t)rows;
    v.data = (struct wml_span){v.data.ptr + bytes * i, bytes};
    if (s->step[a]) v.dim[0] = rows;
    else memmove(v.dim, v.dim + 1, --v.rank * sizeof *v.dim);
    return v;
}

static uint64_t bytes_of(const struct wml_npys *a)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < a->v.len; i++) bytes += a->v.at[i].data.len;
    return bytes;
}

/* The arrays of a file: those that are kept, or *own, which the caller releases. */
static bool read_file(struct wml_samples *s, struct file *f, struct wml_npys *own, const struct wml_npys **out, struct wml_err *err)
{
    wml_mutex_lock(s->lock);
    bool found = f->is_kept;
    wml_mutex_unlock(s->lock);
    *out = found ? &f->arrays : own;
    if (found) return true;
    if (!wml_npy_load(f->path, own, err)) return wml_hint(err, "numpy.savez writes such files; take out what is none");
    wml_mutex_lock(s->lock);
    uint64_t bytes = bytes_of(own);
    if (!f->is_kept && s->bytes + bytes <= WML_SAMPLES_KEEP) {
        s->bytes += bytes;
        f->arrays = *own;
        f->is_kept = true;
        *own = (struct wml_npys){0};
        *out = &f->arrays;
    }
    wml_mutex_unlock(s->lock);
    return true;
}

bool wml_samples_make(struct wml_samples *s, size_t i, struct wml_feed *out, struct wml_err *err)
{
    struct wml_feed_spec feed = s->spec.feed;
    struct wml_npys own = {0}, views = {0};
    const struct wml_npys *arrays = &own;
    bool ok = true;
    feed.seed += i;
    if (s->pictures) return wml_pictures_make(s->pictures, i, s->input, s->n_inputs, out, err);
    if (s->texts) return wml_texts_make(s->texts, i, s->input, s->n_inputs, &feed, out, err);
    if (!s->spec.data) return wml_feed_make(s->input, s->n_inputs, &feed, out, err);
    if (s->file.len) ok = read_file(s, &s->file.at[i], &own, &arrays, err);
    for (size_t a = 0; ok && s->file.len && a < arrays->v.len; a++) WML_PUSH(&views.v, arrays->v.at[a]);
    for (size_t a = 0; !s->file.len && a < s->arrays.v.len; a++) WML_PUSH(&views.v, cut(s, a, i));
    if (ok) keep_inputs(s, &views);
    ok = ok && wml_feed_arrays(s->input, s->n_inputs, &views, s->file.len ? s->file.at[i].path : s->spec.data, out, err);
    WML_VEC_RELEASE(&views.v);
    wml_npys_release(&own);
    return ok;
}
