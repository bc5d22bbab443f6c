/* text/npz.h - the archive half of npy.h. Internal to src/text. */
#ifndef WML_TEXT_NPZ_H
#define WML_TEXT_NPZ_H

#include "text/npy.h"

/* Every member that ends in .npy. */
bool wml_npz_parse(struct wml_span bytes, struct wml_npys *out, struct wml_err *err);
/* The bytes before an array's elements in a .npy file. */
void wml_npy_header(const struct wml_npy *a, struct wml_buf *out);

#endif
