/* blob.h - the bytes of compiled programs, and the file they lie in. */
#ifndef VNPU_BLOB_H
#define VNPU_BLOB_H

#include "context.h"

enum { VNPU_PATH_MAX = 4096 };

/* A blob is a header and entries; both are appended. */
OrtStatus *vnpu_blob_header(const OrtApi *api, size_t n, struct vnpu_buf *out);
OrtStatus *vnpu_blob_entry(const OrtApi *api, const struct vnpu_program *p, struct vnpu_buf *out);
/* Finds a program by name; a blob with a single one gives that, since nodes may be renamed.
 * *bytes is NULL when there is none. */
OrtStatus *vnpu_blob_find(const OrtApi *api, const unsigned char *blob, size_t n, const char *name,
                          const unsigned char **bytes, size_t *size);

/* The path of the compiled model, as the session says or as ORT would choose; empty: none. */
OrtStatus *vnpu_model_path(const struct vnpu_ep *ep, const OrtGraph *graph, bool writing,
                           char out[VNPU_PATH_MAX]);
/* How many bytes of a path are its folder, separator included. */
size_t vnpu_folder_length(const char *path);
/* Half a file never carries the final name. */
OrtStatus *vnpu_write_file(const OrtApi *api, const char *path, const struct vnpu_buf *b);
OrtStatus *vnpu_read_file(const OrtApi *api, const char *path, struct vnpu_buf *b);

#endif
