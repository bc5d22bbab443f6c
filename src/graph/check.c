/* graph/check.c - what loading tolerates but no runtime accepts, named by node and index. */
#include <inttypes.h>

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/parts.h"

enum { HAS_IR = 1u << 1, HAS_OPSET_VERSION = 1u << 2 };

struct checker {
    struct wml_err *err;
};

/* The members that a typed attribute needs; lists may be empty. */
static bool attr_is_whole(const struct wml_attr *a)
{
    switch (wml_attr_kind(a)) {
    case WML_ATTR_TENSOR: return a->t != NULL;
    case WML_ATTR_GRAPH: return a->g != NULL;
    case WML_ATTR_SPARSE: return a->sparse != NULL;
    case WML_ATTR_TYPE: return a->tp != NULL;
    case WML_ATTR_UNDEFINED: return a->ref.len != 0;
    default: return true;
    }
}

static bool check_node(void *arg, struct wml_node *n)
{
    struct checker *c = arg;
    if (!n->op_type.len) return wml_fail(c->err, WML_E_FORMAT, "%s has no op_type", wml_node_label(n));
    for (size_t i = 0; i < n->attr.len; i++) {
        const struct wml_attr *a = n->attr.at[i];
        if (!a->ref.len && !attr_is_whole(a))
            return wml_fail(c->err, WML_E_FORMAT, "%s: attribute '%.*s' says %s and holds none", wml_node_label(n),
                            WML_ARG(a->name), wml_attr_type_name(a->type));
        for (size_t k = 0; k < i; k++)
            if (wml_str_eq(n->attr.at[k]->name, a->name))
                return wml_fail(c->err, WML_E_FORMAT, "%s: attribute '%.*s' is there twice", wml_node_label(n),
                                WML_ARG(a->name));
    }
    return true;
}

/* Sizes that can be told without opening a file or decoding varints. */
static bool check_tensor(void *arg, struct wml_tensor *t)
{
    struct checker *c = arg;
    uint64_t want = 0, n = 0;
    if (!wml_tensor_count(t, &n, c->err)) return false;
    if (t->dtype == WML_UNDEFINED || t->dtype >= WML_DTYPE_COUNT)
        return wml_fail(c->err, WML_E_FORMAT, "tensor '%.*s': element type %d is not known", WML_ARG(t->name), t->dtype);
    if (t->dtype == WML_STRING) {
        if (t->string_data.len == n) return true;
        return wml_fail(c->err, WML_E_FORMAT, "tensor '%.*s': %zu strings, its dimensions need %" PRIu64, WML_ARG(t->name),
                        t->string_data.len, n);
    }
    if (!wml_tensor_size(t, &want, c->err)) return false;
    bool raw = t->payload == WML_PAYLOAD_BORROWED || t->payload == WML_PAYLOAD_OWNED;
    if (raw && t->raw.ptr && t->raw.len != want)
        return wml_fail(c->err, WML_E_FORMAT, "tensor '%.*s': %zu bytes of data, its dimensions need %" PRIu64,
                        WML_ARG(t->name), t->raw.len, want);
    return true;
}

static bool check(struct wml_model *m, struct wml_err *err)
{
    struct checker c = {err};
    if (!(m->msg.has & HAS_IR)) {
        wml_fail(err, WML_E_FORMAT, "the field ir_version is missing");
        return wml_hint(err, "the exporter left it out: export the model again");
    }
    bool functions_only = m->opset.len == 0;
    if (functions_only) {
        wml_fail(err, WML_E_FORMAT, "the field opset_import is missing: no operator set is named");
        return wml_hint(err, "the exporter left it out: export the model again");
    }
    for (size_t i = 0; i < m->opset.len; i++)
        if (!(m->opset.at[i].msg.has & HAS_OPSET_VERSION))
            return wml_fail(err, WML_E_FORMAT, "opset_import %zu ('%.*s') has no version", i, WML_ARG(m->opset.at[i].domain));
    return wml_graph_walk(m->graph, check_node, &c) && wml_model_each_tensor(m, check_tensor, &c);
}

void wml_model_hint_invalid(struct wml_err *err)
{
    if (err && err->code == WML_E_FORMAT && !err->hint[0])
        wml_hint(err, "the file breaks the rules of ONNX: export it again, or mend it with the tool that wrote it");
}

bool wml_model_check(struct wml_model *m, struct wml_err *err)
{
    if (check(m, err)) return true;
    wml_model_hint_invalid(err);
    return false;
}

bool wml_model_check_versions(const struct wml_model *m, int64_t max_ir, int64_t max_opset, struct wml_err *err)
{
    int64_t opset = wml_model_opset(m, "");
    if (m->ir_version > max_ir) {
        wml_fail(err, WML_E_UNSUPPORTED, "the model has IR version %" PRId64 ", the highest supported is %" PRId64,
                 m->ir_version, max_ir);
        return wml_hint(err, "export it for an older IR, or use a newer ONNX Runtime");
    }
    if (opset > max_opset) {
        wml_fail(err, WML_E_UNSUPPORTED, "the model has opset %" PRId64 ", the highest supported is %" PRId64, opset,
                 max_opset);
        return wml_hint(err, "export it for an older opset, or use a newer ONNX Runtime");
    }
    return true;
}
