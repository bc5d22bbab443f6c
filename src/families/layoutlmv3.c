/* families/layoutlmv3.c - LayoutLMv3 (Huang et al. 2022): words with their boxes and patches of the page, in one sequence;
 * scores of attention know distances in the text and on the page. */
#include <math.h>
#include "families/text_tasks.h"
#include "nn/relative.h"

enum { PAGE = 1000 }; /* coordinates of boxes are thousandths of the page */

struct own {
    int64_t page, coordinate, shape, image, patch, channels, grid;
    bool text_distance, page_distance, visual;
    struct wml_nn_buckets text, place;
};

static void check_widths(struct wml_family_job *j, const struct wml_bert *p, const struct own *o)
{
    if (4 * o->coordinate + 2 * o->shape != p->hidden)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: 4 * coordinate_size %lld + 2 * shape_size %lld is not hidden_size %lld",
                    (long long)o->coordinate, (long long)o->shape, (long long)p->hidden);
    if (!wml_json_get_bool(j->cfg, "text_embed", true))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: text_embed is false; models of pictures alone are not exported");
    if (o->visual && !o->grid)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: input_size %lld is smaller than patch_size %lld", (long long)o->image, (long long)o->patch);
}

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 50265,
                                             .positions = 512, .segments = 2, .pad = 1, .eps = 1e-5};
    const struct wml_json_val *c = j->cfg;
    struct wml_bert p = wml_bert_params(j, &defaults);
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){
        .page = wml_cfg_size(j, c, "max_2d_position_embeddings", 1024),
        .coordinate = wml_cfg_size(j, c, "coordinate_size", 128),
        .shape = wml_cfg_size(j, c, "shape_size", 128),
        .image = wml_cfg_size(j, c, "input_size", 224),
        .patch = wml_cfg_size(j, c, "patch_size", 16),
        .channels = wml_cfg_size(j, c, "num_channels", 3),
        .text_distance = wml_json_get_bool(c, "has_relative_attention_bias", true),
        .page_distance = wml_json_get_bool(c, "has_spatial_attention_bias", true),
        .visual = wml_json_get_bool(c, "visual_embed", true),
        .text = {wml_cfg_size(j, c, "rel_pos_bins", 32), wml_cfg_size(j, c, "max_rel_pos", 128), true},
        .place = {wml_cfg_size(j, c, "rel_2d_pos_bins", 64), wml_cfg_size(j, c, "max_rel_2d_pos", 256), true},
    };
    o->grid = o->image / o->patch;
    check_widths(j, &p, o);
    p.own = o;
    p.own_mask = true;
    return p;
}

static struct wml_text inputs(struct wml_family_job *j, const struct wml_bert *p, bool choices)
{
    const struct own *o = p->own;
    struct wml_text t = wml_bert_inputs(j, p, choices);
    const int64_t n = wml_nn_axis(t.ids, 1).size;
    t.boxes = wml_family_input(j, "bbox", WML_I32, WML_DIMS(j->batch, n < 0 ? 1 : n, 4), 0, 1);
    if (o->visual) t.pixels = wml_family_input(j, "pixel_values", WML_F32, WML_DIMS(j->batch, o->channels, o->image, o->image), 0, 1);
    return t;
}

/* -------------------------------------------------------------- embeddings */

static struct wml_value *add_boxes(struct wml_nn *b, const struct own *o, const struct wml_text *t, struct wml_value *x)
{
    struct wml_value *side[4], *part[6];
    for (size_t i = 0; i < 4; i++) {
        side[i] = wml_nn_pick(b, t->boxes, 2, (int64_t)i);
        part[i] = wml_nn_embedding(b, side[i], i % 2 ? "y_position_embeddings" : "x_position_embeddings", o->page, o->coordinate);
    }
    for (size_t i = 0; i < 2; i++) { /* height, width */
        struct wml_value *size = wml_nn_sub(b, side[3 - i], side[1 - i]);
        const enum wml_dtype dtype = size ? wml_value_elem(size) : WML_I32;
        size = wml_nn_binary(b, "Max", size, wml_nn_int(b, dtype, 0));
        size = wml_nn_binary(b, "Min", size, wml_nn_int(b, dtype, 1023));
        part[4 + i] = wml_nn_embedding(b, size, i ? "w_position_embeddings" : "h_position_embeddings", o->page, o->shape);
    }
    return wml_nn_add(b, x, wml_nn_concat(b, -1, 6, part));
}

static struct wml_value *words(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    wml_nn_enter(b, "*TextEmbeddings", "embeddings");
    struct wml_value *x = add_boxes(b, p->own, t, wml_bert_embedded(b, p, t));
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

/* The patches behind a class token: [batch, 1 + grid * grid, hidden]. */
static struct wml_value *patches(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embed");
    struct wml_value *x = wml_nn_conv(b, t->pixels, "proj", p->hidden, &(struct wml_nn_window){.stride = o->patch});
    if (x && (wml_nn_axis(x, 2).size != o->grid || wml_nn_axis(x, 3).size != o->grid)) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "pixel_values must be %lld x %lld: the model has no positions for other sizes",
                    (long long)o->image, (long long)o->image);
        wml_nn_hint(b, "leave height and width to the config's input_size");
    }
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, 0, o->grid * o->grid)), "021");
    wml_nn_leave(b);
    struct wml_value *cls = wml_nn_repeat(b, wml_nn_param(b, "cls_token", WML_DIMS(1, 1, p->hidden)), 0, t->ids, 0);
    x = wml_nn_concat(b, 1, WML_VALUES(cls, x));
    x = wml_nn_add(b, x, wml_nn_param(b, "pos_embed", WML_DIMS(1, 1 + o->grid * o->grid, p->hidden)));
    return wml_nn_layer_norm(b, x, "norm", 1e-6);
}

/* --------------------------------------------------------------- distances */

/* Left edges (side 0) or bottoms (3) of the class token's box and of the patches': [1, 1 + grid * grid]. */
static struct wml_value *patch_sides(struct wml_nn *b, const struct own *o, size_t side, enum wml_dtype dtype)
{
    const int64_t n = 1 + o->grid * o->grid;
    void *at = wml_nn_room(b, "places of the page", sizeof(int64_t), WML_DIMS(n));
    if (!at) return NULL;
    wml_dtype_store(dtype, at, 0, side ? PAGE - 1 : 1);
    for (int64_t i = 0; i < n - 1; i++) {
        const int64_t cell = side ? i / o->grid + 1 : i % o->grid;
        wml_dtype_store(dtype, at, (size_t)i + 1, (double)(PAGE * cell / o->grid));
    }
    return wml_nn_const(b, side ? "patch_bottoms" : "patch_lefts", dtype, WML_DIMS(1, n), at);
}

static struct wml_value *page_scores(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, const char *name, size_t side,
                                     double scale)
{
    const struct own *o = p->own;
    struct wml_value *at = wml_nn_pick(b, t->boxes, 2, (int64_t)side);
    if (!at) return NULL;
    if (o->visual) {
        struct wml_value *fixed = wml_nn_repeat(b, patch_sides(b, o, side, wml_value_elem(at)), 0, t->ids, 0);
        at = wml_nn_concat(b, 1, WML_VALUES(at, fixed));
    }
    const struct wml_weight *table = wml_nn_need(b, name, WML_DIMS(p->heads, o->place.buckets));
    return wml_nn_bucket_lookup(b, wml_nn_bucket_scores(b, table, &o->place, true, scale), &o->place, at);
}

/* Words count from 0, and so do the patches: [1, heads, n, n]. */
static struct wml_value *text_scores(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, double scale)
{
    const struct own *o = p->own;
    const int64_t len = wml_nn_axis(t->ids, 1).size, extra = o->visual ? 1 + o->grid * o->grid : 0, n = len + extra;
    const struct wml_weight *table = wml_nn_need(b, "rel_pos_bias.weight", WML_DIMS(p->heads, o->text.buckets));
    struct wml_value *scores = wml_nn_bucket_scores(b, table, &o->text, true, scale);
    if (!scores) return NULL;
    if (len < 0) {
        struct wml_value *at = wml_nn_positions(b, t->ids, 1, 0);
        int64_t *more = wml_nn_room(b, "places of the page", sizeof *more, WML_DIMS(extra + 1));
        if (!more) return NULL;
        for (int64_t i = 0; i < extra; i++) more[i] = i;
        if (extra) at = wml_nn_concat(b, 0, WML_VALUES(at, wml_nn_const(b, "patches", WML_I64, 1, &extra, more)));
        return wml_nn_unsqueeze(b, wml_nn_bucket_lookup(b, scores, &o->text, at), WML_DIMS(0));
    }
    int32_t *index = wml_nn_room(b, "places of the page", sizeof *index, WML_DIMS(n, n));
    if (!index) return NULL;
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t far = (k < len ? k : k - len) - (q < len ? q : q - len), reach = o->text.max_distance;
            index[q * n + k] = (int32_t)(far < -reach ? 0 : WML_MIN(far, reach) + reach);
        }
    return wml_nn_gather(b, scores, wml_nn_const(b, "distances", WML_I32, WML_DIMS(1, n, n), index), 1);
}

/* What is added to the scores of every layer. */
static struct wml_value *bias(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, struct wml_value *mask)
{
    const struct own *o = p->own;
    const double scale = 1 / sqrt((double)p->hidden / (double)p->heads);
    struct wml_value *sum = mask;
    if (o->text_distance) {
        struct wml_value *s = text_scores(b, p, t, scale);
        if (wml_nn_is_fixed(t->ids, 1)) s = wml_nn_transpose(b, s, "1023");
        sum = wml_nn_add(b, s, sum);
    }
    if (o->page_distance && o->text_distance) {
        struct wml_value *x = page_scores(b, p, t, "rel_pos_x_bias.weight", 0, scale), *y = page_scores(b, p, t, "rel_pos_y_bias.weight", 3, scale);
        sum = wml_nn_add(b, wml_nn_transpose(b, wml_nn_add(b, x, y), "1023"), sum);
    }
    return sum;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    const struct own *o = p->own;
    struct wml_value *x = words(b, p, t), *mask = t->mask;
    if (o->visual) {
        x = wml_nn_layer_norm(b, wml_nn_concat(b, 1, WML_VALUES(x, patches(b, p, t))), "LayerNorm", p->eps);
        const int64_t extra = 1 + o->grid * o->grid;
        const enum wml_dtype dtype = mask ? wml_value_elem(mask) : WML_I32;
        void *ones = wml_nn_room(b, "places of the page", sizeof(int64_t), WML_DIMS(extra));
        if (!ones) return NULL;
        for (int64_t i = 0; i < extra; i++) wml_dtype_store(dtype, ones, (size_t)i, 1);
        struct wml_value *seen = wml_nn_repeat(b, wml_nn_const(b, "patch_mask", dtype, WML_DIMS(1, extra), ones), 0, t->ids, 0);
        mask = wml_nn_concat(b, 1, WML_VALUES(mask, seen));
    }
    wml_nn_enter(b, "*Encoder", "encoder");
    struct wml_text with = *t;
    with.additive = bias(b, p, t, wml_nn_padding_mask(b, mask));
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = wml_bert_layer(b, p, i, x, &with);
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------------- heads */

static struct wml_value *head(struct wml_nn *b, const struct wml_bert *p, const char *name, struct wml_value *x, int64_t out)
{
    wml_nn_enter(b, "*ClassificationHead", "%s", name);
    x = wml_nn_unary(b, "Tanh", wml_nn_linear(b, x, "dense", p->hidden));
    x = wml_nn_linear(b, x, "out_proj", out);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {
    .params = params, .inputs = inputs, .body = body, .classify = wml_text_classify_first,
};

static void token_classes(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bert p = params(j);
    const struct wml_text t = inputs(j, &p, false);
    struct wml_value *x = wml_text_encode(j, &model, &p, &t);
    if (((const struct own *)p.own)->visual) x = wml_nn_slice_to(b, x, 1, wml_nn_extent(b, t.ids, 1), wml_nn_axis(t.ids, 1));
    const int64_t labels = wml_cfg_labels(j, j->cfg);
    wml_nn_output(b, "logits", labels < 10 ? wml_nn_linear(b, x, "classifier", labels) : head(b, &p, "classifier", x, labels));
}

/* Over words and patches, as the model gives them. */
static void question(struct wml_family_job *j)
{
    const struct wml_bert p = params(j);
    const struct wml_text t = inputs(j, &p, false);
    wml_text_answers(j->nn, head(j->nn, &p, "qa_outputs", wml_text_encode(j, &model, &p, &t), 2));
}

static const struct wml_family_type types[] = {{"layoutlmv3", "LayoutLMv3", "layoutlmv3"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"token-classification", "ForTokenClassification", token_classes},
    {"question-answering", "ForQuestionAnswering", question},
    {"document-question-answering", "ForQuestionAnswering", question},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_layoutlmv3 = {.name = "layoutlmv3", .type = types, .task = tasks, .own = &model};
