/* base/magic.h - what a file is, told from its first bytes: for errors about files of the wrong kind. */
#ifndef WML_BASE_MAGIC_H
#define WML_BASE_MAGIC_H

#include "base/rd.h"

struct wml_magic {
    const char *what; /* "a GGUF model": goes behind "this is" */
    const char *todo; /* a hint, or NULL */
};

/* NULL: nothing known. ONNX files have no magic number. */
const struct wml_magic *wml_magic(struct wml_span bytes);

#endif
