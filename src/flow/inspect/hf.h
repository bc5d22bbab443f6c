/* flow/inspect/hf.h - the part of `inspect` that looks at Hugging Face models: a folder, a model id, or only the name of a
 * family or class. Internal to this folder.
 *
 * What is told of inputs, outputs and modules is read off the graph that `export` would write: built on the weights where
 * they are on this machine, else as a sketch of the config (nn/param.h). */
#ifndef WML_FLOW_INSPECT_HF_H
#define WML_FLOW_INSPECT_HF_H

#include "base/map.h"
#include "export/export.h"
#include "flow/flow.h"

struct wml_hf_part { /* one file that export would write */
    const char *name; /* of the part; NULL: the model is one file */
    const struct wml_family_task *task;
    struct wml_export_result made; /* model NULL: it cannot be built */
    struct wml_export_result wide; /* the same for a batch of two: which axes grow with it. model NULL: not known */
    struct wml_err refusal;        /* why export of it would fail; code WML_OK: it would not */
    uint64_t *own;                 /* parameters of every module, without those of modules in it; NULL: no weights */
    uint64_t parameters;           /* of all */
};

enum { WML_HF_PARTS = 3 };
struct wml_hf {
    const struct wml_inspect_args *a;
    struct wml_ctx *cx;
    struct wml_item *root;
    struct wml_arena arena;
    struct wml_buf folder; /* empty: there is none, only a name was given */
    struct wml_json_doc *config, *preprocessor, *processor, *tokenizer, *index;
    struct wml_weights *weights; /* NULL: none are here */
    struct wml_err no_weights;   /* why; code WML_E_NOT_FOUND: simply none */
    struct wml_export_source source;
    struct wml_export_plan plan; /* family NULL: winml has none */
    struct wml_hf_part part[WML_HF_PARTS];
    size_t n_parts;
    struct wml_map counted; /* spans of weights: parts may share them */
    uint64_t parameters;    /* of all parts */
    WML_VEC(const char *) notes; /* for the reader, in the arena */
};

/* hf_open.c: documents and weights of what was asked for. */
bool wml_hf_open(struct wml_hf *h, struct wml_err *err);
void wml_hf_close(struct wml_hf *h);
/* hf_build.c: the parts. Failures are kept in them. */
void wml_hf_build(struct wml_hf *h);
/* Parameters, as opposed to running statistics, counters and tables that are computed. */
bool wml_hf_is_parameter(const struct wml_weight *w);

/* hf_io.c */
void wml_hf_put_inputs(struct wml_hf *h, const struct wml_hf_part *p, struct wml_item *in);
void wml_hf_put_outputs(struct wml_hf *h, const struct wml_hf_part *p, struct wml_item *in);
/* The same as text, with a heading for each. */
void wml_hf_show_io(struct wml_hf *h, const struct wml_hf_part *p);
/* A build config that `export --config` reads. */
void wml_hf_put_build_config(struct wml_hf *h);

/* hf_tree.c: the key `hierarchy`, and the tree. */
void wml_hf_put_tree(struct wml_hf *h);

/* hf_facts.c: checkpoint, processor, io_config, cache. */
void wml_hf_put_checkpoint(struct wml_hf *h);
void wml_hf_put_sizes(struct wml_hf *h);
void wml_hf_put_processor(struct wml_hf *h);
void wml_hf_put_cache(struct wml_hf *h);

void wml_hf_note(struct wml_hf *h, const char *fmt, ...) WML_PRINTF(2, 3);
bool wml_flow_inspect_hf(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);
/* --list-tasks: all names, or those of a model or family. */
bool wml_flow_inspect_tasks(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);
/* Tasks of a family, each once: its own, then those of several files. */
size_t wml_hf_tasks(const struct wml_family *f, const char **out, size_t max);

#endif
