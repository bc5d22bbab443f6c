/* flow/quantize/target.h - what the target says of a quantised model: a child loads the file there and tells which nodes it takes.
 * Nodes that it refuses as integers can be left float: the model is quantised without them, and the target is asked again. */
#ifndef WML_FLOW_QUANTIZE_TARGET_H
#define WML_FLOW_QUANTIZE_TARGET_H

#include "flow/target.h"

struct wml_refused_node { const char *name, *op; };
struct wml_refused_nodes { struct wml_refused_node *at; size_t len, cap; }; /* a WML_VEC */

struct wml_quantize_target { /* zero: nobody asked */
    const char *status;       /* "asked", "not asked", "failed"; NULL: nobody asked */
    const char *note;         /* why it is not "asked", or what else is to be said; NULL */
    struct wml_json_doc *reply; /* the last answer */
    int64_t on, elsewhere;    /* nodes; -1: ORT cannot tell */
    int64_t boundary;         /* of those elsewhere: conversions of the model's own inputs and outputs */
    struct wml_refused_nodes other; /* operators elsewhere: all but Q and DQ */
    struct wml_refused_nodes left;  /* that stay float since the target refuses them as integers */
    bool blamed;              /* the load failed by nodes that `other` names */
    bool refuses_most;        /* too many to leave them float: nothing was left out for it */
};
void wml_quantize_target_release(struct wml_quantize_target *t);

#endif
