/* flow/export/internal.h - what the files of `export` share. */
#ifndef WML_FLOW_EXPORT_INTERNAL_H
#define WML_FLOW_EXPORT_INTERNAL_H

#include "export/export.h"
#include "flow/checkpoint.h"
#include "flow/export.h"
#include "flow/staged.h"
#include "graph/graph.h"
#include "os/sys.h"

struct wml_export_run {
    const struct wml_export_args *a; /* as merged below */
    struct wml_export_args args;
    struct wml_ctx *cx;
    struct wml_report *r;
    struct wml_arena arena;
    struct wml_checkpoint checkpoint;
    struct wml_export_source source;
    struct wml_export_plan plan;
    struct wml_export_opts opts;
    WML_VEC(struct wml_family_input) given;
};

enum wml_export_phase { WML_EXPORT_OPEN, WML_EXPORT_BUILD, WML_EXPORT_WRITE, WML_EXPORT_VERIFY, WML_EXPORT_TOTAL, WML_EXPORT_PHASES };

struct wml_export_counts { /* of nodes, but modules and scopes */
    size_t nodes, root_nodes, direct, parent, root_fallbacks, modules, scopes;
};

struct wml_export_verified { /* one output against its reference */
    const char *name;
    double max_abs, largest, cosine;
    bool compared, same;
};

struct wml_export_part { /* one file */
    struct wml_export_run *run;
    const struct wml_family_task *task;
    const char *name; /* of the part; NULL: the model is one file */
    const char *path, *sidecar, *markdown;
    struct wml_export_result made;
    struct wml_staged staged;
    struct wml_export_counts counts;
    struct wml_str *tag; /* of every node, in order: metadata may be stripped before the file is written */
    struct wml_model_size size;
    char timestamp[WML_TIME_TEXT];
    double seconds[WML_EXPORT_PHASES];
    WML_VEC(struct wml_export_verified) verified;
};

/* The files of --config, --export-config, --input-specs, --shape-config and --dynamic-axes into args and opts. */
bool wml_export_read_specs(struct wml_export_run *r, struct wml_err *err);
void wml_export_count(struct wml_export_part *p);
/* Where a file that will be beside the model is until then. */
const char *wml_export_staged(const struct wml_export_part *p, const char *path);
bool wml_export_write_sidecar(const struct wml_export_part *p, struct wml_err *err);
bool wml_export_write_markdown(const struct wml_export_part *p, struct wml_err *err);
/* Runs the written file on the CPU with the reference's inputs. WML_E_VERIFY: outputs differ. */
bool wml_export_verify(struct wml_export_part *p, const char *file, struct wml_err *err);
void wml_export_report(struct wml_export_part *p);

#endif
