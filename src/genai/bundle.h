/* genai/bundle.h - the config of a bundle: a folder with genai_config.json, models and tokenizer files. Plain data, no
 * runtime: any process may read it.
 *
 * A pipeline names its stages in model.decoder.pipeline, each with options of its own; a flat bundle is one stage. Routing
 * changes which EP a stage runs on, here only; what was changed is written into a folder of its own, never into the bundle. */
#ifndef WML_GENAI_BUNDLE_H
#define WML_GENAI_BUNDLE_H

#include "ep/ep.h"
#include "text/json.h"

#define WML_BUNDLE_CONFIG "genai_config.json"
#define WML_COMPILED_DIR "_compiled" /* in the bundle: its stages compiled for this machine */

struct wml_bundle_provider {
    const char *name; /* as the library wants it: "qnn", or the EP's full name */
    const struct wml_ep *ep; /* NULL: none of ours */
    const struct wml_pair *option;
    size_t n_options;
};

struct wml_bundle_stage {
    const char *name;   /* "context"; of a flat bundle "decoder" */
    const char *file;   /* of its model, below the bundle; "" when none is named */
    const char *source; /* file, as the bundle has it; another than `file` once it was compiled */
    const struct wml_bundle_provider *provider; /* without the CPU */
    size_t n_providers;
    bool changed; /* providers are not those of the file */
};

struct wml_bundle {
    struct wml_arena arena;
    struct wml_json_doc *doc;
    const char *dir, *type;
    bool pipeline;          /* type "decoder-pipeline" */
    bool staged;            /* has model.decoder.pipeline */
    int64_t context_length; /* 0: not said */
    struct wml_bundle_stage *stage;
    size_t n_stages;
};

bool wml_bundle_is(const char *dir);
/* How a config names this EP. */
const char *wml_bundle_provider_name(const struct wml_ep *ep);
/* WML_E_USAGE: no bundle. WML_E_FORMAT: its config is no such. A directory of a model file is not looked at. */
bool wml_bundle_open(const char *dir, struct wml_bundle *out, struct wml_err *err);
/* The same from the text of a config. */
bool wml_bundle_parse(struct wml_str config, struct wml_bundle *out, struct wml_err *err);
void wml_bundle_close(struct wml_bundle *b);

/* The EP that all hardware stages name; NULL: none or several (*several). */
const struct wml_ep *wml_bundle_ep(const struct wml_bundle *b, bool *several);
/* "npu", "gpu", "cpu"; NULL: stages differ, or none can be told. */
const char *wml_bundle_device(const struct wml_bundle *b);
/* True when some stage runs on this EP (the CPU: when none needs another). */
bool wml_bundle_runs_on(const struct wml_bundle *b, const struct wml_ep *ep);

struct wml_bundle_override {
    const struct wml_ep *ep;       /* the CPU's row: all stages to the CPU */
    const char *ep_name;           /* of a plugin without a row; then ep is NULL */
    const char *device;            /* as typed; NULL */
    const struct wml_pair *defaults; /* options where no stage has some for that EP */
    size_t n_defaults;
};
/* Stages on another accelerator come to this EP. Stages on the CPU stay there: they are large and made for it. A flat bundle
 * has one stage, which goes where it is sent. False: nothing runs on the EP now. */
bool wml_bundle_route(struct wml_bundle *b, const struct wml_bundle_override *o);
/* Puts options into every stage's provider of this EP (NULL: of every provider); later ones win. */
void wml_bundle_set_options(struct wml_bundle *b, const struct wml_ep *ep, const struct wml_pair *option, size_t n);
/* The model that a stage loads from now on, relative to the folder it is written to. */
void wml_bundle_set_file(struct wml_bundle *b, size_t stage, const char *file);
bool wml_bundle_changed(const struct wml_bundle *b);
/* The config with what was changed; every other member as it was. */
void wml_bundle_print(const struct wml_bundle *b, struct wml_buf *out);

#endif
