/* Sentence similarity: the cosine between the mean states of two texts. */
#include "task/pool.h"

static bool prepare(struct wml_task_work *w, struct wml_err *err)
{
    return wml_task_add_text(w, wml_task_value(w, "text_1"), NULL, err) && wml_task_add_text(w, wml_task_value(w, "text_2"), NULL, err);
}

static bool finish(struct wml_task_work *w, struct wml_item *root, struct wml_err *err)
{
    double *v[2];
    size_t n[2];
    for (size_t i = 0; i < 2; i++)
        if (!wml_pool_mean(w, i, &v[i], &n[i], err)) return false;
    if (n[0] != n[1]) return wml_fail(err, WML_E_UNSUPPORTED, "the two texts became vectors of %zu and %zu numbers", n[0], n[1]);
    wml_task_put_score(root, wml_task_scores(root), 1, WML_STR("similarity"), wml_pool_cosine(v[0], v[1], n[0]));
    return true;
}

const struct wml_task wml_task_sentence_similarity = {
    .name = "sentence-similarity", .summary = "How alike two texts are in meaning",
    .field = (const struct wml_task_field[]){
        {"text_1", WML_FIELD_TEXT, false, "one text"}, {"text_2", WML_FIELD_TEXT, false, "the text it is compared with"}, {0}},
    .prepare = prepare, .finish = finish,
};
