/* The reader of the graph's text form. What it accepts prints, and what is printed reads back to the same. */
#include <stdlib.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
    const unsigned flags = WML_TEXT_HEADER | WML_TEXT_TYPES | WML_TEXT_ALL_DATA;
    struct wml_model *m = NULL, *again = NULL;
    struct wml_err err = {0};
    struct wml_buf first = {0}, second = {0}, other = {0};
    if (!wml_model_parse((struct wml_str){(const char *)bytes, n}, &m, &err)) {
        if (err.code == WML_OK || !err.msg[0] || m) abort(); /* a refusal says why */
        return 0;
    }
    wml_model_check(m, &err);
    wml_model_text(m, flags, &first);
    wml_model_text(m, WML_TEXT_ONE_LINE, &other);
    for (struct wml_node *node = m->graph->first; node; node = node->next) wml_node_text(node, &other);
    if (!wml_model_parse(wml_buf_view(&first), &again, &err)) abort();
    wml_model_text(again, flags, &second);
    if (!wml_str_eq(wml_buf_view(&first), wml_buf_view(&second))) abort();
    wml_model_free(m);
    wml_model_free(again);
    wml_buf_release(&first);
    wml_buf_release(&second);
    wml_buf_release(&other);
    return 0;
}
