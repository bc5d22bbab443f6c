/* task/task.h - what `run` can be asked for: one file per task, one row in tasks.def.
 *
 * A task says which inputs and parameters people give it, turns the inputs into arrays for the model (`prepare`, one sample
 * per run of the model), and the model's answers into a result (`finish`). In between somebody else runs the model: a task
 * knows plain arrays and no runtime. */
#ifndef WML_TASK_TASK_H
#define WML_TASK_TASK_H

#include "base/ctx.h"
#include "base/pair.h"
#include "report/report.h"
#include "task/sample.h"
#include "tok/tok.h"

enum wml_field_kind { WML_FIELD_TEXT, WML_FIELD_JSON };
const char *wml_field_kind_name(enum wml_field_kind k); /* "text", "json" */

struct wml_task_field { /* an input as people give it */
    const char *name;
    enum wml_field_kind kind;
    bool optional;
    const char *about;
};

struct wml_task_param {
    const char *name, *kind; /* "integer", "number", "string", "boolean" */
    const char *fallback;    /* as typed; NULL: none */
    const char *about;
};

struct wml_task_work { /* one call */
    struct wml_arena *arena;
    struct wml_ctx *cx;
    const struct wml_task_input *input; /* of the model */
    size_t n_inputs;
    const struct wml_tok *tok;          /* for tasks with texts */
    const struct wml_pair *value, *param; /* fields and parameters that were given, and known by name */
    size_t n_values, n_params;
    /* By prepare. */
    WML_VEC(struct wml_npys) sample;
    WML_VEC(struct wml_tok_ids) ids; /* of texts: the tokens of each sample */
    struct wml_npys *answer; /* the outputs of each sample, for finish */
};

struct wml_task {
    const char *name, *alias; /* alias NULL: none */
    const char *summary;
    const struct wml_task_field *field; /* {0} ends */
    const struct wml_task_param *param; /* {0} ends; NULL: none */
    /* WML_E_USAGE: a value or parameter is wrong. WML_E_UNSUPPORTED: the model is none for this task. */
    bool (*prepare)(struct wml_task_work *w, struct wml_err *err);
    /* Adds "predictions" to root, and their text. */
    bool (*finish)(struct wml_task_work *w, struct wml_item *root, struct wml_err *err);
};

#define TASK(name) extern const struct wml_task wml_task_##name;
#include "task/tasks.def"
#undef TASK
/* No task: arrays to arrays. Its fields are the model's inputs. */
extern const struct wml_task wml_task_tensors;

extern const struct wml_task *const wml_tasks[];
extern const size_t wml_n_tasks;

/* By name or alias. NULL with WML_E_USAGE: the error names those that are there. */
const struct wml_task *wml_task_find(const char *name, struct wml_err *err);
bool wml_task_has_text(const struct wml_task *t);

/* What was given for a field, or a parameter, or else the parameter's default; NULL: nothing. */
const char *wml_task_value(const struct wml_task_work *w, const char *name);
const char *wml_task_param(const struct wml_task_work *w, const struct wml_task *t, const char *name);
/* "true" or "false", case ignored. */
bool wml_task_param_bool(const struct wml_task_work *w, const struct wml_task *t, const char *name, bool *out, struct wml_err *err);

/* A text, or a pair, as the next sample of w. */
bool wml_task_add_text(struct wml_task_work *w, const char *first, const char *second, struct wml_err *err);

/* "predictions": a list of {label, score}; in text numbered lines below "Results:". */
struct wml_item *wml_task_scores(struct wml_item *root);
void wml_task_put_score(struct wml_item *root, struct wml_item *list, size_t rank, struct wml_str label, double score);
/* {"shape", "data"} with all numbers in one list, as members of `in`; and its line of text. */
void wml_task_put_array(struct wml_item *in, const struct wml_npy *a);
/* Text only: name, shape and the first numbers. */
void wml_task_array_line(struct wml_item *in, const struct wml_npy *a);

void wml_task_work_release(struct wml_task_work *w);

#endif
