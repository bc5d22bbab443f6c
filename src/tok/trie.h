/* tok/trie.h - which of many byte strings begin at a place of a text. The children of a node lie side by side, sorted. */
#ifndef WML_TOK_TRIE_H
#define WML_TOK_TRIE_H

#include "base/str.h"

struct wml_trie_key {
    struct wml_str text; /* empty ones are never found */
    uint32_t value;
};

struct wml_trie { /* zero: no strings */
    uint32_t *child;       /* first child of a node; the next node's is where they end */
    unsigned char *label;  /* the byte that leads to a node */
    uint32_t *value;       /* of the string that ends here, + 1 */
    uint32_t root[256];    /* nodes of the first byte; 0: none */
    size_t len;
};

/* Sorts `key`, whose texts are not needed afterwards. Of equal texts the later one counts. */
bool wml_trie_build(struct wml_trie *t, struct wml_trie_key *key, size_t n, struct wml_err *err);
void wml_trie_release(struct wml_trie *t);

/* The node that `byte` leads to, 0: none. `node` 0 is the root. */
static inline uint32_t wml_trie_step(const struct wml_trie *t, uint32_t node, unsigned char byte)
{
    if (node == 0) return t->root[byte];
    uint32_t from = t->child[node], to = t->child[node + 1];
    while (to - from > 8) {
        uint32_t mid = from + (to - from) / 2;
        if (t->label[mid] <= byte) from = mid;
        else to = mid;
    }
    for (; from < to; from++)
        if (t->label[from] == byte) return from;
    return 0;
}

#endif
