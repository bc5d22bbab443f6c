/* Types of values and values of constants, asked of ONNX Runtime over skeletons. */
#include "flow/oracle.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

/* ORT's time grows with the square of the number of outputs: 3 s at this number. */
enum { ASK_MAX = 25000 };

/* The source that a skeleton is for ORT. */
static struct wml_model_source source_of(const struct wml_buf *skeleton, struct wml_str folder, struct wml_buf *dir)
{
    wml_buf_str(dir, folder);
    return (struct wml_model_source){.bytes = {(const unsigned char *)skeleton->ptr, skeleton->len},
                                     .folder = folder.ptr ? wml_buf_text(dir) : NULL};
}

static struct wml_type *type_from(struct wml_model *m, const struct wml_io *io)
{
    struct wml_axis *axis = WML_NEW_ARRAY(&m->arena, struct wml_axis, io->rank + 1);
    for (size_t i = 0; i < io->rank; i++)
        axis[i] = (struct wml_axis){io->dim[i], io->symbol && io->symbol[i] ? wml_str(io->symbol[i]) : WML_NO_STR};
    struct wml_type *t = io->dtype == WML_UNDEFINED ? NULL : wml_type_tensor(m, io->dtype, io->has_shape ? (int64_t)io->rank : -1, axis);
    if (io->kind == WML_IO_TENSOR) return t;
    if (io->kind == WML_IO_SEQUENCE && io->elem_is_tensor && t) return wml_type_sequence(m, t);
    if (io->kind == WML_IO_OPTIONAL && io->elem_is_tensor && t) return wml_type_optional(m, t);
    return NULL;
}

struct asked {
    WML_VEC(struct wml_value *) v;
};

static size_t known_axes(const struct wml_type *t)
{
    int64_t rank = wml_type_rank(t);
    size_t n = 0;
    for (int64_t i = 0; i < rank; i++) n += wml_type_axis(t, (size_t)i).size >= 0;
    return n;
}

/* A type that says more than the one there is. Types without a shape say too little to be written down. */
static bool is_better(const struct wml_type *found, const struct wml_value *v)
{
    if (!found || (found->tensor && wml_type_rank(found) < 0)) return false;
    return !v->type || (!v->n_outputs && found->tensor && v->type->tensor && known_axes(found) > known_axes(v->type));
}

static void set_types(struct wml_model *m, const struct asked *u, const struct wml_oracle_type *type, size_t n,
                      size_t *n_set)
{
    struct wml_map by_name = {0};
    for (size_t i = 0; i < n; i++) wml_map_put(&by_name, wml_str(type[i].io.name), (void *)(uintptr_t)&type[i]);
    for (size_t i = 0; i < u->v.len; i++) {
        const struct wml_oracle_type *t = wml_map_get(&by_name, u->v.at[i]->name);
        struct wml_type *found = t ? type_from(m, &t->io) : NULL;
        if (!is_better(found, u->v.at[i])) continue;
        wml_value_set_type(u->v.at[i], found);
        ++*n_set;
    }
    wml_map_release(&by_name);
}

/* Values whose type is missing or leaves sizes open. */
static void find_open(struct wml_model *m, struct asked *u)
{
    for (struct wml_value *v = m->graph->first_value; v; v = v->next) {
        bool open = !v->type || (v->type->tensor && !v->n_outputs && !wml_type_is_static(v->type));
        if (v->def && open) WML_PUSH(&u->v, v);
    }
}

static bool infer_types(void *arg, struct wml_model *m, size_t *n_set, struct wml_err *err)
{
    struct wml_flow_oracle *o = arg;
    struct asked u = {0};
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_arena answers = {0};
    struct wml_oracle_type *type = NULL;
    struct wml_ort *ort;
    size_t n = 0;
    bool ok = true;
    find_open(m, &u);
    /* The same question about the same graph has the same answer. */
    if (!u.v.len || (u.v.len == o->open && m->graph->n_nodes == o->nodes)) goto done;
    if (u.v.len > ASK_MAX) {
        ok = wml_fail(err, WML_E_UNSUPPORTED, "%zu values are open, and asking about more than %d takes minutes", u.v.len, ASK_MAX);
        goto done;
    }
    struct wml_skeleton_opts opts = {.also = u.v.at, .n_also = u.v.len, .types_only = true};
    ok = wml_ort_open(o->cx, &ort, err) && wml_onnx_skeleton(m, &opts, &skeleton, &folder, err);
    if (ok) {
        struct wml_model_source s = source_of(&skeleton, folder, &dir);
        o->sessions++;
        ok = wml_oracle_types(ort, &s, &answers, &type, &n, err);
    }
    if (ok) {
        set_types(m, &u, type, n, n_set);
        u.v.len = 0;
        find_open(m, &u);
        o->open = u.v.len;
        o->nodes = m->graph->n_nodes;
    }
done:
    wml_arena_release(&answers);
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    WML_VEC_RELEASE(&u.v);
    return ok;
}

static bool evaluate(void *arg, struct wml_model *m, struct wml_value *const *v, size_t n, struct wml_tensor **out,
                     struct wml_err *err)
{
    struct wml_flow_oracle *o = arg;
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_oracle_values values = {0};
    struct wml_ort *ort;
    struct wml_skeleton_opts opts = {.only = v, .n_only = n};
    bool ok = wml_ort_open(o->cx, &ort, err) && wml_onnx_skeleton(m, &opts, &skeleton, &folder, err);
    if (ok) {
        struct wml_model_source s = source_of(&skeleton, folder, &dir);
        o->sessions++;
        ok = wml_oracle_eval(ort, &s, &values, err);
    }
    for (size_t i = 0; ok && i < n; i++) {
        const struct wml_oracle_value *a = i < values.v.len ? &values.v.at[i] : NULL;
        out[i] = NULL;
        if (!a || !a->is_tensor) continue;
        out[i] = wml_tensor_copy(m, a->dtype, a->rank, a->dim, a->data, a->bytes, err);
        ok = out[i] != NULL;
    }
    wml_oracle_values_release(&values);
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    return ok;
}

/* Ranges of the source file that ORT handed back become plain weights again, still unread. */
static bool settle(void *arg, struct wml_tensor *t)
{
    struct wml_model *m = arg;
    struct wml_span bytes;
    if (t->payload != WML_PAYLOAD_EXTERNAL) return true;
    if (!wml_tensor_bytes(m, t, &bytes, NULL)) return false;
    wml_tensor_make_raw(t, bytes);
    return true;
}

static bool ort_optimise(void *arg, struct wml_model *m, bool extended, const char *disable, struct wml_model **out,
                         struct wml_err *err)
{
    struct wml_flow_oracle *o = arg;
    struct wml_buf skeleton = {0}, dir = {0}, temp = {0}, path = {0}, bytes = {0};
    struct wml_str folder;
    struct wml_ort *ort;
    bool ok = wml_ort_open(o->cx, &ort, err) && wml_onnx_skeleton(m, NULL, &skeleton, &folder, err) &&
              wml_dir_temp(NULL, "winml-ort-", &temp, err);
    if (ok) {
        struct wml_model_source s = source_of(&skeleton, folder, &dir);
        wml_path_join(&path, wml_buf_view(&temp), WML_STR("optimised.onnx"));
        o->sessions++;
        ok = wml_oracle_optimise(ort, &s, extended ? WML_LEVEL_EXTENDED : WML_LEVEL_BASIC, disable, wml_buf_text(&path), err) &&
             wml_file_read(wml_buf_text(&path), UINT64_C(1) << 31, &bytes, err);
    }
    if (ok) ok = wml_onnx_load_bytes((struct wml_span){(const unsigned char *)bytes.ptr, bytes.len}, dir.len ? wml_buf_text(&dir) : NULL, out, err);
    if (ok) {
        wml_model_own(*out, bytes.ptr);
        bytes = (struct wml_buf){0};
        wml_onnx_take_place(*out, m);
        ok = wml_model_each_tensor(*out, settle, *out) || wml_fail(err, WML_E_IO, "the weights of the source cannot be found again");
        if (!ok) wml_model_free(*out);
    }
    if (temp.len) wml_dir_remove(wml_buf_text(&temp));
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    wml_buf_release(&temp);
    wml_buf_release(&path);
    wml_buf_release(&bytes);
    return ok;
}

struct wml_env wml_flow_env(struct wml_flow_oracle *o)
{
    return (struct wml_env){.arg = o, .infer_types = infer_types, .evaluate = evaluate, .ort_optimise = ort_optimise};
}

bool wml_flow_session(struct wml_ctx *cx, struct wml_model *m, const struct wml_session_opts *opts,
                      struct wml_session **out, struct wml_err *err)
{
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_ort *ort;
    bool ok = wml_ort_open(cx, &ort, err) && wml_onnx_skeleton(m, NULL, &skeleton, &folder, err);
    if (ok) {
        struct wml_model_source s = source_of(&skeleton, folder, &dir);
        ok = wml_session_open(ort, &s, opts, out, err);
    }
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    return ok;
}
