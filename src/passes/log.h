/* passes/log.h - the account of single changes, kept when somebody asks for it. */
#ifndef WML_PASSES_LOG_H
#define WML_PASSES_LOG_H

#include "base/arena.h"
#include "base/vec.h"

struct wml_pass;

/* What a pass did to which node, or why it left one alone that looked right. */
struct wml_pass_event {
    const struct wml_pass *pass;
    struct wml_str op_type, node;
    struct wml_str reason; /* absent: applied */
    size_t round;
};
struct wml_pass_log { /* zero: empty */
    struct wml_arena arena;
    WML_VEC(struct wml_pass_event) v;
};
void wml_pass_log_release(struct wml_pass_log *log);

#endif
