/* A cache of ranges from any bytes. What is read is written, read again, and written the same. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "calib/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wml_range_method *m = wml_range_method_at(0);
    struct wml_ranges r = {0}, again = {0};
    struct wml_err err = {0};
    struct wml_buf one = {0}, two = {0};
    if (wml_ranges_parse((struct wml_str){(const char *)data, size}, NULL, NULL, &r, &err)) {
        for (size_t i = 0; i < r.map.len; i++) {
            const struct wml_range *x = r.map.entry[i].value;
            if (!isfinite(x->low) || !isfinite(x->high) || x->low > x->high) abort();
        }
        wml_ranges_print(&r, m, NULL, &one);
        if (!wml_ranges_parse(wml_buf_view(&one), m, NULL, &again, &err)) abort();
        wml_ranges_print(&again, m, NULL, &two);
        if (!wml_str_eq(wml_buf_view(&one), wml_buf_view(&two))) abort();
    } else if (!err.code || !err.msg[0]) {
        abort();
    }
    wml_ranges_release(&r);
    wml_ranges_release(&again);
    wml_buf_release(&one);
    wml_buf_release(&two);
    return 0;
}
