/* families/resnet_timm.c - ResNet under timm's names, as in its own and in published DETR checkpoints: what blocks there are,
 * groups (Xie et al. 2016), squeeze and excitation (Hu et al. 2017) and the deeper stem and averaging shortcuts of "d" models
 * (He et al. 2018) are told by the weights. */
#include <stdio.h>
#include "families/resnet_body.h"
#include "families/timm_body.h"

enum { MAX_BLOCKS = 200 };

static struct wml_value *conv_named(struct wml_nn *b, struct wml_value *x, const char *name, const char *norm, int64_t stride, int64_t dilation)
{
    char path[40];
    snprintf(path, sizeof path, "%s.weight", name);
    const struct wml_weight *w = wml_nn_need(b, path, WML_DIMS(-1, -1, -1, -1));
    if (!w || !x) return NULL;
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image"), kernel = w->dims[2];
    if (w->dims[1] < 1 || in % w->dims[1]) return wml_nn_fail(b, WML_E_FORMAT, "'%.*s' does not fit %lld channels", WML_ARG(w->name), (long long)in);
    return wml_nn_conv_bn(b, x, name, norm, 1e-5, -1,
                          &(struct wml_nn_window){.stride = stride, .pad = kernel / 2 * dilation, .dilation = kernel > 1 ? dilation : 1,
                                                  .groups = in / w->dims[1]});
}

static struct wml_value *conv(struct wml_nn *b, struct wml_value *x, unsigned i, int64_t stride, int64_t dilation)
{
    char name[16], norm[16];
    snprintf(name, sizeof name, "conv%u", i);
    snprintf(norm, sizeof norm, "bn%u", i);
    return conv_named(b, x, name, norm, stride, dilation);
}

static struct wml_value *relu(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_unary(b, "Relu", x);
}

/* A strided convolution, or a mean of 2x2 and then a convolution. */
static struct wml_value *shortcut(struct wml_nn *b, struct wml_value *x, int64_t stride)
{
    if (wml_nn_has(b, "downsample.0.weight") || (b->sketch && stride > 1)) return conv_named(b, x, "downsample.0", "downsample.1", stride, 1);
    if (!wml_nn_has(b, "downsample.1.weight")) return x;
    if (stride > 1) x = wml_nn_pool(b, "AveragePool", x, &(struct wml_nn_window){.kernel = 2, .stride = stride, .ceil = true});
    return conv_named(b, x, "downsample.1", "downsample.2", 1, 1);
}

static struct wml_value *excite(struct wml_nn *b, struct wml_value *x)
{
    if (!wml_nn_has(b, "se.fc1.weight")) return x;
    const struct wml_nn_window w = {0};
    struct wml_value *y = relu(b, wml_nn_conv(b, wml_nn_global_mean(b, x), "se.fc1", -1, &w));
    return wml_nn_mul(b, x, wml_nn_unary(b, "Sigmoid", wml_nn_conv(b, y, "se.fc2", -1, &w)));
}

/* What a sketch's weights do not tell, by the name of the model. */
struct depth {
    const char *name;
    unsigned char blocks[4];
    bool third; /* convolution of a block */
};

static const struct depth *depth_of(struct wml_str name)
{
    static const struct depth known[] = {
        {"resnet18", {2, 2, 2, 2}, false}, {"resnet34", {3, 4, 6, 3}, false}, {"resnet101", {3, 4, 23, 3}, true},
        {"resnet152", {3, 8, 36, 3}, true}, {"resnet50", {3, 4, 6, 3}, true},
    };
    size_t i = 0;
    while (i + 1 < sizeof known / sizeof *known && !wml_str_starts(name, known[i].name)) i++;
    return &known[i];
}

static bool has_block(struct wml_nn *b, struct wml_str name, unsigned stage, unsigned i)
{
    char first[40];
    snprintf(first, sizeof first, "layer%u.%u.conv1.weight", stage, i);
    return b->sketch ? i < depth_of(name)->blocks[stage - 1] : wml_nn_has(b, first);
}

/* Two 3x3, or 1x1, 3x3, 1x1. */
static struct wml_value *block(struct wml_nn *b, struct wml_value *x, struct wml_str name, int64_t stride, int64_t dilation)
{
    struct wml_value *y;
    if (b->sketch ? depth_of(name)->third : wml_nn_has(b, "conv3.weight")) {
        y = relu(b, conv(b, x, 1, 1, 1));
        y = conv(b, relu(b, conv(b, y, 2, stride, dilation)), 3, 1, 1);
    } else {
        y = conv(b, relu(b, conv(b, x, 1, stride, dilation)), 2, 1, 1);
    }
    return relu(b, wml_nn_add(b, excite(b, y), shortcut(b, x, stride)));
}

static struct wml_value *stem(struct wml_nn *b, struct wml_value *x)
{
    if (b->sketch || wml_nn_has(b, "conv1.weight")) return relu(b, conv(b, x, 1, 2, 1));
    x = relu(b, conv_named(b, x, "conv1.0", "conv1.1", 2, 1));
    x = relu(b, conv_named(b, x, "conv1.3", "conv1.4", 1, 1));
    return relu(b, conv_named(b, x, "conv1.6", "bn1", 1, 1));
}

struct wml_value *wml_resnet_timm(struct wml_nn *b, struct wml_value *x, struct wml_str name, bool dilated)
{
    x = wml_nn_pool(b, "MaxPool", stem(b, x), &(struct wml_nn_window){.kernel = 3, .stride = 2, .pad = 1});
    for (unsigned s = 1; s <= 4; s++)
        for (unsigned i = 0; i < MAX_BLOCKS && wml_nn_ok(b) && has_block(b, name, s, i); i++) {
            const bool holes = dilated && s == 4;
            wml_nn_enter_layer(b, "Block", "layer%u.%u", s, i);
            x = block(b, x, name, s > 1 && i == 0 && !holes ? 2 : 1, holes && i > 0 ? 2 : 1);
            wml_nn_leave(b);
        }
    return x;
}

/* ------------------------------------------------------------- timm's own */

/* "resnet50", "resnet50d", "wide_resnet50_2", "resnext50_32x4d", ...: those that differ in nothing else. */
static const char *klass(struct wml_str name)
{
    static const char *const starts[] = {"resnet", "wide_resnet", "resnext", "seresnet", "seresnext"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (!wml_str_starts(name, starts[i])) continue;
        size_t k = strlen(starts[i]);
        const size_t digits = k;
        while (k < name.len && name.ptr[k] >= '0' && name.ptr[k] <= '9') k++;
        if (k == digits) continue;
        if (k < name.len && strchr("cdst", name.ptr[k])) k++;
        if (k == name.len || (name.ptr[k] == '_' && k + 1 < name.len && name.ptr[k + 1] >= '0' && name.ptr[k + 1] <= '9')) return "ResNet";
    }
    return NULL;
}

static struct wml_value *features(struct wml_family_job *j, struct wml_str name, struct wml_value *x)
{
    return wml_resnet_timm(j->nn, x, name, false);
}

static struct wml_value *head(struct wml_family_job *j, struct wml_str name, struct wml_value *x, int64_t labels)
{
    (void)name;
    return wml_nn_linear(j->nn, wml_nn_flatten(j->nn, wml_nn_global_mean(j->nn, x), 1), "fc", labels);
}

const struct wml_timm wml_timm_resnet = {.klass = klass, .features = features, .head = head};
