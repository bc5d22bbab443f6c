/* Values of constants and optimised graphs, asked of ONNX Runtime over skeletons. */
#include "flow/oracle/internal.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

struct wml_model_source wml_flow_source(const struct wml_buf *skeleton, struct wml_str folder, struct wml_buf *dir)
{
    wml_buf_str(dir, folder);
    return (struct wml_model_source){.bytes = {(const unsigned char *)skeleton->ptr, skeleton->len},
                                     .folder = folder.ptr ? wml_buf_text(dir) : NULL};
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
        struct wml_model_source s = wml_flow_source(&skeleton, folder, &dir);
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
        struct wml_model_source s = wml_flow_source(&skeleton, folder, &dir);
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

/* At the basic level ONNX Runtime computes the shapes it can and looks at the operators again. A fault inside a further
 * graph is none of this one: that graph may never be entered. */
static bool cannot_run(void *arg, struct wml_model *m, struct wml_graph *g, struct wml_value *const *given, size_t n_given)
{
    struct wml_flow_oracle *o = arg;
    struct wml_session *session = NULL;
    struct wml_err err = {0};
    struct wml_skeleton_opts part = {.only = g->outputs.at, .n_only = g->outputs.len, .given = given, .n_given = n_given, .drop_value_info = true};
    struct wml_session_opts level = {.level = WML_LEVEL_BASIC};
    if (!g->outputs.len) return false;
    o->sessions++;
    bool no = !wml_flow_session(o->cx, m, &part, &level, &session, &err);
    struct wml_str said = wml_str(err.msg);
    wml_session_close(session);
    return no && (wml_str_has(said, "[ShapeInferenceError]") || wml_str_has(said, "[TypeInferenceError]")) &&
           !wml_str_has(said, "Graph attribute inferencing failed");
}

struct wml_env wml_flow_env(struct wml_flow_oracle *o)
{
    return (struct wml_env){.arg = o, .infer_types = wml_flow_infer_types, .evaluate = evaluate, .ort_optimise = ort_optimise, .cannot_run = cannot_run};
}

bool wml_flow_session(struct wml_ctx *cx, struct wml_model *m, const struct wml_skeleton_opts *part,
                      const struct wml_session_opts *opts, struct wml_session **out, struct wml_err *err)
{
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_ort *ort;
    bool ok = wml_ort_open(cx, &ort, err) && wml_onnx_skeleton(m, part, &skeleton, &folder, err);
    wml_model_drop_all(m); /* what DERIVED weights were made of, was read for them; ONNX Runtime maps the files itself */
    if (ok) {
        struct wml_model_source s = wml_flow_source(&skeleton, folder, &dir);
        ok = wml_session_open(ort, &s, opts, out, err);
    }
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    return ok;
}
