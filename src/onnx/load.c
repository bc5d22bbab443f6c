/* onnx/load.c - a file to a linked model. The file is mapped and decoded in place; nothing of the weights
 * is read. Damage is named by byte and message path, files of another kind by what they are. */
#include "onnx/onnx.h"

#include "base/magic.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/files.h"
#include "onnx/pb.h"
#include "os/path.h"

enum { LOCATION_EXTERNAL = 1 };

static bool settle(void *arg, struct wml_tensor *t)
{
    (void)arg;
    bool lists = t->float_data.ptr || t->int32_data.ptr || t->int64_data.ptr || t->uint64_data.ptr || t->double_data.ptr;
    t->payload = t->location == LOCATION_EXTERNAL ? WML_PAYLOAD_EXTERNAL
               : t->raw.ptr || lists ? WML_PAYLOAD_BORROWED : WML_PAYLOAD_NONE;
    return true;
}

/* What failed to decode may be a file of another kind. Only then: these have magic bytes, ONNX has none, and a
 * model may by chance begin with any of them. */
static bool not_onnx(struct wml_span bytes, struct wml_err *err)
{
    const struct wml_magic *other = wml_magic(bytes);
    if (!other) return false;
    *err = (struct wml_err){0};
    wml_fail(err, WML_E_FORMAT, "this is %s, not an ONNX model", other->what);
    wml_hint(err, "%s", other->todo ? other->todo : "give an ONNX model, a file whose name ends in .onnx as a rule");
    return true;
}

static bool decode(struct wml_model *m, struct wml_span bytes, struct wml_err *err)
{
    if (!bytes.len) {
        wml_fail(err, WML_E_FORMAT, "the file is empty (0 bytes)");
        return wml_hint(err, "the download or the export was cut: make the file again");
    }
    if (!wml_pb_decode(&m->arena, &wml_pb_model, m, bytes, err)) {
        if (not_onnx(bytes, err)) return false;
        return wml_hint(err, "the file is damaged or cut, or no ONNX model: fetch or export it again");
    }
    if (!m->graph) {
        if (not_onnx(bytes, err)) return false;
        wml_fail(err, WML_E_FORMAT, "byte %zu: the file ends without a graph", bytes.len);
        return wml_hint(err, "the file is cut, or no ONNX model");
    }
    if (!wml_model_link(m, err)) return false;
    return wml_model_each_tensor(m, settle, NULL);
}

static struct wml_model *blank(void)
{
    struct wml_model *m = wml_model_new();
    m->graph = NULL;
    m->ir_version = 0;
    m->msg = (struct wml_msg){0};
    return m;
}

bool wml_onnx_load_bytes(struct wml_span bytes, const char *folder, struct wml_model **out,
                         struct wml_err *err)
{
    struct wml_model *m = blank();
    struct wml_source memory = {.bytes = bytes};
    wml_model_add_source(m, &memory);
    if (folder) {
        m->store->folder = wml_arena_str(&m->arena, wml_str(folder));
        m->store->open = wml_onnx_open_external;
    }
    bool ok = decode(m, bytes, err);
    if (!ok) wml_model_free(m);
    *out = ok ? m : NULL;
    return ok;
}

bool wml_onnx_load(const char *path, struct wml_model **out, struct wml_err *err)
{
    struct wml_source file = {0};
    *out = NULL;
    if (!wml_onnx_map(path, &file, err)) return wml_wrap(err, "read the model");
    struct wml_model *m = blank();
    file.path = wml_arena_str(&m->arena, wml_str(path));
    m->store->path = file.path;
    m->store->folder = wml_arena_str(&m->arena, wml_path_dir(file.path));
    m->store->open = wml_onnx_open_external;
    wml_model_add_source(m, &file);
    if (!decode(m, file.bytes, err)) {
        wml_model_free(m);
        wml_model_hint_invalid(err);
        return wml_wrap(err, "%s", path);
    }
    *out = m;
    return true;
}

void wml_onnx_take_place(struct wml_model *m, const struct wml_model *of)
{
    m->store->path = wml_arena_str(&m->arena, of->store->path);
    m->store->folder = wml_arena_str(&m->arena, of->store->folder);
    m->store->open = wml_onnx_open_external;
}
