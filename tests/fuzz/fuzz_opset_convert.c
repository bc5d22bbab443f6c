/* Conversion of damaged graphs: the first two bytes choose the opsets, the rest is a graph as text. Whatever comes out is
 * linked right: it prints and reads back; a refusal says why and what to do. */
#include <stdlib.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "opset/opset.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

static int64_t version(unsigned char byte)
{
    return WML_OPSET_FIRST + byte % (WML_OPSET_LAST - WML_OPSET_FIRST + 1);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    struct wml_model *m = NULL, *again = NULL;
    struct wml_err err = {0};
    struct wml_buf text = {0};
    size_t n_unsure;
    if (n < 2 || !wml_model_parse((struct wml_str){(const char *)bytes + 2, n - 2}, &m, &err)) return 0;
    wml_model_set_opset(m, "", version(bytes[0]));
    if (wml_opset_convert(m, version(bytes[1]), &n_unsure, &err)) {
        if (wml_model_opset(m, "") != version(bytes[1])) abort();
        wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_TYPES | WML_TEXT_ALL_DATA, &text);
        if (!wml_model_parse(wml_buf_view(&text), &again, &err)) abort();
    } else if (!err.msg[0] || !err.hint[0]) {
        abort();
    }
    wml_model_free(m);
    wml_model_free(again);
    wml_buf_release(&text);
    return 0;
}
