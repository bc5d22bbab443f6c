/* text/npy.h - numpy's .npy arrays and .npz archives (zip, stored or deflated). Format: numpy's NEP 1,
 * versions 1.0 to 3.0. Little-endian C-order data; Fortran order and big endian are converted. Object
 * arrays are refused. Strings (<U, |S) are refused with a hint. */
#ifndef WML_TEXT_NPY_H
#define WML_TEXT_NPY_H

#include "base/dtype.h"
#include "base/rd.h"
#include "base/vec.h"
#include "os/map.h"

enum { WML_NPY_MAX_RANK = 32 };

struct wml_npy {
    struct wml_str name; /* in an archive: member without ".npy"; of a file: its stem */
    enum wml_dtype dtype;
    size_t rank;
    int64_t dim[WML_NPY_MAX_RANK];
    struct wml_span data; /* not aligned */
};

struct wml_npys {
    struct wml_arena arena;
    WML_VEC(struct wml_npy) v;
    WML_VEC(void *) owned; /* inflated members, converted arrays */
    WML_VEC(struct wml_map_file) map; /* the files: stored arrays lie in them */
};

void wml_npys_release(struct wml_npys *a);
/* A .npz file, a .npy file, or a folder of .npy files (each file one array). Told by content. */
bool wml_npy_load(const char *path, struct wml_npys *out, struct wml_err *err);
/* From memory; bytes must outlive out. */
bool wml_npy_parse(struct wml_span bytes, struct wml_str name, struct wml_npys *out, struct wml_err *err);
const struct wml_npy *wml_npys_find(const struct wml_npys *a, struct wml_str name);
/* Writes. .npz members are stored, in order, with fixed times: the same arrays give the same bytes. */
bool wml_npy_save(const char *path, const struct wml_npy *array, struct wml_err *err);
bool wml_npz_save(const char *path, const struct wml_npy *array, size_t n, struct wml_err *err);

#endif
