/* onnx/epctx.h - facts about EPContext nodes: what an EP compiled into a model. */
#ifndef WML_ONNX_EPCTX_H
#define WML_ONNX_EPCTX_H

#include "graph/model.h"

enum wml_epctx_state {
    WML_EPCTX_EMBEDDED,   /* the blob is in the model */
    WML_EPCTX_BESIDE,     /* in a file that is there */
    WML_EPCTX_SECONDARY,  /* inside another node's blob; has none of its own */
    WML_EPCTX_MISSING,    /* the named file is not there, or empty */
    WML_EPCTX_INCOMPLETE, /* a main node without a context */
    WML_EPCTX_ESCAPES     /* the path is absolute or leaves the folder: never opened */
};

struct wml_epctx {
    struct wml_node *node;
    struct wml_str source;    /* EP name, e.g. "QNNExecutionProvider"; absent: not said */
    struct wml_str partition, sdk_version, hardware, notes;
    struct wml_str file;      /* of embed_mode 0, as written */
    uint64_t bytes;           /* of the blob or the file */
    int64_t max_size;
    bool main, embedded;
    enum wml_epctx_state state;
};

struct wml_epctx_list {
    WML_VEC(struct wml_epctx) v;
    size_t other_nodes; /* nodes that are not EPContext */
};

void wml_epctx_list_release(struct wml_epctx_list *l);
/* All of them, sub-graphs included; len 0 for an ordinary model. Looks at the files' sizes only. */
void wml_epctx_find(struct wml_model *m, struct wml_epctx_list *out);
bool wml_model_has_epctx(const struct wml_model *m);
/* false with a message naming the node when a part is missing, incomplete or escapes. */
bool wml_epctx_check(const struct wml_epctx_list *l, struct wml_err *err);
const char *wml_epctx_state_name(enum wml_epctx_state s); /* "embedded", "beside", ... */

#endif
