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

static void ask(struct wml_family_job *j, const struct wml_sam_prompt *p, struct wml_sam_asked *a)
{
    const int64_t groups = j->size[WML_SIZE_POINT_BATCH] ? j->size[WML_SIZE_POINT_BATCH] : 1, k = j->size[WML_SIZE_POINTS] ? j->size[WML_SIZE_POINTS] : 5;
    a->points = wml_family_input(j, "input_points", WML_F32, WML_DIMS(j->batch, groups, k, 2), 0, (double)p->image);
    a->labels = wml_family_input(j, "input_labels", WML_I32, WML_DIMS(j->batch, groups, k), 1, 2);
}

static bool whole_is_meant(const struct wml_family_job *j)
{
    for (size_t i = 0; i < j->n_given; i++)
        if (wml_str_is(j->given[i].name, "pixel_values")) return true;
    return false;
}

static void in_one(struct wml_family_job *j, const struct wml_sam_prompt *p)
{
    struct wml_nn *b = j->nn;
    const struct wml_sam_vision v = wml_sam_vision_params(j);
    struct wml_sam_asked a = {0};
    struct wml_value *x = pixels(j, &v);
    ask(j, p, &a);
    a.image = wml_sam_see(j, &v, x);
    const int64_t groups = wml_nn_size(b, a.points, 1, "the number of points"), side = 4 * p->side;
    const struct wml_sam_answer y = wml_sam_answer(j, p, &a);
    wml_nn_output(b, "iou_scores", wml_nn_reshape(b, y.scores, WML_DIMS(-1, groups, p->masks)));
    wml_nn_output(b, "pred_masks", wml_nn_reshape(b, y.masks, WML_DIMS(-1, groups, p->masks, side, side)));
}

static void masks(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_sam_prompt p = wml_sam_prompt_params(j);
    if (whole_is_meant(j)) {
        in_one(j, &p);
        return;
    }
    struct wml_sam_asked a = {0};
    ask(j, &p, &a);
    a.image = wml_family_input(j, "image_embeddings", WML_F32, WML_DIMS(j->batch, p.hidden, p.side, p.side), 0, 1);
    a.mask = wml_family_input(j, "mask_input", WML_F32, WML_DIMS(j->batch, 1, 4 * p.side, 4 * p.side), 0, 0);
    a.use_mask = wml_family_input(j, "use_mask_input", WML_F32, WML_DIMS(j->batch), 0, 0);
    const struct wml_sam_answer y = wml_sam_answer(j, &p, &a);
    wml_nn_output(b, "masks", wml_nn_resize(b, y.masks, "linear", false, MASK_SIDE, MASK_SIDE));
    wml_nn_output(b, "iou_scores", y.scores);
    wml_nn_output(b, "low_res_masks", y.masks);
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
