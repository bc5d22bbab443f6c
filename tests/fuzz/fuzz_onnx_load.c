/* The ONNX reader, and everything that commands do with a model before they trust it. */
#include <stdlib.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

static bool read_tensor(void *arg, struct wml_tensor *t)
{
    struct wml_span s;
    wml_tensor_bytes(arg, t, &s, NULL);
    return true;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    struct wml_model *m = NULL, *again = NULL;
    struct wml_err err = {0};
    struct wml_epctx_list contexts = {0};
    struct wml_model_size size;
    struct wml_buf out = {0}, skeleton = {0};
    struct wml_str folder;
    if (!wml_onnx_load_bytes((struct wml_span){bytes, n}, NULL, &m, &err)) {
        if (err.code == WML_OK || !err.msg[0]) abort(); /* a refusal says why */
        return 0;
    }
    wml_model_check(m, &err);
    wml_model_measure(m, &size);
    wml_epctx_find(m, &contexts);
    wml_epctx_list_release(&contexts);
    wml_onnx_files(m);
    wml_model_each_tensor(m, read_tensor, m);
    wml_onnx_skeleton(m, NULL, &skeleton, &folder, &err);
    err = (struct wml_err){0};
    /* What was read can be written, and what was written can be read. */
    if (wml_onnx_encode(m, &out, &err)) {
        struct wml_err bad = {0};
        if (!wml_onnx_load_bytes((struct wml_span){(const unsigned char *)out.ptr, out.len}, NULL, &again, &bad)) abort();
        wml_model_free(again);
    }
    wml_buf_release(&out);
    wml_buf_release(&skeleton);
    wml_model_free(m);
    return 0;
}
