/* flow/oracle/levels_internal.h - the parts of flow/levels.h. Internal to this folder. */
#ifndef WML_FLOW_ORACLE_LEVELS_INTERNAL_H
#define WML_FLOW_ORACLE_LEVELS_INTERNAL_H

#include "base/map.h"
#include "flow/levels.h"
#include "graph/model.h"

enum { WML_LEVELS_RANK = 16 }; /* of a layer's output, at most */

struct wml_level_value { /* one that is measured, or that passes from its level to a later one */
    struct wml_value *value;
    size_t level, last;             /* which makes it; the last that reads it */
    struct wml_channels *channels;  /* it is a layer's output; or NULL */
    struct wml_node *sum;           /* that adds its correction; NULL: nothing comes behind */
    size_t rank;                    /* once it was seen */
    struct wml_tensor_view *kept;   /* by sample; one block each, at dim */
};

struct wml_levels {
    struct wml_ctx *cx;
    struct wml_model *model;
    struct wml_arena arena;
    struct wml_samples_spec spec;
    struct wml_samples *samples;   /* open from the first level on */
    size_t n_samples, levels;
    struct wml_level_value *value;
    size_t n;
    struct wml_level_value **of;   /* by number of the channels; NULL: constant */
    struct wml_map by_name, input; /* value name -> wml_level_value; name of a model's input -> its number + 1 */
    uint64_t kept_bytes;
    bool keeps;                    /* values go from level to level */
};

/* Puts the sums in, cuts off what the layers do not need, and finds value, of, levels. */
bool wml_levels_plan(struct wml_levels *l, struct wml_channels *c, size_t n, struct wml_err *err);

#endif
