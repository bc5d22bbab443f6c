/* families/electra.c - ELECTRA (Clark et al. 2020): BERT's body, tables that may be narrower than its layers. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 256, .layers = 12, .heads = 4, .inner = 1024, .vocab = 30522,
                                             .positions = 512, .segments = 2, .embedding = 128, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

static struct wml_value *classify(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_text_class_head(j, p, x, WML_STR("gelu"));
}

static const struct wml_text_model model = {
    .params = params, .body = wml_bert_projected_body, .pooled = wml_text_summary, .classify = classify, .predict = wml_text_generator,
};

static const struct wml_family_type types[] = {{"electra", "Electra", "electra"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_electra = {.name = "electra", .type = types, .task = wml_text_tasks, .own = &model};
