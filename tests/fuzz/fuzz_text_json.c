/* JSON from any bytes. What is read is printed, read again, and printed the same. */
#include <stddef.h>
#include <stdint.h>

#include "text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_json_doc *doc = NULL, *again = NULL;
    struct wml_err err = {0};
    struct wml_buf one = {0}, two = {0};
    if (!wml_json_parse((struct wml_str){(const char *)data, size}, &doc, &err)) {
        if (!err.code || !err.msg[0]) abort();
        return 0;
    }
    wml_json_print(wml_json_root(doc), &one);
    if (!wml_json_parse(wml_buf_view(&one), &again, &err)) abort();
    wml_json_print(wml_json_root(again), &two);
    if (!wml_str_eq(wml_buf_view(&one), wml_buf_view(&two))) abort();
    wml_json_get_int(wml_json_at(wml_json_root(doc), 1), "key", 0);
    wml_json_free(doc);
    wml_json_free(again);
    wml_buf_release(&one);
    wml_buf_release(&two);
    return 0;
}
