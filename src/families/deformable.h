/* families/deformable.h - attention over a few places of pictures, which the query chooses (Zhu et al. 2020). */
#ifndef WML_FAMILIES_DEFORMABLE_H
#define WML_FAMILIES_DEFORMABLE_H

#include "families/family.h"

enum { WML_DEFORMABLE_LEVELS = 8 };

struct wml_deformable {
    int64_t hidden, heads;
    size_t levels;
    int64_t size[WML_DEFORMABLE_LEVELS][2]; /* rows and columns of each picture */
    int64_t points[WML_DEFORMABLE_LEVELS];  /* places looked at in each */
    bool nearest;                           /* the nearest place counts, at the edge beyond it; else what lies between, and nothing beyond */
    double scale;                           /* what an offset of 1 means, in sizes of the reference box; see below */
};

/* "sampling_offsets" and "attention_weights" in the scope, over query [batch, n, hidden]. memory [batch, places of all levels,
 * hidden]: the values. reference [batch or 1, n, 4]: centre and size of a box, 0 .. 1, and an offset is a part of that box; or
 * [batch or 1, n, 2]: a centre, and an offset is in places of the level. [batch, n, hidden], heads side by side. */
struct wml_value *wml_deformable(struct wml_nn *b, const struct wml_deformable *d, struct wml_value *query, struct wml_value *reference,
                                 struct wml_value *memory);

#endif
