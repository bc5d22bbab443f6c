/* Feature extraction: the states of a text's tokens as the model gives them, or one vector made of them. */
#include "task/pool.h"

static bool prepare(struct wml_task_work *w, struct wml_err *err)
{
    struct wml_str how = wml_str(wml_task_param(w, &wml_task_feature_extraction, "pooling"));
    if (!wml_str_is(how, "none") && !wml_str_is(how, "mean"))
        return wml_fail(err, WML_E_USAGE, "parameter 'pooling' is none or mean, not '%.*s'", WML_ARG(how));
    return wml_task_add_text(w, wml_task_value(w, "text"), NULL, err);
}

static bool raw(struct wml_task_work *w, struct wml_item *out, struct wml_err *err)
{
    const struct wml_npys *answer = &w->answer[0];
    const struct wml_npy *a = wml_pool_states(answer, w->ids.at[0].len);
    if (!a && answer->v.len) a = &answer->v.at[0];
    if (!a) return wml_fail(err, WML_E_UNSUPPORTED, "the model gives no arrays");
    wml_task_put_array(out, a);
    return true;
}

static bool finish(struct wml_task_work *w, struct wml_item *root, struct wml_err *err)
{
    bool unit = false;
    const char *pooling = wml_task_param(w, &wml_task_feature_extraction, "pooling");
    if (!wml_task_param_bool(w, &wml_task_feature_extraction, "normalize", &unit, err)) return false;
    struct wml_item *out = wml_item_object(root, "predictions", "Output:");
    if (wml_str_is(wml_str(pooling), "none")) return raw(w, out, err);
    double *v;
    size_t n;
    if (!wml_pool_mean(w, 0, &v, &n, err)) return false;
    if (unit) wml_pool_normalize(v, n);
    wml_task_put_array(out, &(struct wml_npy){.name = WML_STR("vector"), .dtype = WML_F64, .rank = 1, .dim = {(int64_t)n},
                                              .data = {(const unsigned char *)v, n * sizeof *v}});
    return true;
}

const struct wml_task wml_task_feature_extraction = {
    .name = "feature-extraction", .summary = "The states of a text's tokens, or one vector of them",
    .field = (const struct wml_task_field[]){{"text", WML_FIELD_TEXT, false, "the text"}, {0}},
    .param = (const struct wml_task_param[]){
        {"pooling", "string", "none", "none: the states as the model gives them; mean: one vector, their mean over the tokens"},
        {"normalize", "boolean", "false", "with pooling: a vector of length 1"}, {0}},
    .prepare = prepare, .finish = finish,
};
