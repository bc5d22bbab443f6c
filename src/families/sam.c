/* families/sam.c - SAM (Kirillov et al. 2023): masks of what points in a picture mean. For mask-generation the prompts and the
 * masks alone, which take the embedding of a picture that image-feature-extraction gives; or all in one where the inputs
 * that are named have pixel_values. */
#include "families/sam_body.h"

enum { MASK_SIDE = 1024 };

static struct wml_value *pixels(struct wml_family_job *j, const struct wml_sam_vision *v)
{
    return wml_family_input(j, "pixel_values", WML_F32, WML_DIMS(j->batch, v->channels, v->image, v->image), 0, 1);
}

static void see(struct wml_family_job *j)
{
    const struct wml_sam_vision v = wml_sam_vision_params(j);
    wml_nn_output(j->nn, "image_embeddings", wml_sam_see(j, &v, pixels(j, &v)));
}

static bool whole_is_meant(const struct wml_family_job *j)
{
    for (size_t i = 0; i < j->n_given; i++)
        if (wml_str_is(j->given[i].name, "pixel_values")) return true;
    return false;
}

static void masks(struct wml_family_job *j)
{
    const struct wml_sam_prompt p = wml_sam_prompt_params(j);
    const bool whole = whole_is_meant(j);
    struct wml_sam_asked a = {0};
    struct wml_value *x = NULL;
    const struct wml_sam_vision v = whole ? wml_sam_vision_params(j) : (struct wml_sam_vision){0};
    if (whole) x = pixels(j, &v);
    wml_sam_ask_points(j, &p, &a);
    if (whole) a.image = wml_sam_see(j, &v, x);
    else wml_sam_ask_embedded(j, &p, &a);
    const struct wml_sam_answer y = wml_sam_answer(j, &p, &a);
    if (whole) wml_sam_output_groups(j->nn, &p, &a, &y);
    else wml_sam_output(j->nn, &y, MASK_SIDE);
}

static const struct wml_family_type types[] = {{"sam", "Sam", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"mask-generation", "Model", masks},
    {"image-feature-extraction", "Model", see},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"prompted-mask-generation", {{"vision-encoder", "image-feature-extraction"}, {"prompt-decoder", "mask-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_sam = {.name = "sam", .type = types, .task = tasks, .composite = composites};
