/* onnx/files.c - the files a model borrows from, and what other files look like. */
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
    *out = (struct wml_source){.bytes = map->bytes, .handle = map, .close = close_map, .drop = wml_map_drop};
    return true;
}

intptr_t wml_onnx_file_of(const struct wml_source *s)
{
    return s->close == close_map ? ((const struct wml_map_file *)s->handle)->file : -1;
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

static bool starts(struct wml_span s, const char *magic, size_t n)
{
    return s.len >= n && memcmp(s.ptr, magic, n) == 0;
}

const char *wml_onnx_sniff(struct wml_span s)
{
    static const struct { const char *magic; unsigned char len; const char *what; } known[] = {
        {"version https://git-lfs", 23, "a Git LFS pointer, not the model: run `git lfs pull` in its repository"},
        {"<!DOCTYPE", 9, "a web page, not a model: the download went to a page instead of the file"},
        {"<!doctype", 9, "a web page, not a model: the download went to a page instead of the file"},
        {"<html", 5, "a web page, not a model: the download went to a page instead of the file"},
        {"<HTML", 5, "a web page, not a model: the download went to a page instead of the file"},
        {"<?xml", 5, "an XML document (an OpenVINO IR perhaps), not an ONNX model"},
        {"PK\3\4", 4, "a zip archive (a PyTorch checkpoint perhaps), not an ONNX model"},
        {"GGUF", 4, "a GGUF model, not an ONNX model"},
        {"\x89HDF", 4, "an HDF5 file (a Keras model perhaps), not an ONNX model"},
        {"\x1f\x8b", 2, "a gzip archive: unpack it first"},
        {"\x80\x02", 2, "a Python pickle (a PyTorch checkpoint perhaps), not an ONNX model"},
        {"\x93NUMPY", 6, "a numpy array, not an ONNX model"},
        {"\x89PNG", 4, "a picture, not a model"},
        {"\xff\xd8\xff", 3, "a picture, not a model"},
        {"%PDF", 4, "a PDF document, not a model"},
        {"ORTM", 4, "a model in ORT format, not in ONNX format"},
        {"{", 1, "JSON text, not an ONNX model"},
    };
    for (size_t i = 0; i < WML_COUNT(known); i++)
        if (starts(s, known[i].magic, known[i].len)) return known[i].what;
    if (s.len > 8 && memcmp(s.ptr + 4, "TFL3", 4) == 0) return "a TensorFlow Lite model, not an ONNX model";
    if (s.len > 8 && memcmp(s.ptr + 4, "ORTM", 4) == 0) return "a model in ORT format, not in ONNX format";
    if (s.len > 9 && s.ptr[8] == '{' && s.ptr[7] == 0 && s.ptr[6] == 0) return "safetensors weights, not an ONNX model";
    return NULL;
}
