/* passes/weights_concat.h - constants side by side along their last axis. */
#ifndef WML_PASSES_WEIGHTS_CONCAT_H
#define WML_PASSES_WEIGHTS_CONCAT_H

#include "passes/match.h"

enum { WML_CONCAT_MAX = 4 };

/* [rows.., a] [rows.., b] ... -> [rows.., a + b + ...], made while the file is written: the sources stay where they are.
 * One type, one number of rows; NULL: they differ, or cannot be read. */
struct wml_tensor *wml_weights_side_by_side(struct wml_pass_run *r, size_t n, struct wml_tensor *const *part);
/* Vectors one after the other, as a tensor of its own; an absent one counts `length[i]` zeros. */
struct wml_tensor *wml_rows_joined(struct wml_pass_run *r, enum wml_dtype dtype, size_t n, struct wml_tensor *const *part,
                                   const int64_t *length);

#endif
