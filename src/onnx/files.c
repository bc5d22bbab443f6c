/* onnx/files.c - the files a model borrows from. */
#include "onnx/files.h"

#include "os/map.h"
#include "os/path.h"

static void close_map(void *handle)
{
    wml_map_close(handle);
    free(handle);
}

bool wml_onnx_map(const char *path, struct wml_source *out, struct wml_err *err)
{
    struct wml_map_file *map = wml_xcalloc(1, sizeof *map);
    if (!wml_map_open(path, map, err)) {
        free(map);
        return false;
    }
    *out = (struct wml_source){.bytes = map->bytes, .file = map->file, .handle = map, .close = close_map, .drop = wml_map_drop};
    return true;
}

bool wml_onnx_open_external(struct wml_model *m, struct wml_str location, struct wml_source *out,
                            struct wml_err *err)
{
    struct wml_buf path = {0};
    if (!wml_path_is_inside(location)) {
        wml_fail(err, WML_E_FORMAT, "external data '%.*s' is absolute or leaves the model's folder: refused",
                 WML_ARG(location));
        return wml_hint(err, "put the data file beside the model and name it by its file name");
    }
    wml_path_join(&path, m->store->folder, location);
    bool ok = wml_onnx_map(wml_buf_text(&path), out, err);
    if (ok) out->path = wml_arena_str(&m->arena, wml_buf_view(&path));
    else if (err && err->code == WML_E_NOT_FOUND) {
        wml_fail(err, WML_E_NOT_FOUND, "external data file '%s' is not there", wml_buf_text(&path));
        wml_hint(err, "a model with external data is several files: copy them together");
    }
    wml_buf_release(&path);
    return ok;
}
