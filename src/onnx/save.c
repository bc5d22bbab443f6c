/* onnx/save.c - a model to files. Sizes are measured first, then everything is streamed: weights go from
 * the mapped source to the output in the kernel, DERIVED ones chunk by chunk. Tensors that move to the
 * sidecar are replaced by stand-ins while the protobuf is written; the model itself does not change. */
#include "onnx/onnx.h"

#include <inttypes.h>

#include "base/ctx.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "onnx/pb.h"
#include "onnx/stand_in.h"
#include "os/file.h"
#include "os/path.h"

static const uint64_t DEFAULT_LIMIT = UINT64_C(100) << 20, PROTO_MAX = INT32_MAX;
enum { DEFAULT_MIN = 1024, BIG = 1 << 20, ALIGN_BIG = 4096, ALIGN_SMALL = 64, STEP = 16 << 20, MB = 1000000 };

struct saver {
    struct wml_model *m;
    const char *path;
    struct wml_onnx_save_opts o;
    struct wml_onnx_saved saved;
    struct wml_stand_ins stand_ins;
    WML_VEC(struct wml_tensor *) moved; /* to the sidecar, in file order */
    struct wml_out model, data;
    uint64_t weights; /* bytes of tensors that could move */
    uint64_t room;    /* of the sidecar */
    uint64_t told;    /* bytes that were written when progress was last noted */
    bool has_external, same_folder;
};

/* --- sinks --- */

struct out_sink {
    struct saver *s;
    struct wml_out *out;
};

static bool note_written(struct saver *s, struct wml_err *err)
{
    uint64_t written = s->data.offset + s->model.offset;
    if (written - s->told < BIG) return true;
    s->told = written;
    wml_note_progress(s->o.cx, "Saving", wml_path_name(wml_str(s->path)).ptr, written / MB, (s->room + s->saved.model_bytes) / MB, "MB");
    return wml_check_cancel(s->o.cx, err);
}

/* Large ones in steps: a copy in the kernel would neither tell how far it is nor end before its end. */
static bool write_bytes(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct out_sink *to = arg;
    struct wml_span span = {bytes, n};
    const struct wml_source *from = n >= BIG ? wml_model_source_of(to->s->m, span) : NULL;
    intptr_t file = from ? from->file : 0;
    for (size_t at = 0, step; at < n; at += step) {
        step = WML_MIN(n - at, (size_t)STEP);
        bool ok = file ? wml_out_copy(to->out, file, (uint64_t)(span.ptr + at - from->bytes.ptr), step, err)
                       : wml_out_write(to->out, span.ptr + at, step, err);
        if (!ok || !note_written(to->s, err)) return false;
    }
    return true;
}

/* What a tensor was made of is hardly needed again; the memory would fill up with it. */
static void drop_sources(void *arg, const struct wml_tensor *t)
{
    const struct out_sink *to = arg;
    struct wml_span bytes;
    if (t->derived->source && wml_tensor_peek(t->derived->source, &bytes)) wml_model_drop(to->s->m, bytes);
}

static bool add_bytes(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct wml_buf *b = arg;
    wml_buf_add(b, bytes, n);
    return !b->failed || wml_fail(err, WML_E_MEMORY, "the model does not fit into memory");
}

/* --- which tensors go where --- */

static uint64_t size_of(const struct wml_tensor *t)
{
    uint64_t n = 0;
    return t->dtype != WML_STRING && wml_tensor_size(t, &n, NULL) ? n : 0;
}

static bool survey(void *arg, struct wml_graph *g)
{
    struct saver *s = arg;
    for (size_t i = 0; i < g->initializer.len; i++) {
        const struct wml_tensor *t = g->initializer.at[i];
        uint64_t n = size_of(t);
        if (n >= s->o.min_tensor) s->weights += n;
        s->has_external = s->has_external || t->payload == WML_PAYLOAD_EXTERNAL;
    }
    return true;
}

/* A tensor that is left where it is: the output refers to the source file. */
static bool refer(struct saver *s, struct wml_tensor *t, bool *done, struct wml_err *err)
{
    struct wml_span bytes;
    *done = false;
    if (t->payload == WML_PAYLOAD_DERIVED && !t->view.ptr) return true;
    if (!wml_tensor_bytes(s->m, t, &bytes, err)) return false;
    const struct wml_source *from = wml_model_source_of(s->m, bytes);
    if (!from || !from->path.len) return true;
    struct wml_buf file = {0}, dir = {0}, relative = {0};
    bool ok = wml_path_absolute(&file, from->path, err) && wml_path_absolute(&dir, wml_path_dir(wml_str(s->path)), err);
    if (ok) {
        wml_path_relative(&relative, wml_buf_view(&file), wml_buf_view(&dir));
        if (wml_path_is_inside(wml_buf_view(&relative)) && !wml_file_same(wml_buf_text(&file), s->path)) {
            wml_stand_in_add(&s->stand_ins, t, wml_buf_view(&relative),
                             (uint64_t)(bytes.ptr - from->bytes.ptr), bytes.len);
            s->saved.n_referenced++;
            *done = true;
        }
    }
    wml_buf_release(&file);
    wml_buf_release(&dir);
    wml_buf_release(&relative);
    return ok;
}

/* An external tensor comes inline: its bytes stand in for the reference. */
static bool bring_in(struct saver *s, struct wml_tensor *t, struct wml_err *err)
{
    struct wml_span bytes;
    if (!wml_tensor_bytes(s->m, t, &bytes, err)) return false;
    wml_stand_in_inline(&s->stand_ins, t, bytes);
    return true;
}

struct placing {
    struct saver *s;
    struct wml_err *err;
    bool move; /* tensors of min_tensor and more go to the sidecar */
};

static bool place(struct placing *p, struct wml_tensor *t)
{
    struct saver *s = p->s;
    bool external = t->payload == WML_PAYLOAD_EXTERNAL, done = false;
    uint64_t n = size_of(t);
    if (external && s->o.external == WML_EXTERNAL_KEEP && s->same_folder) {
        s->saved.n_referenced++;
        return true;
    }
    if (s->o.weights == WML_WEIGHTS_REFERENCE && n >= s->o.min_tensor) {
        if (!refer(s, t, &done, p->err)) return false;
        if (done) return true;
    }
    if ((p->move && n >= s->o.min_tensor) || (external && s->o.external == WML_EXTERNAL_KEEP && n)) {
        WML_PUSH(&s->moved, t);
        return true;
    }
    return !external || bring_in(s, t, p->err);
}

static bool place_graph(void *arg, struct wml_graph *g)
{
    struct placing *p = arg;
    for (size_t i = 0; i < g->initializer.len; i++)
        if (!place(p, g->initializer.at[i])) return false;
    return true;
}

/* Tensors outside initializers (attributes, sparse, functions) that refer to files come inline. */
static bool place_other(void *arg, struct wml_tensor *t)
{
    struct placing *p = arg;
    if (t->value || t->payload != WML_PAYLOAD_EXTERNAL || t->stand_in) return true;
    if (p->s->o.external == WML_EXTERNAL_KEEP && p->s->same_folder) return true;
    return bring_in(p->s, t, p->err);
}

static void number_moved(struct saver *s)
{
    uint64_t at = 0;
    for (size_t i = 0; i < s->moved.len; i++) {
        struct wml_tensor *t = s->moved.at[i];
        uint64_t n = size_of(t), align = n >= BIG ? ALIGN_BIG : ALIGN_SMALL;
        at = (at + align - 1) / align * align;
        wml_stand_in_add(&s->stand_ins, t, wml_str(s->saved.data_name), at, n);
        at += n;
    }
    s->room = at;
    s->saved.n_external = s->moved.len;
    if (!s->moved.len) s->saved.data_name[0] = 0;
}

static bool decide(struct saver *s, bool move, struct wml_err *err)
{
    struct placing p = {s, err, move};
    s->moved.len = 0;
    s->saved.n_referenced = 0;
    wml_stand_ins_clear(&s->stand_ins);
    snprintf(s->saved.data_name, sizeof s->saved.data_name, "%s", s->o.data_name);
    if (!wml_model_each_graph(s->m, place_graph, &p) || !wml_model_each_tensor(s->m, place_other, &p)) return false;
    number_moved(s);
    return true;
}

/* --- writing --- */

static bool write_tensor(struct saver *s, struct wml_tensor *t, struct wml_err *err)
{
    struct out_sink sink = {s, &s->data};
    struct wml_span bytes;
    uint64_t n = size_of(t), align = n >= BIG ? ALIGN_BIG : ALIGN_SMALL;
    if (!wml_out_pad(&s->data, (s->data.offset + align - 1) / align * align, err)) return false;
    if (t->payload == WML_PAYLOAD_DERIVED && !t->view.ptr) {
        if (!wml_tensor_open_sources(s->m, t, err) || !wml_tensor_produce(t, write_bytes, &sink, err)) return false;
        drop_sources(&sink, t);
        return true;
    }
    return wml_tensor_bytes(s->m, t, &bytes, err) && write_bytes(&sink, bytes.ptr, bytes.len, err);
}

static bool write_data(struct saver *s, struct wml_err *err)
{
    struct wml_buf path = {0};
    if (!s->moved.len) return true;
    wml_path_join(&path, wml_path_dir(wml_str(s->path)), wml_str(s->saved.data_name));
    bool ok = wml_out_open(&s->data, wml_buf_text(&path), err) && wml_out_reserve(&s->data, s->room, err);
    for (size_t i = 0; ok && i < s->moved.len; i++) ok = write_tensor(s, s->moved.at[i], err);
    s->saved.data_bytes = s->data.offset;
    wml_buf_release(&path);
    return ok && wml_out_finish(&s->data, err);
}

/* Sources of DERIVED tensors that are written inline must be at hand. */
static bool open_source(void *arg, struct wml_tensor *t)
{
    struct placing *p = arg;
    return wml_tensor_open_sources(p->s->m, t, p->err);
}

static bool write_model(struct saver *s, struct wml_err *err)
{
    struct out_sink out = {s, &s->model};
    struct wml_sink sink = {&out, write_bytes, drop_sources};
    struct placing p = {s, err, false};
    return wml_model_each_tensor(s->m, open_source, &p) && wml_out_open(&s->model, s->path, err) &&
           wml_out_reserve(&s->model, s->saved.model_bytes, err) && wml_pb_encode(&wml_pb_model, s->m, &sink, err) &&
           wml_out_finish(&s->model, err);
}

/* Before anything is written. */
static bool measure(struct saver *s, struct wml_err *err)
{
    uint64_t size = s->saved.model_bytes = wml_pb_measure(&wml_pb_model, s->m);
    if (size <= PROTO_MAX) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "the model would be a protobuf of %" PRIu64 " bytes: the limit is 2 GiB", size);
    return wml_hint(err, "let the weights go to a data file beside it");
}

static bool start(struct saver *s, const char *default_data, struct wml_err *err)
{
    struct wml_buf a = {0}, b = {0};
    struct wml_err ignored = {0};
    if (!s->o.limit) s->o.limit = DEFAULT_LIMIT;
    if (!s->o.min_tensor) s->o.min_tensor = DEFAULT_MIN;
    if (!s->o.data_name) s->o.data_name = default_data;
    if (strlen(s->o.data_name) >= sizeof s->saved.data_name)
        return wml_fail(err, WML_E_USAGE, "the name of the data file is too long");
    s->same_folder = s->m->store->folder.ptr && wml_path_absolute(&a, s->m->store->folder, &ignored) &&
                     wml_path_absolute(&b, wml_path_dir(wml_str(s->path)), &ignored) &&
                     wml_str_eq(wml_buf_view(&a), wml_buf_view(&b));
    wml_buf_release(&a);
    wml_buf_release(&b);
    wml_model_sync(s->m);
    return wml_model_each_graph(s->m, survey, s);
}

/* The data file appears first: a model under its final name always finds its data. An old sidecar that is
 * no longer named stays: it may belong to others. */
static bool commit(struct saver *s, struct wml_err *err)
{
    return (!s->moved.len || wml_out_commit(&s->data, err)) && wml_out_commit(&s->model, err);
}

bool wml_onnx_save(struct wml_model *m, const char *path, const struct wml_onnx_save_opts *opts,
                   struct wml_onnx_saved *saved, struct wml_err *err)
{
    struct saver s = {.m = m, .path = path, .o = opts ? *opts : (struct wml_onnx_save_opts){0}};
    struct wml_buf data_name = {0};
    bool ok = false;
    wml_buf_fmt(&data_name, "%.*s.data", WML_ARG(wml_path_name(wml_str(path))));
    if (!start(&s, wml_buf_text(&data_name), err)) goto done;
    bool move = s.o.external == WML_EXTERNAL_ALWAYS ||
                (s.o.external == WML_EXTERNAL_AUTO && (s.has_external || s.weights >= s.o.limit));
    if (!decide(&s, move, err)) goto done;
    if (!move && s.o.external == WML_EXTERNAL_AUTO && wml_pb_measure(&wml_pb_model, m) > PROTO_MAX &&
        !decide(&s, true, err))
        goto done;
    if (!measure(&s, err) || !write_data(&s, err) || !write_model(&s, err) || !commit(&s, err)) goto done;
    if (saved) *saved = s.saved;
    ok = true;
done:
    wml_stand_ins_release(&s.stand_ins);
    wml_out_release(&s.model);
    wml_out_release(&s.data);
    WML_VEC_RELEASE(&s.moved);
    wml_buf_release(&data_name);
    return ok || wml_wrap(err, "write %s", path);
}

bool wml_onnx_encode(struct wml_model *m, struct wml_buf *out, struct wml_err *err)
{
    struct wml_sink sink = {.arg = out, .write = add_bytes};
    struct saver s = {.m = m};
    struct placing p = {&s, err, false};
    wml_model_sync(m);
    if (!wml_model_each_tensor(m, open_source, &p)) return false;
    if (wml_pb_measure(&wml_pb_model, m) > PROTO_MAX)
        return wml_fail(err, WML_E_UNSUPPORTED, "the model is larger than 2 GiB");
    if (!out->max) out->max = (size_t)PROTO_MAX + 4096;
    return wml_pb_encode(&wml_pb_model, m, &sink, err);
}
