/* families/timm_mobile.c - MobileNets (Howard et al. 2017 .. 2019, Qin et al. 2024), EfficientNets (Tan and Le 2019, 2021) and
 * their kin under timm's names. Widths, kernels, repeats, gates and kinds of blocks are told by the weights. */
#include <stdio.h>
#include "families/mobilenet.h"
#include "families/timm_body.h"

enum { MAX_BLOCKS = 100 };

struct arch {
    const char *start;   /* of the architecture's name, which may have "tf_" before it */
    const char *strides; /* of the first block of every stage, as digits */
    const char *act;
    const char *relus;   /* for every stage: 'r' where relu is in place of act; shorter: act for the others */
    const char *gate;    /* of squeeze and excitation */
    bool gate_relu;      /* relu inside it, else the block's activation */
    bool act_last;       /* separable blocks end with their activation and have no shortcut */
    bool straight_first; /* the first stage has no shortcuts */
    double eps;          /* 0: 1e-5 */
};

static const struct arch archs[] = { /* the first that fits counts */
    {"mobilenetv3_small_minimal", "222121", "relu", "", "hard_sigmoid", true, false, false, 0},
    {"mobilenetv3_large_minimal", "1222121", "relu", "", "hard_sigmoid", true, false, false, 0},
    {"mobilenetv3_small_", "222121", "hard_swish", "rr", "hard_sigmoid", true, false, false, 0},
    {"mobilenetv3_large_", "1222121", "hard_swish", "rrr", "hard_sigmoid", true, false, false, 0},
    {"mobilenetv3_rw", "1222121", "hard_swish", "rrr", "hard_sigmoid", false, false, true, 1e-3},
    {"mobilenetv4_conv_small", "22221", "relu", "", "sigmoid", false, false, false, 0},
    {"mobilenetv4_conv_medium", "22221", "relu", "", "sigmoid", false, false, false, 0},
    {"mobilenetv4_conv_large", "22221", "relu", "", "sigmoid", false, false, false, 0},
    {"mobilenetv1_", "12222", "relu6", "", "sigmoid", false, true, false, 0},
    {"mobilenetv2_", "1222121", "relu6", "", "sigmoid", false, false, false, 0},
    {"mnasnet_small", "1222121", "relu", "", "sigmoid", false, false, false, 0},
    {"mnasnet_", "1222121", "relu", "", "sigmoid", false, false, true, 0},
    {"semnasnet_", "1222121", "relu", "", "sigmoid", false, false, true, 0},
    {"lcnet_", "122212", "hard_swish", "", "hard_sigmoid", true, true, false, 0},
    {"tinynet_", "1222121", "silu", "", "sigmoid", false, false, false, 0},
    {"efficientnet_lite", "1222121", "relu6", "", "sigmoid", false, false, false, 0},
    {"efficientnet_b", "1222121", "silu", "", "sigmoid", false, false, false, 0},
    {"efficientnetv2_", "1222121", "silu", "", "sigmoid", false, false, false, 0},
};

struct params {
    const struct arch *a;
    bool tf; /* padding and epsilon of TensorFlow */
    double eps;
    struct wml_str act, stage_act;
};

static bool has_part(struct wml_str s, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, part, n) == 0) return true;
    return false;
}

static const struct arch *arch_of(struct wml_str name)
{
    /* Blurred and dilated ones have layers without weights. */
    if (has_part(name, "_blur") || has_part(name, "_aa") || has_part(name, "_evos") || has_part(name, "_g8") || has_part(name, "_gn")) return NULL;
    if (wml_str_starts(name, "tf_")) name = (struct wml_str){name.ptr + 3, name.len - 3};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (wml_str_starts(name, archs[i].start)) return &archs[i];
    return NULL;
}

static const char *klass(struct wml_str name)
{
    if (!arch_of(name)) return NULL;
    return has_part(name, "mobilenetv3") || has_part(name, "mobilenetv4") || has_part(name, "lcnet") ? "MobileNetV3" : "EfficientNet";
}

static struct params params_of(struct wml_str name)
{
    const bool tf = wml_str_starts(name, "tf_");
    const struct arch *a = arch_of(name);
    return (struct params){.a = a, .tf = tf, .eps = tf ? 1e-3 : a->eps > 0 ? a->eps : 1e-5, .act = wml_str(a->act), .stage_act = wml_str(a->act)};
}

/* Conv and BN, whose size and groups are those of the weight; act empty: none. */
static struct wml_value *conv(struct wml_nn *b, const struct params *p, struct wml_value *x, const char *name, const char *norm, int64_t stride,
                              struct wml_str act)
{
    char path[64];
    snprintf(path, sizeof path, "%s.weight", name);
    const struct wml_weight *w = wml_nn_need(b, path, WML_DIMS(-1, -1, -1, -1));
    if (!w || !x) return NULL;
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image"), kernel = w->dims[2];
    if (w->dims[1] < 1 || in % w->dims[1] || w->dims[3] != kernel || kernel < 1)
        return wml_nn_fail(b, WML_E_FORMAT, "'%.*s' does not fit %lld channels", WML_ARG(w->name), (long long)in);
    struct wml_nn_window window = {.stride = stride, .pad = p->tf ? 0 : kernel / 2, .groups = in / w->dims[1]};
    if (p->tf && kernel > 1) x = wml_mobilenet_tf_pad(b, x, kernel, &window);
    x = norm ? wml_nn_conv_bn(b, x, name, norm, p->eps, -1, &window) : wml_nn_conv(b, x, name, -1, &window);
    return act.len ? wml_nn_act(b, x, act, "the activation") : x;
}

/* A layer of both: "<name>.conv", "<name>.bn". */
static struct wml_value *unit(struct wml_nn *b, const struct params *p, struct wml_value *x, const char *name, int64_t stride, struct wml_str act)
{
    wml_nn_enter(b, "ConvNormAct", "%s", name);
    x = conv(b, p, x, "conv", "bn", stride, act);
    wml_nn_leave(b);
    return x;
}

/* Channels weighed by what the whole picture has of them (Hu et al. 2017). */
static struct wml_value *excite(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    if (!wml_nn_has(b, "se.conv_reduce.weight")) return x;
    const struct wml_nn_window w = {0};
    wml_nn_enter(b, "SqueezeExcite", "se");
    struct wml_value *y = wml_nn_conv(b, wml_nn_global_mean(b, x), "conv_reduce", -1, &w);
    y = wml_nn_act(b, y, p->a->gate_relu ? WML_STR("relu") : p->stage_act, "the activation");
    y = wml_nn_act(b, wml_nn_conv(b, y, "conv_expand", -1, &w), wml_str(p->a->gate), "the gate");
    wml_nn_leave(b);
    return wml_nn_mul(b, x, y);
}

/* ------------------------------------------------------------------ blocks */

static struct wml_value *separable(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride)
{
    x = excite(b, p, conv(b, p, x, "conv_dw", "bn1", stride, p->stage_act));
    return conv(b, p, x, "conv_pw", "bn2", 1, p->a->act_last ? p->stage_act : WML_STR(""));
}

static struct wml_value *inverted(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride)
{
    x = conv(b, p, x, "conv_pw", "bn1", 1, p->stage_act);
    x = excite(b, p, conv(b, p, x, "conv_dw", "bn2", stride, p->stage_act));
    return conv(b, p, x, "conv_pwl", "bn3", 1, WML_STR(""));
}

/* One convolution in place of the first two of the inverted one. */
static struct wml_value *fused(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride)
{
    x = excite(b, p, conv(b, p, x, "conv_exp", "bn1", stride, p->stage_act));
    return conv(b, p, x, "conv_pwl", "bn2", 1, WML_STR(""));
}

/* MobileNetV4's: a depthwise convolution before, between or behind the pointwise ones, or none; the stride is in the middle one. */
static struct wml_value *universal(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride)
{
    const bool start = wml_nn_has(b, "dw_start.conv.weight"), mid = wml_nn_has(b, "dw_mid.conv.weight"), end = wml_nn_has(b, "dw_end.conv.weight");
    if (start) x = unit(b, p, x, "dw_start", mid ? 1 : stride, WML_STR(""));
    x = unit(b, p, x, "pw_exp", 1, p->stage_act);
    if (mid) x = unit(b, p, x, "dw_mid", stride, p->stage_act);
    x = unit(b, p, excite(b, p, x), "pw_proj", 1, WML_STR(""));
    return end ? unit(b, p, x, "dw_end", start || mid ? 1 : stride, WML_STR("")) : x;
}

static struct wml_value *plain(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride)
{
    return conv(b, p, x, "conv", "bn1", stride, p->stage_act);
}

static const struct kind {
    const char *sign, *klass; /* a weight that only it has */
    struct wml_value *(*add)(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t stride);
} kinds[] = {
    {"pw_exp.conv.weight", "UniversalInvertedResidual", universal}, {"conv_exp.weight", "EdgeResidual", fused},
    {"conv_pwl.weight", "InvertedResidual", inverted}, {"conv_dw.weight", "DepthwiseSeparableConv", separable},
    {"conv.weight", "ConvBnAct", plain},
};

static const struct kind *kind_at(struct wml_nn *b, size_t stage, size_t i)
{
    char name[80];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        snprintf(name, sizeof name, "blocks.%zu.%zu.%s", stage, i, kinds[k].sign);
        if (wml_nn_has(b, name)) return &kinds[k];
    }
    return NULL;
}

/* Of equal sizes around a block. Plain convolutions have one in EfficientNetV2 only. */
static bool has_shortcut(const struct params *p, const struct kind *k, size_t stage, const struct wml_value *from, const struct wml_value *to)
{
    if (k->add == plain && strncmp(p->a->start, "efficientnetv2", 14) != 0) return false;
    if (k->add == separable && p->a->act_last) return false;
    if (stage == 0 && p->a->straight_first) return false;
    return from && to && wml_nn_axis(from, 1).size == wml_nn_axis(to, 1).size;
}

static struct wml_value *stage(struct wml_nn *b, const struct params *p, size_t s, struct wml_value *x)
{
    const int64_t first = p->a->strides[s] - '0';
    for (size_t i = 0; i < MAX_BLOCKS && wml_nn_ok(b); i++) {
        const struct kind *k = kind_at(b, s, i);
        if (!k) break;
        const int64_t stride = i == 0 ? first : 1;
        wml_nn_enter(b, k->klass, "blocks.%zu.%zu", s, i);
        struct wml_value *y = k->add(b, p, x, stride);
        wml_nn_leave(b);
        x = stride == 1 && has_shortcut(p, k, s, x, y) ? wml_nn_add(b, y, x) : y;
    }
    return x;
}

static struct wml_value *features(struct wml_family_job *j, struct wml_str name, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    struct params p = params_of(name);
    x = conv(b, &p, x, "conv_stem", "bn1", 2, p.act);
    for (size_t s = 0; p.a->strides[s] && wml_nn_ok(b); s++) {
        p.stage_act = s < strlen(p.a->relus) && p.a->relus[s] == 'r' ? WML_STR("relu") : p.act;
        x = stage(b, &p, s, x);
    }
    if (strcmp(klass(name), "EfficientNet") == 0 && wml_nn_has(b, "conv_head.weight")) x = conv(b, &p, x, "conv_head", "bn2", 1, p.act);
    return x;
}

/* MobileNetV3 has the last convolution behind the mean. */
static struct wml_value *head(struct wml_family_job *j, struct wml_str name, struct wml_value *x, int64_t labels)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(name);
    x = wml_nn_global_mean(b, x);
    if (strcmp(klass(name), "MobileNetV3") == 0)
        x = conv(b, &p, x, "conv_head", wml_nn_has(b, "norm_head.weight") ? "norm_head" : NULL, 1, p.act);
    return wml_nn_linear(b, wml_nn_flatten(b, x, 1), "classifier", labels);
}

const struct wml_timm wml_timm_mobile = {.klass = klass, .features = features, .head = head};
