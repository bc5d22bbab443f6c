/* flow/oracle.h - the passes' questions to ONNX Runtime: joins the graph with ort/oracle.h by skeletons. */
#ifndef WML_FLOW_ORACLE_H
#define WML_FLOW_ORACLE_H

#include "base/map.h"
#include "graph/model.h"
#include "ort/oracle.h"
#include "passes/passes.h"

struct wml_flow_oracle { /* the argument of the callbacks */
    struct wml_ctx *cx;
    bool any_rank;      /* element types are worth it, whether or not there is a shape */
    size_t sessions;    /* that were opened */
    size_t open, nodes; /* values still open, and nodes, after the last question about types */
    struct wml_map answer; /* types by what a node looks like; of large graphs (oracle_types.c) */
    struct wml_arena arena;
};

void wml_flow_oracle_release(struct wml_flow_oracle *o);
/* Callbacks over the oracle; `o` must outlive the env. */
struct wml_env wml_flow_env(struct wml_flow_oracle *o);
/* A CPU session on a model in memory, weights as ranges of its files: nothing is copied. part: what of it
 * (onnx/onnx.h); NULL: all. */
struct wml_skeleton_opts;
bool wml_flow_session(struct wml_ctx *cx, struct wml_model *m, const struct wml_skeleton_opts *part,
                      const struct wml_session_opts *opts, struct wml_session **out, struct wml_err *err);

#endif
