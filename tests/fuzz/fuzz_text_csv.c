/* CSV from any bytes. What is read is written again and read back the same. */
#include <stddef.h>
#include <stdint.h>

#include "text/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_csv c, d;
    struct wml_err err = {0};
    wml_csv_init(&c, (struct wml_str){(const char *)data, size});
    while (wml_csv_next(&c, &err)) {
        struct wml_buf b = {0};
        for (size_t i = 0; i < c.field.len; i++) wml_csv_put(&b, c.field.at[i], i == 0);
        wml_csv_init(&d, wml_buf_view(&b));
        /* A row of one empty field is a blank line, and a byte order mark in front is taken off. */
        bool blank = b.len == 0, mark = wml_str_starts(wml_buf_view(&b), "\xef\xbb\xbf");
        if (!blank && !mark) {
            if (!wml_csv_next(&d, &err) || d.field.len != c.field.len) abort();
            for (size_t i = 0; i < c.field.len; i++)
                if (!wml_str_eq(c.field.at[i], d.field.at[i])) abort();
        }
        wml_csv_find(&c, "name");
        wml_csv_release(&d);
        wml_buf_release(&b);
    }
    wml_csv_release(&c);
    return 0;
}
