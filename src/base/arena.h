/* base/arena.h - memory for many small things that die together (a model's nodes, names, shapes).
 *
 * Zero is a valid empty arena. Allocation never fails: when the system has no memory the program
 * ends through one function. Sizes that come from input must be bounded by the caller, or go through
 * wml_big_alloc, which can fail. Memory is aligned for any type and not cleared unless said. */
#ifndef WML_BASE_ARENA_H
#define WML_BASE_ARENA_H

#include "base/str.h"

struct wml_arena {
    struct wml_arena_block *head;
    char *at, *end;
    size_t used; /* bytes handed out since the last reset */
};

void wml_arena_release(struct wml_arena *a);
/* Everything handed out becomes invalid; the first block is kept for reuse. */
void wml_arena_reset(struct wml_arena *a);
void *wml_arena_alloc(struct wml_arena *a, size_t size);
void *wml_arena_zalloc(struct wml_arena *a, size_t size); /* cleared */
/* A copy with a NUL after it. An absent string stays absent. */
struct wml_str wml_arena_str(struct wml_arena *a, struct wml_str s);
char *wml_arena_cstr(struct wml_arena *a, struct wml_str s);
struct wml_str wml_arena_fmt(struct wml_arena *a, const char *fmt, ...) WML_PRINTF(2, 3);

#define WML_NEW(arena, type) ((type *)wml_arena_zalloc((arena), sizeof(type)))
#define WML_NEW_ARRAY(arena, type, n) ((type *)wml_arena_zalloc((arena), wml_array_size((n), sizeof(type))))

/* n * size; ends the program on overflow. For counts that are already bounded. */
size_t wml_array_size(size_t n, size_t size);
/* Heap memory of a size that came from input. NULL with *err set when it cannot be had; free(). */
void *wml_big_alloc(uint64_t size, struct wml_err *err);
/* realloc/calloc for small bookkeeping: never NULL. */
void *wml_xrealloc(void *old, size_t size);
void *wml_xcalloc(size_t n, size_t size);
char *wml_xstrdup(const char *s);

#endif
