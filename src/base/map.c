/* base/map.c - open addressing over an insertion-ordered entry array; removed entries stay as dead
 * rows until the next growth. */
#include "base/map.h"

#include "base/arena.h"
#include "base/hash.h"

void wml_map_release(struct wml_map *m)
{
    if (!m) return;
    free(m->entry);
    free(m->slot);
    *m = (struct wml_map){0};
}

static struct wml_map_entry *find(const struct wml_map *m, struct wml_str key)
{
    if (!m->n_slots) return NULL;
    size_t mask = m->n_slots - 1;
    for (size_t i = (size_t)wml_hash_str(key) & mask; m->slot[i]; i = (i + 1) & mask) {
        struct wml_map_entry *e = &m->entry[m->slot[i] - 1];
        if (e->live && wml_str_eq(e->key, key)) return e;
    }
    return NULL;
}

static void index_entry(struct wml_map *m, size_t at)
{
    size_t mask = m->n_slots - 1;
    size_t i = (size_t)wml_hash_str(m->entry[at].key) & mask;
    while (m->slot[i]) i = (i + 1) & mask;
    m->slot[i] = (uint32_t)(at + 1);
}

/* Drops dead rows, grows when still half full, and indexes anew. */
static void rebuild(struct wml_map *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->len; i++)
        if (m->entry[i].live) m->entry[n++] = m->entry[i];
    m->len = n;
    size_t cap = WML_MAX(n * 2, 16);
    size_t slots = 32;
    while (slots < cap * 2) slots *= 2;
    m->entry = wml_xrealloc(m->entry, wml_array_size(cap, sizeof *m->entry));
    m->cap = cap;
    free(m->slot);
    m->slot = wml_xcalloc(slots, sizeof *m->slot);
    m->n_slots = slots;
    for (size_t i = 0; i < n; i++) index_entry(m, i);
}

void *wml_map_get(const struct wml_map *m, struct wml_str key)
{
    const struct wml_map_entry *e = find(m, key);
    return e ? e->value : NULL;
}

bool wml_map_has(const struct wml_map *m, struct wml_str key)
{
    return find(m, key) != NULL;
}

void *wml_map_put(struct wml_map *m, struct wml_str key, void *value)
{
    struct wml_map_entry *e = find(m, key);
    if (e) {
        void *old = e->value;
        e->value = value;
        return old;
    }
    if (m->len == m->cap) rebuild(m);
    m->entry[m->len] = (struct wml_map_entry){key, value, true};
    index_entry(m, m->len++);
    m->live++;
    return NULL;
}

bool wml_map_remove(struct wml_map *m, struct wml_str key)
{
    struct wml_map_entry *e = find(m, key);
    if (!e) return false;
    e->live = false;
    m->live--;
    return true;
}
