/* families/family.c - the table of families, and what they share: configs and inputs. */
#include <inttypes.h>
#include "families/family.h"

#define WML_FAMILY(name) extern const struct wml_family wml_family_##name;
#include "families/families.def"
#undef WML_FAMILY

const struct wml_family *const wml_families[] = {
#define WML_FAMILY(name) &wml_family_##name,
#include "families/families.def"
#undef WML_FAMILY
    NULL,
};

const char *const wml_family_size_names[WML_SIZE_COUNT] = {
    [WML_SIZE_SEQUENCE] = "sequence_length", [WML_SIZE_HEIGHT] = "height", [WML_SIZE_WIDTH] = "width",
    [WML_SIZE_CHANNELS] = "num_channels", [WML_SIZE_CHOICES] = "num_choices", [WML_SIZE_AUDIO] = "audio_sequence_length",
    [WML_SIZE_FEATURES] = "feature_size", [WML_SIZE_FRAMES] = "nb_max_frames", [WML_SIZE_VISUAL] = "visual_seq_length",
    [WML_SIZE_POINT_BATCH] = "point_batch_size", [WML_SIZE_POINTS] = "nb_points_per_image",
    [WML_SIZE_CACHE] = "max_cache_len", [WML_SIZE_NEW_TOKENS] = "seq_len",
};

/* ------------------------------------------------------------------ table */

/* Types are lower-case with dashes. */
static bool same_type(struct wml_str a, const char *b)
{
    if (a.len != strlen(b)) return false;
    for (size_t i = 0; i < a.len; i++) {
        const char x = a.ptr[i] == '_' ? '-' : a.ptr[i], y = b[i] == '_' ? '-' : b[i];
        if (x != y && !(x >= 'A' && x <= 'Z' && x - 'A' + 'a' == y)) return false;
    }
    return true;
}

const struct wml_family *wml_family_find(struct wml_str model_type, const struct wml_family_type **type)
{
    for (const struct wml_family *const *f = wml_families; *f; f++)
        for (const struct wml_family_type *t = (*f)->type; t->model_type; t++)
            if (same_type(model_type, t->model_type)) {
                *type = t;
                return *f;
            }
    return NULL;
}

const struct wml_family_task *wml_family_task_of(const struct wml_family *f, struct wml_str task)
{
    for (const struct wml_family_task *t = f->task; t->task; t++)
        if (wml_str_is(task, t->task)) return t;
    return NULL;
}

/* ------------------------------------------------------------------ config */

static const struct wml_json_val *member(const struct wml_json_val *cfg, const char *key)
{
    const struct wml_json_val *v = wml_json_get(cfg, key);
    return wml_json_is_null(v) ? NULL : v;
}

static void wrong(struct wml_family_job *j, const char *key, const struct wml_json_val *v, const char *wanted)
{
    struct wml_buf text = {.max = 200};
    wml_json_print(v, &text);
    wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: %s is %s, but must be %s", key, wml_buf_text(&text), wanted);
    wml_buf_release(&text);
}

static void absent(struct wml_family_job *j, const char *key)
{
    wml_nn_fail(j->nn, WML_E_FORMAT, "config.json has no %s, which %s needs", key, j->type->model_type);
}

int64_t wml_cfg_size(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback)
{
    const struct wml_json_val *v = member(cfg, key);
    if (!v) {
        if (fallback <= 0) absent(j, key);
        return fallback > 0 ? fallback : 1;
    }
    const int64_t n = wml_json_int(v, -1);
    if (n >= 1 && n <= 1 << 24) return n;
    wrong(j, key, v, "a whole number from 1 to 16777216");
    return 1;
}

int64_t wml_cfg_count(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback)
{
    const struct wml_json_val *v = member(cfg, key);
    const int64_t n = v ? wml_json_int(v, -1) : fallback;
    if (n >= 0 && n <= 1 << 24) return n;
    wrong(j, key, v, "a whole number from 0 to 16777216");
    return 0;
}

int64_t wml_cfg_int(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback)
{
    const struct wml_json_val *v = member(cfg, key);
    if (!v) return fallback;
    if (!wml_json_is_number(v) || (double)wml_json_int(v, INT64_MIN) != wml_json_num(v, 0)) wrong(j, key, v, "a whole number");
    return wml_json_int(v, fallback);
}

double wml_cfg_num(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, double fallback)
{
    const struct wml_json_val *v = member(cfg, key);
    if (v && !wml_json_is_number(v)) wrong(j, key, v, "a number");
    return wml_json_num(v, fallback);
}

int64_t wml_cfg_whole(double v)
{
    const double most = (double)((int64_t)1 << 40);
    return v >= -most && v <= most ? (int64_t)v : (int64_t)1 << 40;
}

struct wml_str wml_cfg_str(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, const char *fallback)
{
    const struct wml_json_val *v = member(cfg, key);
    if (v && !wml_json_is_string(v)) wrong(j, key, v, "a text");
    return wml_json_is_string(v) ? wml_json_str(v) : wml_str(fallback);
}

size_t wml_cfg_sizes(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t *out, size_t max)
{
    const struct wml_json_val *v = member(cfg, key);
    if (!v) return 0;
    if (wml_json_is_number(v)) {
        out[0] = wml_cfg_size(j, cfg, key, 0);
        return 1;
    }
    size_t n = 0;
    struct wml_json_iter it = {0};
    struct wml_str name;
    const struct wml_json_val *e;
    while (wml_json_is_array(v) && wml_json_next(v, &it, &name, &e)) {
        const int64_t size = wml_json_int(e, -1);
        if (n == max || size < 1 || size > 1 << 24) {
            wrong(j, key, v, "a list of whole numbers from 1 to 16777216");
            return 0;
        }
        out[n++] = size;
    }
    if (!n) wrong(j, key, v, "a list of whole numbers");
    return n;
}

size_t wml_cfg_list(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, size_t n, const int64_t *fallback,
                    int64_t *out, size_t max)
{
    const size_t said = wml_cfg_sizes(j, cfg, key, out, max);
    if (said || n > max) return said;
    memcpy(out, fallback, n * sizeof *out);
    return n;
}

void wml_cfg_pair(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback, int64_t out[2])
{
    out[0] = out[1] = fallback > 0 ? fallback : 1;
    if (!member(cfg, key)) {
        if (fallback <= 0) absent(j, key);
        return;
    }
    int64_t got[2];
    const size_t n = wml_cfg_sizes(j, cfg, key, got, 2);
    if (!n) return;
    out[0] = got[0];
    out[1] = got[n - 1];
}

int64_t wml_cfg_labels(struct wml_family_job *j, const struct wml_json_val *cfg)
{
    const struct wml_json_val *labels = member(cfg, "id2label");
    const size_t n = wml_json_len(labels);
    return labels && n ? (int64_t)n : wml_cfg_size(j, cfg, "num_labels", 2);
}

/* ------------------------------------------------------------------ inputs */

static const struct wml_family_input *given(const struct wml_family_job *j, const char *name)
{
    for (size_t i = 0; i < j->n_given; i++)
        if (wml_str_is(j->given[i].name, name)) return &j->given[i];
    return NULL;
}

struct wml_value *wml_family_input(struct wml_family_job *j, const char *name, enum wml_dtype dtype, size_t rank,
                                   const int64_t *sizes, double low, double high)
{
    const struct wml_family_input *g = given(j, name);
    struct wml_family_input in = {.name = wml_str(name), .dtype = dtype, .rank = rank, .has_rank = true,
                                  .has_range = high > low, .low = low, .high = high};
    for (size_t i = 0; i < rank; i++) in.axis[i].size = sizes[i];
    if (g && g->dtype) in.dtype = g->dtype;
    if (g && g->has_rank && g->rank != rank)
        return wml_nn_fail(j->nn, WML_E_USAGE, "input '%s' has %zu axes, not %zu", name, rank, g->rank);
    for (size_t i = 0; g && i < rank; i++)
        if (g->axis[i].size >= 0 || g->axis[i].symbol.len) in.axis[i] = g->axis[i];
    if (g && g->has_range) in.has_range = true, in.low = g->low, in.high = g->high;
    WML_PUSH_IN(&j->nn->m->arena, &j->input, in);
    return wml_nn_input(j->nn, name, in.dtype, rank, in.axis);
}

int64_t wml_family_length(struct wml_family_job *j, int64_t max_positions)
{
    if (j->size[WML_SIZE_SEQUENCE]) return j->size[WML_SIZE_SEQUENCE];
    return max_positions > 16 ? max_positions < 1024 ? max_positions : 1024 : 16;
}

/* size of preprocessor_config.json: a number, {height, width} or {shortest_edge}. */
static bool preprocessor_size(const struct wml_json_val *pre, const char *key, int64_t hw[2])
{
    const struct wml_json_val *size = member(pre, key);
    if (!size) return false;
    const int64_t edge = wml_json_is_number(size) ? wml_json_int(size, 0) : wml_json_get_int(size, "shortest_edge", 0);
    hw[0] = wml_json_get_int(size, "height", edge);
    hw[1] = wml_json_get_int(size, "width", edge);
    return hw[0] > 0 && hw[1] > 0 && hw[0] <= 1 << 16 && hw[1] <= 1 << 16;
}

/* timm writes [channels, height, width] into the config, or into what it keeps of its own. */
static bool timm_size(const struct wml_json_val *cfg, int64_t hw[2])
{
    const struct wml_json_val *size = member(cfg, "input_size");
    if (!size) size = member(member(cfg, "pretrained_cfg"), "input_size");
    const int64_t h = wml_json_int(wml_json_at(size, 1), 0), w = wml_json_int(wml_json_at(size, 2), 0);
    if (h <= 0 || w <= 0 || h > 1 << 16 || w > 1 << 16) return false;
    hw[0] = h;
    hw[1] = w;
    return true;
}

struct wml_value *wml_family_picture(struct wml_family_job *j, int64_t height, int64_t width)
{
    int64_t hw[2] = {height, width};
    if (j->size[WML_SIZE_HEIGHT]) hw[0] = j->size[WML_SIZE_HEIGHT];
    if (j->size[WML_SIZE_WIDTH]) hw[1] = j->size[WML_SIZE_WIDTH];
    const int64_t channels = j->size[WML_SIZE_CHANNELS] ? j->size[WML_SIZE_CHANNELS] : wml_cfg_size(j, j->cfg, "num_channels", 3);
    return wml_family_input(j, "pixel_values", WML_F32, WML_DIMS(j->batch, channels, hw[0], hw[1]), 0, 1);
}

struct wml_value *wml_family_pixels(struct wml_family_job *j, int64_t default_size)
{
    int64_t hw[2] = {default_size, default_size};
    if (member(j->cfg, "image_size")) wml_cfg_pair(j, j->cfg, "image_size", 0, hw);
    else if (!preprocessor_size(j->pre, "size", hw)) timm_size(j->cfg, hw);
    return wml_family_picture(j, hw[0], hw[1]);
}

struct wml_value *wml_family_pixels_by_preprocessor(struct wml_family_job *j, int64_t default_size)
{
    int64_t hw[2] = {default_size, default_size};
    if (preprocessor_size(j->pre, "size", hw)) return wml_family_picture(j, hw[0], hw[1]);
    return wml_family_pixels(j, default_size);
}

struct wml_value *wml_family_crop(struct wml_family_job *j, int64_t default_size)
{
    int64_t hw[2] = {default_size, default_size};
    if (preprocessor_size(j->pre, "crop_size", hw)) return wml_family_picture(j, hw[0], hw[1]);
    return wml_family_pixels(j, default_size);
}
