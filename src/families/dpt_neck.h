/* families/dpt_neck.h - dense prediction (Ranftl et al. 2021): states of several layers become pictures of several sizes, which
 * are joined from the last to the first. */
#ifndef WML_FAMILIES_DPT_NECK_H
#define WML_FAMILIES_DPT_NECK_H

#include "families/family.h"

enum { WML_DPT_STATES = 8 };
enum wml_dpt_readout { WML_DPT_IGNORE, WML_DPT_ADD, WML_DPT_PROJECT }; /* what becomes of the first token */

struct wml_dpt_neck {
    size_t n; /* states */
    int64_t width[WML_DPT_STATES], fusion;
    double factor[WML_DPT_STATES];
    enum wml_dpt_readout readout;
    struct wml_str act;  /* of the projecting readout */
    size_t fused;        /* how many of them are joined: n, unless the head takes an earlier one */
    bool to_next;        /* a joined picture gets the size of the state that comes next, else twice its own */
};

struct wml_dpt_states {
    struct wml_value *state[WML_DPT_STATES]; /* [batch, 1 + rows * columns, hidden], or [batch, channels, height, width] */
    int64_t grid[2], hidden;                 /* of those that are tokens */
};

/* neck_hidden_sizes, reassemble_factors, fusion_hidden_size; neck->width, fusion come in with their defaults, n with their number. */
void wml_dpt_neck_params(struct wml_family_job *j, struct wml_dpt_neck *neck);
/* "neck" in the scope: [batch, fusion, height, width]. */
struct wml_value *wml_dpt_neck(struct wml_nn *b, const struct wml_dpt_neck *p, const struct wml_dpt_states *s);

#endif
