/* task/sample.h - what a model takes, and what one run of it is given. A sample is a struct wml_npys: one array
 * per input, named as the input, so files of arrays, pictures and texts are handed on alike. */
#ifndef WML_TASK_SAMPLE_H
#define WML_TASK_SAMPLE_H

#include "text/npy.h"

struct wml_task_input {
    struct wml_str name;
    enum wml_dtype dtype;
    const int64_t *dim; /* -1: open */
    size_t rank;
};

/* Adds a cleared array that `sample` owns; its elements are written through the pointer. NULL with *err set when
 * the memory cannot be had. The name is copied. */
void *wml_sample_add(struct wml_npys *sample, struct wml_str name, enum wml_dtype dtype, const int64_t *dim,
                     size_t rank, struct wml_err *err);

#endif
