/* base/vec.c - growth of the arrays of vec.h: doubling from 4. */
#include "base/vec.h"

void *wml_vec_grow(void *at, size_t *cap, size_t size)
{
    *cap = *cap ? wml_array_size(*cap, 2) : 4;
    return wml_xrealloc(at, wml_array_size(*cap, size));
}

void *wml_vec_grow_in(struct wml_arena *a, const void *at, size_t len, size_t *cap, size_t size)
{
    *cap = *cap ? wml_array_size(*cap, 2) : 4;
    void *grown = wml_arena_alloc(a, wml_array_size(*cap, size));
    if (len) memcpy(grown, at, len * size);
    return grown;
}
