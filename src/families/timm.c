/* families/timm.c - checkpoints of the library timm. */
#include "families/timm_body.h"

static const struct wml_timm *const kinds[] = {&wml_timm_mobile, &wml_timm_resnet};

static const struct wml_timm *kind_of(struct wml_family_job *j, struct wml_str architecture)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->klass(architecture)) return kinds[i];
    wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: the architecture '%.*s' of timm is none that is known", WML_ARG(architecture));
    wml_nn_hint(j->nn, "known ones: mobilenetv1, mobilenetv2, mobilenetv3, mobilenetv4_conv, efficientnet, efficientnetv2, mnasnet, lcnet, "
                       "tinynet, resnet, resnext, wide_resnet, seresnet");
    return NULL;
}

static int64_t labels_of(struct wml_family_job *j)
{
    return wml_json_get(j->cfg, "num_classes") ? wml_cfg_size(j, j->cfg, "num_classes", 0) : wml_cfg_labels(j, j->cfg);
}

static void build(struct wml_family_job *j, bool head)
{
    struct wml_nn *b = j->nn;
    const struct wml_str architecture = wml_cfg_str(j, j->cfg, "architecture", "resnet50");
    const struct wml_timm *t = kind_of(j, architecture);
    if (wml_json_len(wml_json_get(j->cfg, "model_args"))) wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: model_args change the architecture");
    if (b->sketch) wml_nn_fail(b, WML_E_UNSUPPORTED, "what a model of timm is made of only its weights tell, and they are not here");
    if (b->failed || !t) return;
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, t->klass(architecture), "%s", j->type->base);
    x = t->features(j, architecture, x);
    if (head) x = t->head(j, architecture, x, labels_of(j));
    wml_nn_leave(b);
    wml_nn_output(b, head ? "logits" : "last_hidden_state", x);
}

static void classification(struct wml_family_job *j)
{
    build(j, true);
}

static void features(struct wml_family_job *j)
{
    build(j, false);
}

static const struct wml_family_type types[] = {{"timm_wrapper", "TimmWrapper", "timm_model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_timm = {.name = "timm", .type = types, .task = tasks};
