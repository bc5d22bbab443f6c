/* flow/genai/compile.h - the parts of compiling a bundle's stages. Internal to this folder.
 *
 * <bundle>/_compiled/  <stage>_<ep>_ctx.onnx             EPContext model
 *                      <stage>_<ep>_ctx.onnx.meta.json   what it was made of
 *                      *.bin                             contexts, by the names that models refer to
 *                      genai_config.json                 with the models of compiled stages
 *                      everything else of the bundle     links, or copies
 *                      .winml_bundle_complete            written last
 * A new one is made beside it and renamed. */
#ifndef WML_FLOW_GENAI_COMPILE_H
#define WML_FLOW_GENAI_COMPILE_H

#include "flow/genai/internal.h"

#define WML_COMPILED_MARK ".winml_bundle_complete"

struct wml_genai_group { /* stages of one EP with the same options: one context for all */
    const struct wml_bundle_provider *provider;
    size_t stage[256], n;
    const char *key; /* JSON: what decides the result, but for the sources */
    bool fresh;
};

/* "context_qnn_ctx.onnx". */
const char *wml_genai_artifact(struct wml_genai_run *r, size_t stage, const struct wml_bundle_provider *p);
/* Of the meta file beside it. */
const char *wml_genai_meta_path(struct wml_genai_run *r, const char *dir, const char *artifact);
/* Fills key. */
void wml_genai_make_key(struct wml_genai_run *r, struct wml_genai_group *g);
/* All artifacts of the group in dir are whole and made of what would be taken now. */
bool wml_genai_is_fresh(struct wml_genai_run *r, const struct wml_genai_group *g, const char *dir);
/* Writes the meta file of a stage whose artifact lies in dir. sha: of its source, wml_compile_source_sha. */
bool wml_genai_write_meta(struct wml_genai_run *r, const struct wml_genai_group *g, size_t stage, const char *sha, const char *dir, struct wml_err *err);
/* Artifacts of a stage, its meta file too, from one folder to another. */
bool wml_genai_copy_stage(struct wml_genai_run *r, const struct wml_genai_group *g, size_t stage, const char *from, const char *to,
                          struct wml_err *err);

/* <cache>/genai/<hash of the bundle's path>: for bundles that cannot be written to, and for the lock. */
const char *wml_genai_cache_place(struct wml_genai_run *r);
/* The folder that holds, or will hold, the compiled bundle: `parent` of it can be written. */
bool wml_genai_compiled_place(struct wml_genai_run *r, const char **parent, const char **dir, const char **temp, struct wml_err *err);
/* dir holds exactly what would be made of the bundle now. */
bool wml_genai_is_complete(struct wml_genai_run *r, const char *dir);
/* Links, config, mark into temp; then temp becomes dir. */
bool wml_genai_complete(struct wml_genai_run *r, const char *parent, const char *temp, const char *dir, struct wml_err *err);

#endif
