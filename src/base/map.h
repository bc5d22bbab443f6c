/* base/map.h - hash map from string slices to pointers, insertion order kept.
 *
 * Keys are not copied: they must outlive the map. Zero is a valid empty map; memory is on the heap. */
#ifndef WML_BASE_MAP_H
#define WML_BASE_MAP_H

#include "base/str.h"

struct wml_map_entry {
    struct wml_str key;
    void *value;
    bool live; /* false: removed; skip it when walking */
};

struct wml_map {
    struct wml_map_entry *entry; /* walk entry[0 .. len) in insertion order */
    size_t len, cap, live;
    uint32_t *slot; /* index + 1 into entry, 0 empty */
    size_t n_slots;
};

void wml_map_release(struct wml_map *m);
/* The stored pointer, or NULL. */
void *wml_map_get(const struct wml_map *m, struct wml_str key);
bool wml_map_has(const struct wml_map *m, struct wml_str key);
/* Adds or replaces; returns the pointer that was there before, or NULL. */
void *wml_map_put(struct wml_map *m, struct wml_str key, void *value);
bool wml_map_remove(struct wml_map *m, struct wml_str key);

#endif
