/* flow/build.h - the verb `build`: a checkpoint to a GenAI bundle, a folder that text-generation runtimes load. */
#ifndef WML_FLOW_BUILD_H
#define WML_FLOW_BUILD_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "report/report.h"

enum { WML_BUILD_SAMPLES = 30 }; /* prompts to calibrate with unless it is said */

struct wml_build_args {
    const char *model;  /* a folder with config.json and weights, or a model id */
    const char *output; /* folder; made when it is not there */
    bool rebuild;       /* nothing of an earlier build is reused */
    const char *export_type; /* "generic", "plain", "optimized"; NULL: not said */
    const char *precision;   /* "auto", "fp32", "fp16", "int4", ...; letter case does not count */
    int64_t max_cache_len;   /* tokens that prompt and answer may have; 0: as many as the model has positions */
    unsigned block_size;     /* of 4-bit weights; 0: 32 */
    /* of "optimized" */
    struct wml_target_spec target; /* what the stages of the transformer run on; zero: QNN's NPU */
    int64_t window;                /* tokens of the prompt that go through the transformer at once; 0: 64 */
    const char *head_precision;    /* of the head over the vocabulary, "w4a32", ...; NULL: that of `precision` */
    const char *text_file;         /* prompts to calibrate with, one a line; NULL: built-in ones */
    int64_t samples;               /* of them at most */
};

/* Files appear whole, the bundle's config last: a folder without it is no bundle yet. manifest.json says what was made of
 * what, and lets a later build go on behind the last part that is complete. */
bool wml_flow_build(const struct wml_build_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
