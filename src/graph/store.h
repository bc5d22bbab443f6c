/* graph/store.h - what a model owns beside its arena: files it borrows bytes from, heap blocks, names.
 *
 * The graph folder knows nothing of the system: whoever loads a model plugs in how further files
 * (external data) are opened. */
#ifndef WML_GRAPH_STORE_H
#define WML_GRAPH_STORE_H

#include "graph/model.h"
#include "graph/tensor.h"

/* A file whose bytes the model uses. Several tensors share one. */
struct wml_source {
    struct wml_source *next;
    struct wml_str path;     /* as it can be opened; absent: memory */
    struct wml_str location; /* as external data spells it; absent: the model file itself */
    struct wml_span bytes;
    intptr_t file; /* descriptor or HANDLE, open: its bytes may be copied in the kernel. 0: memory */
    void *handle;
    void (*close)(void *handle);
    void (*drop)(struct wml_span s); /* takes read bytes out of memory; NULL: cannot */
};

struct wml_store {
    struct wml_str path, folder; /* of the model file; absent when it came from memory */
    /* Opens location (relative to the folder; the rules of external data are the opener's business)
     * and returns a source with bytes, handle and close set. NULL: external data cannot be read. */
    bool (*open)(struct wml_model *m, struct wml_str location, struct wml_source *out,
                 struct wml_err *err);
    WML_VEC(void *) block; /* malloc'ed, freed with the model */
    WML_VEC(struct wml_map *) map; /* of graphs in the arena; released with the model */
    struct wml_map sources;        /* by location */
    struct wml_map names; /* every name in use or once in use; filled on first need */
    bool names_ready;
    uint64_t n_marks; /* given out by wml_model_mark */
    bool was_sorted; /* no graph of the file had to be sorted */
};

/* The source for an external location, opened once. */
bool wml_model_source(struct wml_model *m, struct wml_str location, struct wml_source **out,
                      struct wml_err *err);
/* The source whose bytes hold the span, or NULL: then the span is on the heap or in the arena. */
struct wml_source *wml_model_source_of(const struct wml_model *m, struct wml_span s);
/* The bytes will not be read again soon: large ones of a file leave the process's memory. */
void wml_model_drop(const struct wml_model *m, struct wml_span s);
/* The same for all that was read of the files so far: before something else needs the memory. */
void wml_model_drop_all(const struct wml_model *m);
struct wml_source *wml_model_add_source(struct wml_model *m, const struct wml_source *s);
void wml_model_own(struct wml_model *m, void *block); /* freed with the model */
void wml_model_own_map(struct wml_model *m, struct wml_map *map);
/* Parses location, offset, length of t->external into t->ext. */
bool wml_tensor_parse_external(struct wml_tensor *t, struct wml_err *err);

#endif
