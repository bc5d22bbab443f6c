/* ort/oracle.h - questions to ONNX Runtime about a model: what types its values have, what a constant
 * part evaluates to, what its optimiser makes of it. CPU EP only; optimisations off except in optimise.
 * Takes protobuf bytes (skeletons with external data ranges) and plain arrays, no IR. */
#ifndef WML_ORT_ORACLE_H
#define WML_ORT_ORACLE_H

#include "ort/ort.h"

struct wml_oracle_type { /* answer for one output of the skeleton; strings live in the arena */
    struct wml_io io;
};

/* Opens the skeleton, whose outputs may lack types, and reads the type of every output. */
bool wml_oracle_types(struct wml_ort *o, const struct wml_model_source *m, struct wml_arena *arena,
                      struct wml_oracle_type **out, size_t *n, struct wml_err *err);

struct wml_oracle_value {
    enum wml_dtype dtype;
    size_t rank;
    const int64_t *dim;
    const void *data; /* heap memory owned by the results */
    size_t bytes;
    bool is_tensor; /* numeric tensor; false: string, sequence, ...: no data */
};
struct wml_oracle_values {
    WML_VEC(struct wml_oracle_value) v; /* one per output, in order */
    void *owner;
};
/* Runs a model without inputs and gives its outputs. */
bool wml_oracle_eval(struct wml_ort *o, const struct wml_model_source *m, struct wml_oracle_values *out,
                     struct wml_err *err);
void wml_oracle_values_release(struct wml_oracle_values *v);

/* Lets ORT optimise the model on the CPU EP up to `level` and save it to `output`. Initializers with external
 * data that it did not touch keep their location, offset and length, relative to the source's folder: no
 * weight moves; new ones are inside. For a pass that takes from the result only what its guard allows. `disable`: names
 * of ORT optimizers to switch off, ';' between, or NULL. */
bool wml_oracle_optimise(struct wml_ort *o, const struct wml_model_source *m, enum wml_opt_level level,
                         const char *disable, const char *output, struct wml_err *err);

#endif
