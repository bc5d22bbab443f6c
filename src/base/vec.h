/* base/vec.h - typed growing arrays.
 *
 *     struct names { WML_VEC(struct wml_str) v; } or   WML_VEC(int) v = {0};
 *     WML_PUSH(&v, x);   for (size_t i = 0; i < v.len; i++) use(v.at[i]);   WML_VEC_RELEASE(&v);
 *
 * The heap form owns its memory. The arena form (WML_PUSH_IN) leaves old storage to the arena; never
 * mix the two on one array. Growth never fails (see arena.h): bound counts that come from input. */
#ifndef WML_BASE_VEC_H
#define WML_BASE_VEC_H

#include "base/arena.h"

#define WML_VEC(type)                                                                              \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t len, cap;                                                                           \
    }

#define WML_PUSH(v, value)                                                                         \
    ((v)->len < (v)->cap ? (void)0                                                                 \
                         : (void)((v)->at = wml_vec_grow((v)->at, &(v)->cap, sizeof *(v)->at)),    \
     (void)((v)->at[(v)->len++] = (value)))

#define WML_PUSH_IN(arena, v, value)                                                               \
    ((v)->len < (v)->cap                                                                           \
         ? (void)0                                                                                 \
         : (void)((v)->at =                                                                        \
                      wml_vec_grow_in((arena), (v)->at, (v)->len, &(v)->cap, sizeof *(v)->at)),    \
     (void)((v)->at[(v)->len++] = (value)))

#define WML_VEC_RELEASE(v) (free((v)->at), (v)->at = NULL, (v)->len = (v)->cap = 0)

/* Removes entry i, keeping the order. */
#define WML_REMOVE(v, i)                                                                           \
    (memmove((v)->at + (i), (v)->at + (i) + 1, ((v)->len - (i) - 1) * sizeof *(v)->at), (v)->len--)

void *wml_vec_grow(void *at, size_t *cap, size_t size);
void *wml_vec_grow_in(struct wml_arena *a, const void *at, size_t len, size_t *cap, size_t size);

#endif
