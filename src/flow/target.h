/* flow/target.h - what a target says of a model file: whether it loads it, and which nodes it takes. */
#ifndef WML_FLOW_TARGET_H
#define WML_FLOW_TARGET_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "text/json.h"

struct wml_placed_count { int64_t on, elsewhere; }; /* nodes on the target's EP, and on others; -1: not known */
struct wml_target_load { /* what a child says of a file */
    bool ok, absent;            /* absent: the target could not even be asked */
    struct wml_json_doc *reply; /* of job "load"; the caller frees it; NULL: none */
    const char *note;           /* in the arena, or NULL */
    double wall_ms;
};

enum { WML_TARGET_ASK_MS = 60000 };
/* What a target means on this machine: the reply of job "resolve", which the caller frees; NULL: err. */
struct wml_json_doc *wml_target_ask(struct wml_ctx *cx, const struct wml_target_spec *target, uint64_t timeout_ms, bool in_process,
                                    struct wml_err *err);
/* The EP behind `--device npu` alone, as a child finds it. NULL is no error: none, or one without a row. */
const struct wml_ep *wml_target_ask_ep(struct wml_ctx *cx, const struct wml_target_spec *target);
/* Loads a file on the target, in a child. timeout_ms 0: none. */
void wml_target_load(struct wml_ctx *cx, const struct wml_target_spec *target, const char *file, uint64_t timeout_ms, struct wml_arena *arena,
                     struct wml_target_load *out);
struct wml_placed_count wml_target_count(const struct wml_json_val *reply);

#endif
