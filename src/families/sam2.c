/* families/sam2.c - SAM 2 (Ravi et al. 2024) over pictures: masks of what points mean. Its memory of a video's earlier pictures is
 * not built. For mask-generation the prompts and the masks alone, which take what image-feature-extraction gives of a picture. */
#include "families/sam_body.h"

enum { MASK_SIDE = 1024, PATCH = 16 };

static struct wml_sam_prompt params_of(struct wml_family_job *j)
{
    return wml_sam2_prompt_params(j, MASK_SIDE, PATCH);
}

static void see(struct wml_family_job *j)
{
    const struct wml_sam_levels s = wml_sam2_see(j);
    wml_nn_output(j->nn, "image_embeddings", s.level[2]);
    wml_nn_output(j->nn, "high_res_features1", s.level[0]); /* the inputs high_res_features0 and 1 of mask-generation */
    wml_nn_output(j->nn, "high_res_features2", s.level[1]);
}

/* A picture alone remembers nothing: a learned vector says so. */
static void forget(struct wml_nn *b, const struct wml_sam_prompt *p, struct wml_sam_asked *a)
{
    const struct wml_weight *w = wml_nn_need(b, "no_memory_embedding", WML_DIMS(1, 1, p->hidden));
    a->image = wml_nn_add(b, a->image, wml_nn_reshaped(b, w, WML_DIMS(1, p->hidden, 1, 1)));
}

static void masks(struct wml_family_job *j)
{
    const struct wml_sam_prompt p = params_of(j);
    struct wml_sam_asked a = {0};
    wml_sam_ask_points(j, &p, &a);
    wml_sam_ask_embedded(j, &p, &a);
    forget(j->nn, &p, &a);
    const struct wml_sam_answer y = wml_sam_answer(j, &p, &a);
    wml_sam_output(j->nn, &y, MASK_SIDE);
}

static void in_one(struct wml_family_job *j)
{
    const struct wml_sam_prompt p = params_of(j);
    const struct wml_sam_levels s = wml_sam2_see(j);
    struct wml_sam_asked a = {.image = s.level[2], .fine = {s.level[0], s.level[1]}};
    wml_sam_ask_points(j, &p, &a);
    forget(j->nn, &p, &a);
    const struct wml_sam_answer y = wml_sam_answer(j, &p, &a);
    wml_sam_output_groups(j->nn, &p, &a, &y);
}

static const struct wml_family_type types[] = {{"sam2", "Sam2", NULL}, {"sam2-video", "Sam2", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"mask-generation", "Model", masks},
    {"image-feature-extraction", "Model", see},
    {"image-segmentation", "Model", in_one},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"prompted-mask-generation", {{"vision-encoder", "image-feature-extraction"}, {"prompt-decoder", "mask-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_sam2 = {.name = "sam2", .type = types, .task = tasks, .composite = composites};
