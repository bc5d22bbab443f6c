/* base/pair.h - a key and its value: options, metadata. */
#ifndef WML_BASE_PAIR_H
#define WML_BASE_PAIR_H

#include <stddef.h>
#include <string.h>

struct wml_pair {
    const char *key, *value;
};

/* The value of a key, or NULL. */
static inline const char *wml_pair_find(const struct wml_pair *p, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].key, key) == 0) return p[i].value;
    return NULL;
}

#endif
