/* export/export.h - from a checkpoint's config and weights to a graph: which family and task it is, then the graph itself.
 * Knows no files: documents and weights come parsed, a model goes out. */
#ifndef WML_EXPORT_EXPORT_H
#define WML_EXPORT_EXPORT_H

#include "families/family.h"
#include "families/genai.h"

struct wml_export_source {
    const char *name;               /* as the user calls the model: for messages and tasks */
    const struct wml_json_val *cfg; /* config.json */
    const struct wml_json_val *pre; /* preprocessor_config.json; NULL: none */
    struct wml_weights *weights; /* NULL: what is built is a sketch (nn/param.h), to look at */
    const char *submodel; /* the only part that is wanted; NULL: all */
    bool inputs_named; /* the user gave shapes of inputs by name: a model in several files has no such list, so one is meant */
};

/* What is to be built: one model, or the parts of a composite. */
struct wml_export_plan {
    const struct wml_family *family;
    const struct wml_family_type *type;
    struct wml_str task; /* as users see it */
    bool by_class;       /* the config's class said it; false: the user, or it is the family's first */
    const struct wml_family_composite *composite; /* NULL: one model */
    const struct wml_family_task *one;
    const struct wml_json_val *cfg; /* config.json, or the part of it that is built */
};

/* task NULL: what the config says. WML_E_UNSUPPORTED names the nearest family, WML_E_USAGE the tasks there are. */
bool wml_export_plan(const struct wml_export_source *s, const char *task, struct wml_export_plan *out, struct wml_err *err);

/* The model_type that winml can build which is nearest to the config's: a part of its name, else a name much like it, else
 * the first that is for the task of its class; NULL: none. */
const char *wml_export_nearest(const struct wml_json_val *cfg);

/* A model of that type can be built for that task. */
bool wml_export_can(struct wml_str model_type, struct wml_str task);

struct wml_export_opts {
    int64_t batch, opset;
    int64_t size[WML_SIZE_COUNT]; /* 0: not given */
    const struct wml_family_input *given;
    size_t n_given;
    enum wml_dtype real; /* of weights: 0 is float32; only parts of bundles take another */
    struct wml_genai_opts genai; /* of parts of bundles */
    struct wml_nn_limits limits; /* lower ones than the usual; 0: the usual */
};

struct wml_export_result { /* memory of the model */
    struct wml_model *model;
    struct wml_str class_name;
    const struct wml_family_input *input;
    size_t n_inputs;
    const struct wml_nn_module *module;
    size_t n_modules;
};

/* The graph of one task of the plan's family. The model borrows from the weights: it must hold them (flow does). */
bool wml_export_build(const struct wml_export_source *s, const struct wml_export_plan *p, const struct wml_family_task *task,
                      const struct wml_export_opts *o, struct wml_export_result *out, struct wml_err *err);

/* What a bundle's config says of the model; the plan's family makes bundles. */
bool wml_export_facts(const struct wml_export_source *s, const struct wml_export_plan *p, struct wml_genai_facts *out, struct wml_err *err);

/* "sentence-similarity" -> "feature-extraction": what is built for a task that is another's. The name itself otherwise. */
struct wml_str wml_task_canonical(struct wml_str task);
/* Of a class name, "BertForMaskedLM" -> "fill-mask"; NULL: it says nothing. */
const char *wml_task_of_class(struct wml_str class_name);
bool wml_task_is_known(struct wml_str task);
/* Names of tasks, without those that are another's; NULL beyond the last. */
const char *wml_task_name(size_t i);

#endif
