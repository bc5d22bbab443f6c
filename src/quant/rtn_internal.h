/* quant/rtn_internal.h - what the files of the method "rtn" share. Internal to src/quant. */
#ifndef WML_QUANT_RTN_INTERNAL_H
#define WML_QUANT_RTN_INTERNAL_H

#include "graph/edit.h"
#include "quant/quant.h"

struct wml_rtn {
    struct wml_quant_run *r;
    struct wml_err *err;
    unsigned bits;
    size_t block_size;
    bool has_int4;       /* tensors of 4-bit types were made */
    struct wml_map made; /* by value and form: struct wml_rtn_weight */
};

struct wml_rtn_weight { struct wml_value *q, *scale, *zero; }; /* q NULL: it stays float; zero NULL: symmetric */

/* v, a constant whose last two sizes are those of the matrix, for MatMulNBits; or v, a table of two sizes, for
 * GatherBlockQuantized. Made once. A weight that holds NaN or infinities stays float, with a note. false: *t->err is set. */
bool wml_rtn_matrix(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out);
bool wml_rtn_table(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out);

#endif
