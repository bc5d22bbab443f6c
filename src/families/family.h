/* families/family.h - what a model family gives, and what it gets.
 *
 * A family is one file that ends with its descriptor and has one row in families.def. For every task it can do it has one
 * function, which declares inputs, adds nodes inside scopes (nn/nn.h) and declares outputs:
 *
 *     static void fill_mask(struct wml_family_job *j)
 *     {
 *         struct wml_value *x = encoder(j);
 *         wml_nn_output(j->nn, "logits", head(j, x));
 *     }
 *
 * The root scope ("<Class><suffix>") is entered and left by the caller. Failures are kept in j->nn. Numbers come from the
 * config by the functions below, which refuse what cannot be: a family never divides by a size it has not got from them. */
#ifndef WML_FAMILIES_FAMILY_H
#define WML_FAMILIES_FAMILY_H

#include "nn/attention.h"
#include "text/json.h"

struct wml_family_type {
    const char *model_type; /* of config.json: "xlm-roberta" */
    const char *klass;      /* start of its classes: "XLMRoberta" */
    const char *base;       /* attribute of the bare model in those with heads: "roberta"; NULL: none */
};

struct wml_family_job;
struct wml_family_task {
    const char *task;   /* as the command line names it */
    const char *suffix; /* of the class: "ForMaskedLM"; a '=' at its start: the whole class */
    void (*build)(struct wml_family_job *j);
};

struct wml_family_part { /* of a model that is several files */
    const char *name; /* "encoder" */
    const char *task;
};

struct wml_family_composite {
    const char *task; /* "translation"; "": by no task, only where a part is asked for */
    struct wml_family_part part[3]; /* ends with name NULL */
};

struct wml_family_bundle;
struct wml_family {
    const char *name; /* of the file */
    const struct wml_family_type *type; /* ends with model_type NULL */
    const struct wml_family_task *task; /* ends with task NULL; the first is the default */
    const struct wml_family_composite *composite; /* ends with task NULL; NULL: none */
    const struct wml_family_bundle *bundle; /* of GenAI bundles (families/genai.h); NULL: none can be made */
    const void *own; /* what the functions of its tasks need beside the job, where families share them */
};

/* A size the user gives for an input, else the family's own. */
enum wml_family_size {
    WML_SIZE_SEQUENCE, WML_SIZE_HEIGHT, WML_SIZE_WIDTH, WML_SIZE_CHANNELS, WML_SIZE_CHOICES, WML_SIZE_AUDIO,
    WML_SIZE_FEATURES, WML_SIZE_FRAMES, WML_SIZE_VISUAL, WML_SIZE_POINT_BATCH, WML_SIZE_POINTS, WML_SIZE_CACHE,
    WML_SIZE_NEW_TOKENS, WML_SIZE_COUNT
};
extern const char *const wml_family_size_names[WML_SIZE_COUNT]; /* keys of --shape-config */

struct wml_family_input { /* what the user says of an input, or what became of it */
    struct wml_str name;
    enum wml_dtype dtype; /* WML_UNDEFINED: not said */
    size_t rank;
    struct wml_axis axis[WML_NN_MAX_RANK]; /* size -1 without symbol: not said */
    bool has_rank, has_range;
    double low, high; /* sample values: [low, high) */
};

struct wml_family_job {
    struct wml_nn *nn;
    const struct wml_family *family;
    const struct wml_family_type *type;
    const struct wml_family_task *task;
    const struct wml_json_val *cfg; /* config.json, or the part of it that says what this model is */
    const struct wml_json_val *root; /* config.json */
    const struct wml_json_val *pre; /* preprocessor_config.json; NULL: none */
    int64_t batch;
    int64_t size[WML_SIZE_COUNT]; /* 0: not given */
    const struct wml_family_input *given; /* by --input-specs and --dynamic-axes */
    size_t n_given;
    const struct wml_genai_opts *genai; /* of parts of bundles (families/genai.h) */
    WML_VEC(struct wml_family_input) input; /* declared so far, in the model's arena */
};

/* --- the config. `fallback` is the value of the family's class where the key is absent; 0: the key must be there (a count may be 0). */
int64_t wml_cfg_size(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback); /* 1 .. 1 << 24 */
int64_t wml_cfg_count(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback); /* 0 .. 1 << 24 */
int64_t wml_cfg_int(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback); /* any */
double wml_cfg_num(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, double fallback);
int64_t wml_cfg_whole(double v); /* of a product; where it is absurd, 1 << 40, a size that no weight has */
struct wml_str wml_cfg_str(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, const char *fallback);
/* A list of sizes; one number stands for a list of one. How many there were, at most max. The second: `fallback` where absent. */
size_t wml_cfg_sizes(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t *out, size_t max);
size_t wml_cfg_list(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, size_t n, const int64_t *fallback,
                    int64_t *out, size_t max);
void wml_cfg_pair(struct wml_family_job *j, const struct wml_json_val *cfg, const char *key, int64_t fallback, int64_t out[2]); /* or one for both */
int64_t wml_cfg_labels(struct wml_family_job *j, const struct wml_json_val *cfg); /* id2label, num_labels, or 2 */

/* --- inputs: what the user gave wins over what is given here. Sample values are in [low, high). */
struct wml_value *wml_family_input(struct wml_family_job *j, const char *name, enum wml_dtype dtype, size_t rank,
                                   const int64_t *sizes, double low, double high);
/* Tokens: the sequence's length by the rule of `max_positions`. Text with choices has three axes. */
int64_t wml_family_length(struct wml_family_job *j, int64_t max_positions);
/* pixel_values [batch, channels, height, width]; default_size for configs and preprocessors that name none. */
struct wml_value *wml_family_pixels(struct wml_family_job *j, int64_t default_size);
/* The same of that size, unless the user gave another. */
struct wml_value *wml_family_picture(struct wml_family_job *j, int64_t height, int64_t width);
/* The same, but the preprocessor's size is before the config's. */
struct wml_value *wml_family_pixels_by_preprocessor(struct wml_family_job *j, int64_t default_size);
/* The same, but a preprocessor's crop_size is before the config's size. */
struct wml_value *wml_family_crop(struct wml_family_job *j, int64_t default_size);

extern const struct wml_family *const wml_families[]; /* ends with NULL */
/* The family of a model_type; '_' counts as '-'. NULL: there is none. */
const struct wml_family *wml_family_find(struct wml_str model_type, const struct wml_family_type **type);
/* Its row of exactly that name; NULL: there is none. */
const struct wml_family_task *wml_family_task_of(const struct wml_family *f, struct wml_str task);

#endif
