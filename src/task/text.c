/* Texts as inputs: the tokenizer's arrays under the names that transformers gives them, in the model's own types. */
#include "task/text.h"

#include <string.h>

enum { OPEN_LENGTH = 512 };

bool wml_text_plan_aim(struct wml_text_plan *p, const struct wml_tok *tok, const struct wml_task_input *in, size_t n, struct wml_err *err)
{
    *p = (struct wml_text_plan){.tok = tok, .input = in, .n = n, .batch = 1};
    for (size_t i = 0; i < n; i++) {
        if (!wml_str_is(in[i].name, "input_ids")) continue;
        if (in[i].rank >= 1 && in[i].dim[0] > 0) p->batch = in[i].dim[0];
        if (in[i].rank == 2 && in[i].dim[1] > 0) p->length = (size_t)in[i].dim[1];
        return true;
    }
    wml_fail(err, WML_E_UNSUPPORTED, "texts do not fit: the model has no input 'input_ids'");
    return wml_hint(err, "`winml inspect -m MODEL` lists its inputs");
}

static bool add(struct wml_npys *to, const struct wml_task_input *in, const int64_t *value, size_t len, int64_t batch, struct wml_err *err)
{
    const int64_t dim[] = {batch, (int64_t)len};
    void *data = wml_sample_add(to, in->name, in->dtype, dim, 2, err);
    for (size_t i = 0; data && i < len * (size_t)batch; i++) wml_dtype_store((int)in->dtype, data, i, (double)value[i % len]);
    return data != NULL;
}

bool wml_text_make(const struct wml_text_plan *p, struct wml_str first, struct wml_str second, struct wml_tok_ids *ids,
                   struct wml_npys *sample, struct wml_err *err)
{
    struct wml_tok_opts o = {0};
    wml_tok_defaults(p->tok, &o);
    o.pad_to = p->length;
    o.max_length = p->length ? p->length : o.max_length && o.max_length < OPEN_LENGTH ? o.max_length : OPEN_LENGTH;
    if (!wml_tok_encode(p->tok, first, second, &o, ids, err)) return false;
    int64_t *place = wml_xcalloc(ids->len + 1, sizeof *place);
    for (size_t k = 0; k < ids->len; k++) place[k] = (int64_t)k;
    const struct { const char *name; const int64_t *value; } made[] = {
        {"input_ids", ids->id}, {"attention_mask", ids->mask}, {"token_type_ids", ids->type}, {"position_ids", place}};
    bool ok = true;
    for (size_t i = 0; ok && i < p->n; i++) {
        const int64_t *value = NULL;
        for (size_t k = 0; k < WML_COUNT(made); k++)
            if (wml_str_is(p->input[i].name, made[k].name)) value = made[k].value;
        if (value) ok = add(sample, &p->input[i], value, ids->len, p->batch, err);
    }
    free(place);
    return ok;
}
