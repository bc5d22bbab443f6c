/* base/arena.c - bump allocation in blocks that double from 16 KiB to 4 MiB. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdalign.h>

enum { FIRST_BLOCK = 16 * 1024, LAST_BLOCK = 4 * 1024 * 1024 };

struct wml_arena_block {
    struct wml_arena_block *next;
    size_t size;
    alignas(max_align_t) char bytes[];
};

/* The one way in which running out of small memory ends the program. */
static WML_NORETURN void out_of_memory(void)
{
    fputs("winml: out of memory\n", stderr);
    abort();
}

size_t wml_array_size(size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) out_of_memory();
    return n * size;
}

void *wml_xrealloc(void *old, size_t size)
{
    void *ptr = realloc(old, size ? size : 1);
    if (!ptr) out_of_memory();
    return ptr;
}

void *wml_xcalloc(size_t n, size_t size)
{
    void *ptr = calloc(n ? n : 1, size ? size : 1);
    if (!ptr) out_of_memory();
    return ptr;
}

char *wml_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = wml_xrealloc(NULL, n);
    memcpy(copy, s, n);
    return copy;
}

void *wml_big_alloc(uint64_t size, struct wml_err *err)
{
    void *ptr = size <= SIZE_MAX / 2 ? malloc(size ? (size_t)size : 1) : NULL;
    if (!ptr)
        wml_fail(err, WML_E_MEMORY, "cannot allocate %llu bytes", (unsigned long long)size);
    return ptr;
}

void wml_arena_release(struct wml_arena *a)
{
    if (!a) return;
    for (struct wml_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct wml_arena){0};
}

void wml_arena_reset(struct wml_arena *a)
{
    struct wml_arena_block *keep = a->head;
    if (!keep) return;
    for (struct wml_arena_block *b = keep->next, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    keep->next = NULL;
    *a = (struct wml_arena){.head = keep, .at = keep->bytes, .end = keep->bytes + keep->size};
}

static void add_block(struct wml_arena *a, size_t need)
{
    size_t size = a->head ? WML_MIN(a->head->size * 2, (size_t)LAST_BLOCK) : FIRST_BLOCK;
    size = WML_MAX(size, need);
    if (size > SIZE_MAX - sizeof(struct wml_arena_block)) out_of_memory();
    struct wml_arena_block *b = malloc(sizeof *b + size);
    if (!b) out_of_memory();
    b->size = size;
    b->next = a->head;
    a->head = b;
    a->at = b->bytes;
    a->end = b->bytes + size;
}

void *wml_arena_alloc(struct wml_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align) out_of_memory();
    size = (WML_MAX(size, 1) + align - 1) & ~(align - 1);
    if ((size_t)(a->end - a->at) < size) add_block(a, size);
    void *ptr = a->at;
    a->at += size;
    a->used += size;
    return ptr;
}

void *wml_arena_zalloc(struct wml_arena *a, size_t size)
{
    return memset(wml_arena_alloc(a, size), 0, size);
}

struct wml_str wml_arena_str(struct wml_arena *a, struct wml_str s)
{
    if (!s.ptr) return s;
    return (struct wml_str){wml_arena_cstr(a, s), s.len};
}

char *wml_arena_cstr(struct wml_arena *a, struct wml_str s)
{
    char *copy = wml_arena_alloc(a, s.len + 1);
    if (s.len) memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

struct wml_str wml_arena_fmt(struct wml_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = wml_arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    text[0] = '\0';
    if (n > 0) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return (struct wml_str){text, n < 0 ? 0 : (size_t)n};
}
