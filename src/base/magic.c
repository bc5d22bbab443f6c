/* base/magic.c - first bytes of the kinds of files that come instead of the one that was meant. */
#include "base/magic.h"

#include <string.h>

struct row {
    size_t at; /* offset of the magic bytes */
    const char *bytes;
    unsigned char len;
    struct wml_magic m;
};

#define PAGE {"a web page", "the download went to a page instead of the file"}

static const struct row rows[] = {
    /* The length of the header, then its JSON. First: a length may look like any of the next. */
    {6, "\0\0{", 3, {"safetensors weights", NULL}},
    {0, "version https://git-lfs", 23, {"a Git LFS pointer", "run `git lfs pull` in its repository"}},
    {0, "<!DOCTYPE", 9, PAGE},
    {0, "<!doctype", 9, PAGE},
    {0, "<html", 5, PAGE},
    {0, "<HTML", 5, PAGE},
    {0, "<?xml", 5, {"an XML document (an OpenVINO IR perhaps)", NULL}},
    {0, "PK\3\4", 4, {"a zip archive (a PyTorch checkpoint perhaps)", NULL}},
    {0, "GGUF", 4, {"a GGUF model", NULL}},
    {0, "\x89HDF", 4, {"an HDF5 file (a Keras model perhaps)", NULL}},
    {0, "\x1f\x8b", 2, {"a gzip archive", "unpack it first"}},
    {0, "\x80\x02", 2, {"a Python pickle (a PyTorch checkpoint perhaps)", NULL}},
    {0, "\x93NUMPY", 6, {"a numpy array", NULL}},
    {0, "\x89PNG", 4, {"a picture", NULL}},
    {0, "\xff\xd8\xff", 3, {"a picture", NULL}},
    {0, "%PDF", 4, {"a PDF document", NULL}},
    {0, "ORTM", 4, {"a model in ORT format", NULL}},
    {4, "ORTM", 4, {"a model in ORT format", NULL}},
    {4, "TFL3", 4, {"a TensorFlow Lite model", NULL}},
    {257, "ustar", 5, {"a tar archive", "unpack it first"}},
    {0, "{", 1, {"JSON text", NULL}},
};
#undef PAGE

const struct wml_magic *wml_magic(struct wml_span s)
{
    for (size_t i = 0; i < WML_COUNT(rows); i++)
        if (s.len > rows[i].at && s.len - rows[i].at >= rows[i].len &&
            memcmp(s.ptr + rows[i].at, rows[i].bytes, rows[i].len) == 0)
            return &rows[i].m;
    return NULL;
}
