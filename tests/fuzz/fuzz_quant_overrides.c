/* A file of overrides from any bytes: refused with a message, or rules whose numbers make sense. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "quant/overrides.h"
#include "quant/qparams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct wml_override *o)
{
    if (o->type && !wml_qtype_is_known(o->type)) abort();
    if (o->has_scale && !(o->scale > 0)) abort();
    if (o->has_low && o->has_high && !(o->low <= o->high)) abort();
    if (o->has_axis && (o->axis < -64 || o->axis > 63)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_err err = {0};
    struct wml_quant_overrides *o = wml_quant_overrides_parse((struct wml_str){(const char *)data, size}, &err);
    if (!o && (!err.code || !err.msg[0])) abort();
    for (size_t i = 0; o && i < o->tensor.len; i++) {
        const struct wml_tensor_override *t = &o->tensor.at[i];
        if (!t->channel.len || (t->converts && !t->convert.type)) abort();
        for (size_t k = 0; k < t->channel.len; k++) check(&t->channel.at[k]);
        if (t->converts) check(&t->convert);
        wml_overrides_of_tensor(o, t->pattern);
    }
    wml_overrides_of_node(o, WML_STR("/head.0/Conv"), WML_STR("Conv"));
    wml_quant_overrides_free(o);
    return 0;
}
