/* quant/precision.c - the names of precisions. w8 is uint8 and w16 int16, as in the Python tool. */
#include "quant/precision.h"

#include <stdio.h>

#include "base/str.h"
#include "quant/quant.h"
#include "base/vec.h"

#define QDQ(w, a) {{.method = "qdq", .weight = (w), .activation = (a)}}
#define RTN(n, level) {.method = "rtn", .bits = (n), .accuracy_level = (level)}
static const struct wml_precision rows[] = {
    {"auto", NULL, "_quantized", QDQ(WML_U8, WML_U8)},
    {"int8", "w8a8", "_quantized", QDQ(WML_U8, WML_U8)},
    {"int16", "w16a16", "_quantized", QDQ(WML_I16, WML_U16)},
    {"w8a16", NULL, "_quantized", QDQ(WML_U8, WML_U16)},
    {"w16a8", NULL, "_quantized", QDQ(WML_I16, WML_U8)},
    {"int4", "w4a32", "_int4", {RTN(4, 0)}},
    {"w4a16", NULL, "_int4", {RTN(4, 0), {.method = "fp16", .rest = true}}},
    {"w4a8", NULL, "_int4", {RTN(4, 4)}},
    {"w8a32", NULL, "_w8a32", {RTN(8, 0)}},
    {"dynamic", NULL, "_dynamic", {{.method = "dynamic"}}},
    {"fp16", NULL, "_fp16", {{.method = "fp16"}}},
    {"bf16", NULL, "_bf16", {{.method = "bf16"}}},
};

const struct wml_precision *wml_precision_find(const char *name, struct wml_err *err)
{
    struct wml_str text = wml_str(name);
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        if (wml_str_ieq(text, wml_str(rows[i].name)) || (rows[i].alias && wml_str_ieq(text, wml_str(rows[i].alias)))) return &rows[i];
        if (!wml_quant_find(rows[i].step[0].method)) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s%s%s", used ? ", " : "", rows[i].name, rows[i].alias ? ", " : "",
                                 rows[i].alias ? rows[i].alias : "");
    }
    wml_fail(err, WML_E_USAGE, "'%s' is not a supported quantization precision", name);
    wml_hint(err, "one of %s", names);
    return NULL;
}
