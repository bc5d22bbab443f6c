/* families/text_inputs.c - see text_inputs.h. */
#include "families/text_inputs.h"

static struct wml_value *declare(struct wml_family_job *j, const char *name, int64_t length, bool choices, double high)
{
    const int64_t n = j->size[WML_SIZE_CHOICES] ? j->size[WML_SIZE_CHOICES] : 4;
    if (choices) return wml_family_input(j, name, WML_I32, WML_DIMS(j->batch, n, length), 0, high);
    return wml_family_input(j, name, WML_I32, WML_DIMS(j->batch, length), 0, high);
}

/* Every choice is a text of its own: [batch, choices, length] -> [batch * choices, length]. */
static struct wml_value *rows(struct wml_nn *b, struct wml_value *x)
{
    if (!x || wml_nn_is_fixed(x, 2)) return wml_nn_reshape(b, x, WML_DIMS(-1, x ? wml_nn_axis(x, 2).size : 1));
    const int64_t minus = -1;
    const struct wml_nn_shape s = {2, {{.size = -1}, wml_nn_axis(x, 2)}};
    return wml_nn_reshape_to(b, x, WML_VALUES(wml_nn_ints(b, 1, &minus), wml_nn_extent(b, x, 2)), &s);
}

struct wml_text wml_text_inputs(struct wml_family_job *j, int64_t vocab, int64_t positions, int64_t segments, bool choices)
{
    const int64_t length = wml_family_length(j, positions);
    struct wml_text t = {.ids = declare(j, "input_ids", length, choices, (double)vocab),
                         .mask = declare(j, "attention_mask", length, choices, 2)};
    if (segments > 0) t.types = declare(j, "token_type_ids", length, choices, (double)segments);
    if (choices) {
        t.choices = t.ids;
        t.ids = rows(j->nn, t.ids);
        t.mask = rows(j->nn, t.mask);
        if (t.types) t.types = rows(j->nn, t.types);
    }
    return t;
}

struct wml_value *wml_text_positions(struct wml_nn *b, struct wml_value *ids, const char *name, int64_t pad, int64_t rows, int64_t width)
{
    if (!wml_nn_ok(b) || !ids) return NULL;
    const enum wml_dtype dtype = wml_value_elem(ids);
    const int64_t n = wml_nn_axis(ids, 1).size;
    if (n > rows - pad - 1) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)n, (long long)(rows - pad - 1));
        return wml_nn_hint(b, "give a smaller sequence_length with --shape-config");
    }
    struct wml_value *blank = wml_nn_compare(b, "Equal", ids, wml_nn_int(b, dtype, pad));
    struct wml_value *token = wml_nn_cast(b, wml_nn_unary(b, "Not", blank), dtype);
    struct wml_value *at = wml_nn_mul(b, wml_nn_cumsum(b, token, 1), token);
    wml_nn_enter_layer(b, "Embedding", "%s", name);
    at = wml_nn_gather(b, wml_nn_rows(b, wml_nn_need(b, "weight", WML_DIMS(rows, width)), pad, rows), at, 0);
    wml_nn_leave(b);
    return at;
}
