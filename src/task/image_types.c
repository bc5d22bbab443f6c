/* The image processors of transformers and the defaults of their members, from the signatures of 4.57. Not here, and read
 * by their members with a warning: those that cut a picture into tiles or patches (language models), pad to a square
 * before resizing (Owlv2), make videos, or need OCR. */
#include "task/image_internal.h"

#define IMAGENET .colour = WML_COLOUR_IMAGENET
#define OPENAI   .colour = WML_COLOUR_CLIP
#define EXACT(n) .fit = WML_FIT_EXACT, .edge = (n)
#define SHORT(n) .fit = WML_FIT_SHORTEST, .edge = (n)
#define DETECT   .fit = WML_FIT_SHORTEST, .round = WML_ROUND_DETECTION, .edge = 800, .longest = 1333, IMAGENET
#define SEGMENT  .fit = WML_FIT_SHORTEST, .edge = 800, .longest = 1333, .multiple = 32, .multiple_key = "size_divisor", IMAGENET
#define DEPTH    .round = WML_ROUND_DEPTH, .multiple_key = "ensure_multiple_of", .pad_key = "size_divisor"

static const struct wml_image_type types[] = {
    {"ViT", EXACT(224), .resample = WML_BILINEAR},
    {"DeiT", EXACT(256), .crop = 224, .resample = WML_BICUBIC},
    {"Beit", EXACT(256), .crop = 224, .resample = WML_BICUBIC},
    {"CLIP", SHORT(224), .crop = 224, .resample = WML_BICUBIC, OPENAI},
    {"ChineseCLIP", SHORT(224), .crop = 224, .resample = WML_BICUBIC, OPENAI},
    {"Bit", SHORT(224), .crop = 224, .resample = WML_BICUBIC, OPENAI},
    {"ViTHybrid", SHORT(224), .crop = 224, .resample = WML_BICUBIC, OPENAI},
    {"Siglip", EXACT(224), .resample = WML_BICUBIC},
    {"Blip", EXACT(384), .resample = WML_BICUBIC, OPENAI},
    {"Flava", EXACT(224), .crop = 224, .resample = WML_BICUBIC, OPENAI},
    {"OwlViT", EXACT(768), .crop = 768, .no_crop = true, .resample = WML_BICUBIC, OPENAI},
    {"DINOv3ViT", EXACT(224), .resample = WML_BILINEAR, IMAGENET},
    {"Pvt", EXACT(224), .resample = WML_BILINEAR, IMAGENET},
    {"EfficientFormer", EXACT(224), .crop = 224, .resample = WML_BICUBIC, IMAGENET},
    {"ConvNext", SHORT(384), .resample = WML_BILINEAR, .crop_rule = WML_CROP_BELOW_384, .crop_share = 224.0 / 256},
    {"PoolFormer", SHORT(224), .crop = 224, .resample = WML_BICUBIC, IMAGENET, .crop_rule = WML_CROP_SHORTEST, .crop_share = 0.9},
    {"Levit", SHORT(224), .crop = 224, .resample = WML_BICUBIC, IMAGENET, .crop_rule = WML_CROP_256_OF_224},
    {"MobileNetV1", SHORT(256), .crop = 224, .resample = WML_BILINEAR},
    {"MobileNetV2", SHORT(256), .crop = 224, .resample = WML_BILINEAR},
    {"MobileViT", SHORT(224), .crop = 256, .resample = WML_BILINEAR, .no_normalize = true, .flip_channels = true},
    {"EfficientNet", EXACT(346), .crop = 289, .no_crop = true, .resample = WML_NEAREST},
    {"Segformer", EXACT(512), .resample = WML_BILINEAR, IMAGENET},
    {"MaskFormer", SEGMENT, .resample = WML_BILINEAR},
    {"Mask2Former", SEGMENT, .resample = WML_BILINEAR},
    {"OneFormer", .fit = WML_FIT_SHORTEST, .edge = 800, .longest = 1333, IMAGENET, .resample = WML_BILINEAR},
    {"Detr", DETECT, .resample = WML_BILINEAR},
    {"ConditionalDetr", DETECT, .resample = WML_BILINEAR},
    {"DeformableDetr", DETECT, .resample = WML_BILINEAR},
    {"Deta", DETECT, .resample = WML_BILINEAR},
    {"GroundingDino", DETECT, .resample = WML_BILINEAR},
    {"Yolos", DETECT, .resample = WML_BILINEAR, .multiple = 16},
    {"RTDetr", EXACT(640), .round = WML_ROUND_DETECTION, .resample = WML_BILINEAR, IMAGENET, .no_normalize = true},
    {"DPT", EXACT(384), DEPTH, .resample = WML_BICUBIC},
    {"PromptDepthAnything", EXACT(384), DEPTH, .resample = WML_BICUBIC},
    {"GLPN", .fit = WML_FIT_MULTIPLE, .multiple = 32, .multiple_key = "size_divisor", .resample = WML_BILINEAR, .no_normalize = true},
    {"Sam", .fit = WML_FIT_LONGEST, .round = WML_ROUND_HALF_UP, .edge = 1024, .pad = 1024, .resample = WML_BILINEAR, IMAGENET},
    {"Sam2", EXACT(1024), .resample = WML_BILINEAR, IMAGENET},
    {"Vilt", .fit = WML_FIT_SHORTEST, .round = WML_ROUND_HALF_UP, .edge = 384, .multiple = 32, .multiple_key = "size_divisor",
     .resample = WML_BICUBIC},
    {"LayoutLMv2", EXACT(224), .resample = WML_BILINEAR, .no_rescale = true, .no_normalize = true, .flip_channels = true},
    {"LayoutLMv3", EXACT(224), .resample = WML_BILINEAR},
};

const struct wml_image_type *wml_image_type_find(struct wml_str name)
{
    static const char *const endings[] = {"ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"};
    for (size_t i = 0; i < WML_COUNT(endings); i++)
        if (wml_str_ends(name, endings[i])) {
            name.len -= strlen(endings[i]);
            break;
        }
    for (size_t i = 0; i < WML_COUNT(types); i++)
        if (wml_str_is(name, types[i].name)) return &types[i];
    return NULL;
}

void wml_image_type_apply(const struct wml_image_type *t, struct wml_image_plan *p)
{
    static const double means[][3] = {{0.5, 0.5, 0.5}, {0.485, 0.456, 0.406}, {0.48145466, 0.4578275, 0.40821073}};
    static const double stds[][3] = {{0.5, 0.5, 0.5}, {0.229, 0.224, 0.225}, {0.26862954, 0.26130258, 0.27577711}};
    static const struct wml_image_type none = {.resample = WML_BILINEAR, .no_normalize = true};
    wml_image_plan_init(p);
    p->from_file = true;
    p->type = t ? t->name : NULL;
    if (!t) t = &none;
    p->resize = t->edge || t->fit == WML_FIT_MULTIPLE;
    p->crop = t->crop && !t->no_crop;
    p->rescale = !t->no_rescale;
    p->normalize = !t->no_normalize;
    p->flip_channels = t->flip_channels;
    p->pad = t->pad || t->longest; /* without a size: as large as the largest of the batch */
    p->fit = t->fit;
    p->round = t->round;
    p->resample = t->resample;
    if (t->fit == WML_FIT_EXACT) p->height = p->width = t->edge;
    if (t->fit == WML_FIT_SHORTEST) p->shortest = t->edge;
    p->longest = t->fit == WML_FIT_LONGEST ? t->edge : t->longest;
    p->multiple = t->multiple;
    p->crop_height = p->crop_width = t->crop;
    p->pad_height = p->pad_width = t->pad;
    memcpy(p->mean, means[t->colour], sizeof p->mean);
    memcpy(p->std, stds[t->colour], sizeof p->std);
}
