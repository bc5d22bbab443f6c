/* worker/feed.h - inputs for a model: read from .npz / .npy, or generated.
 *
 * Generated values depend only on the seed, the input's name and its shape: floats uniform in [0, 1) (see wide),
 * integers and bools in {0, 1}, unless a range says otherwise. Unknown dimensions are taken, in order,
 * from `shape` (of an input; -1 in it: not known), `dim` (a symbol), the batch size (first dimension), and the
 * fallback sizes 128, 224, 224 for the dimensions 1, 2, 3, else 128; rank unknown: [batch]. */
#ifndef WML_WORKER_FEED_H
#define WML_WORKER_FEED_H

#include "ort/ort.h"
#include "text/json.h"

struct wml_feed_shape { struct wml_str name; const int64_t *dim; size_t rank; };
struct wml_feed_dim { struct wml_str symbol; int64_t size; };
struct wml_feed_range { struct wml_str name; double low, high; }; /* integers: low <= x <= high */

struct wml_feed_spec { /* zero is valid */
    uint64_t seed;
    int64_t batch; /* 0: 1 */
    const struct wml_feed_shape *shape; size_t n_shapes;
    const struct wml_feed_dim *dim; size_t n_dims;
    const struct wml_feed_range *range; size_t n_ranges;
    const char *data; /* .npz, .npy or a folder of .npy; NULL: generate */
    bool small; /* unknown dimensions without a rule become 1 (checks of compile and optimize) */
    int64_t open; /* with small: they become this; 0: 1 */
    bool wide;    /* floats without a range: in [-2, 2), so that both signs are tried */
};

struct wml_feed { /* owns everything it points at */
    struct wml_arena arena;
    WML_VEC(struct wml_tensor_view) view; /* in the order of the session's inputs */
    WML_VEC(void *) owned;
    WML_VEC(const char *) note; /* "input 'x': dimension 2 is not known, 224 is used" */
    int64_t batch; /* leading dimension of the first input of rank >= 1; 1 when there is none */
};

/* WML_E_USAGE: names or shapes of the data do not fit. WML_E_UNSUPPORTED: an input that is no numeric
 * tensor (named). */
bool wml_feed_make(const struct wml_io *input, size_t n, const struct wml_feed_spec *spec,
                   struct wml_feed *out, struct wml_err *err);
/* From arrays: one for every input, and no other. path: what messages call them. */
struct wml_npys;
bool wml_feed_arrays(const struct wml_io *input, size_t n, const struct wml_npys *arrays, const char *path, struct wml_feed *out,
                     struct wml_err *err);
void wml_feed_release(struct wml_feed *f);

/* Specs in job requests: {"seed":0,"batch":1,"small":false,"shapes":{"x":[1,3]},"dims":{"N":1},
 * "ranges":{"ids":[0,9]},"data":"file"}; absent members are zero. Strings alias the document. */
void wml_feed_spec_put(struct wml_json *j, const struct wml_feed_spec *spec);
bool wml_feed_spec_get(const struct wml_json_val *v, struct wml_arena *arena, struct wml_feed_spec *out,
                       struct wml_err *err);

#endif
