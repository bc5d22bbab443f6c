/* flow/build/internal.h - the parts of `build`. Internal to this folder. */
#ifndef WML_FLOW_BUILD_INTERNAL_H
#define WML_FLOW_BUILD_INTERNAL_H

#include "base/hash.h"
#include "export/export.h"
#include "flow/build.h"
#include "flow/checkpoint.h"
#include "os/sys.h"

struct wml_build_precision {
    const char *name, *alias; /* "int4", "w4a32"; alias NULL: none */
    enum wml_dtype real;      /* of what is no integer */
    unsigned bits;            /* of the matrices of linear layers; 0: they stay floats */
};

struct wml_build_file {
    const char *name; /* in the bundle */
    uint64_t bytes;
    int64_t modified_ns;
};

struct wml_build_stage {
    const char *name;
    bool reused;
    double seconds;
    WML_VEC(struct wml_build_file) file;
};

struct wml_build_run {
    const struct wml_build_args *a;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_checkpoint checkpoint;
    struct wml_json_doc *generation; /* generation_config.json, or NULL */
    struct wml_export_source source;
    struct wml_export_plan plan;
    struct wml_genai_facts facts;
    bool staged; /* a pipeline of several graphs */
    const struct wml_ep *ep; /* of a pipeline's transformer */
    const struct wml_build_precision *precision;
    bool head_auto;         /* bits of the head are to be found */
    unsigned head_bits;     /* of a pipeline's head; 0: floats */
    double head_agreement;  /* share of the tokens that a head of 4 bits chooses as floats do; 0: not measured */
    int64_t context, window; /* tokens; window 0: no pipeline */
    char key[WML_SHA256_HEX]; /* of inputs and options: what an earlier build must have had for its parts to be reused */
    struct wml_json_doc *before; /* manifest of an earlier build with the same key, or NULL */
    struct wml_buf prompts; /* to calibrate with: JSON, an array of arrays of token ids */
    WML_VEC(struct wml_build_stage) stage;
    uint64_t start;
};

/* Path of a file of the bundle, or of the checkpoint; in the arena. */
const char *wml_build_out(struct wml_build_run *r, const char *name);
const char *wml_build_in(struct wml_build_run *r, const char *name);

/* Makes the named files, paths in the bundle, unless an earlier build left them whole; then notes that in the manifest. */
bool wml_build_do(struct wml_build_run *r, const char *name, const char *const *file, size_t n,
                  bool (*make)(struct wml_build_run *r, struct wml_err *err), struct wml_err *err);

/* manifest.c. Finds what an earlier build left; refuses a folder with a bundle that is not of this command. */
bool wml_build_resume(struct wml_build_run *r, struct wml_err *err);
bool wml_build_is_made(const struct wml_build_run *r, const char *stage, const char *const *file, size_t n);
bool wml_build_write_manifest(const struct wml_build_run *r, bool complete, struct wml_err *err);

/* config.c */
bool wml_build_write_config(struct wml_build_run *r, struct wml_err *err);
/* pipeline.c: members of "decoder" that a pipeline has. */
bool wml_build_put_pipeline(struct wml_build_run *r, struct wml_json *w, struct wml_err *err);
bool wml_build_copy_tokenizer(struct wml_build_run *r, struct wml_err *err);

/* A part of the model, as a file with its weights beside it. */
struct wml_build_graph {
    enum wml_genai_part part;
    const char *file, *data; /* data NULL: the file's name and ".data" */
    const char *share;       /* a graph of the bundle whose file of weights serves this one, too; NULL: none */
    int64_t step;            /* tokens of a transformer's call */
    enum wml_dtype real;     /* of what is no integer */
    enum wml_dtype cache;    /* of a transformer's attention; 0: float32 */
    unsigned bits;           /* of the matrices of linear layers; 0: they stay floats */
};
bool wml_build_part(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_err *err);
bool wml_build_save(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_model *m, struct wml_err *err);
/* quantise.c. What is needed only while a pipeline is made lies in this folder of the bundle. */
#define WML_BUILD_WORK "_winml_build"
/* Ranges of the float transformer's values, ctx.ranges.json and iter.ranges.json beside it; what a head of 4 bits costs, head.json. */
bool wml_build_calibrate(struct wml_build_run *r, struct wml_err *err);
/* A float graph of the bundle's folder as the graph g. */
bool wml_build_quantise(struct wml_build_run *r, const char *floats, const char *ranges, const struct wml_build_graph *g, struct wml_err *err);
/* prompts.c: r->prompts. */
bool wml_build_read_prompts(struct wml_build_run *r, struct wml_err *err);
/* share.c. Weights of m that `with` has, too, will be those of its file; with outlives m. */
bool wml_build_share(struct wml_model *m, struct wml_model *with, struct wml_err *err);
/* staged.c. What the target is; the stages. */
bool wml_build_check_staged(struct wml_build_run *r, struct wml_err *err);
bool wml_build_make_staged(struct wml_build_run *r, struct wml_err *err);
const char *wml_build_head_name(const struct wml_build_run *r); /* "w4a32" */
void wml_build_report(const struct wml_build_run *r, struct wml_report *out);

#endif
