/* A bundle's config from any bytes: refused with a message, or routed to each EP, printed, and read again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "genai/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const eps[] = {"cpu", "qnn", "openvino", "vnpu"};
    for (size_t i = 0; i < WML_COUNT(eps); i++) {
        struct wml_bundle b, again;
        struct wml_err err = {0};
        struct wml_buf text = {0};
        bool several;
        struct wml_bundle_override o = {.ep = wml_ep_find(wml_str(eps[i]))};
        if (!wml_bundle_parse((struct wml_str){(const char *)data, size}, &b, &err)) {
            if (!err.code || !err.msg[0]) abort();
            return 0;
        }
        bool runs = wml_bundle_route(&b, &o);
        if (runs != wml_bundle_runs_on(&b, o.ep)) abort();
        wml_bundle_ep(&b, &several);
        wml_bundle_device(&b);
        wml_bundle_print(&b, &text);
        if (!wml_bundle_parse(wml_buf_view(&text), &again, &err)) abort();
        if (again.n_stages != b.n_stages || runs != wml_bundle_runs_on(&again, o.ep)) abort();
        wml_bundle_close(&again);
        wml_bundle_close(&b);
        wml_buf_release(&text);
    }
    return 0;
}
