/* tok/trie.c - the trie of trie.h, laid out level by level from sorted keys. */
#include "tok/trie.h"

#include "base/arena.h"

static int by_text(const void *a, const void *b)
{
    const struct wml_trie_key *x = a, *y = b;
    int d = memcmp(x->text.ptr, y->text.ptr, WML_MIN(x->text.len, y->text.len));
    if (d == 0 && x->text.len != y->text.len) d = x->text.len < y->text.len ? -1 : 1;
    return d ? d : x->value < y->value ? -1 : x->value > y->value;
}

/* Bytes that a key does not share with the one before: an upper bound of the nodes is their sum. */
static size_t count_nodes(const struct wml_trie_key *key, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        if (i)
            while (same < key[i].text.len && same < key[i - 1].text.len && key[i].text.ptr[same] == key[i - 1].text.ptr[same])
                same++;
        nodes += key[i].text.len - same;
    }
    return nodes;
}

struct range { /* the keys under a node, which agree in the bytes before */
    uint32_t from, to;
};

/* Makes the children of `node`, `depth` bytes below the root, behind the nodes that are there. */
static void add_children(struct wml_trie *t, const struct wml_trie_key *key, struct range *under, uint32_t node, size_t depth)
{
    struct range r = under[node];
    while (r.from < r.to && key[r.from].text.len == depth) {
        if (depth) t->value[node] = key[r.from].value + 1;
        r.from++;
    }
    for (uint32_t i = r.from; i < r.to;) {
        unsigned char byte = (unsigned char)key[i].text.ptr[depth];
        uint32_t end = i + 1;
        while (end < r.to && (unsigned char)key[end].text.ptr[depth] == byte) end++;
        uint32_t child = (uint32_t)t->len++;
        t->label[child] = byte;
        t->value[child] = 0;
        under[child] = (struct range){i, end};
        if (node == 0) t->root[byte] = child;
        i = end;
    }
}

bool wml_trie_build(struct wml_trie *t, struct wml_trie_key *key, size_t n, struct wml_err *err)
{
    *t = (struct wml_trie){0};
    if (n == 0) return true;
    qsort(key, n, sizeof *key, by_text);
    size_t nodes = count_nodes(key, n);
    if (nodes > UINT32_MAX / 2) return wml_fail(err, WML_E_FORMAT, "a vocabulary with %zu different beginnings is too large", nodes);
    struct range *under = wml_big_alloc((nodes + 1) * sizeof *under, err);
    t->child = wml_big_alloc((nodes + 2) * sizeof *t->child, err);
    t->label = wml_big_alloc(nodes + 1, err);
    t->value = wml_big_alloc((nodes + 1) * sizeof *t->value, err);
    bool ok = under && t->child && t->label && t->value;
    if (ok) {
        under[0] = (struct range){0, (uint32_t)n};
        t->len = 1;
        t->value[0] = 0;
        size_t level_end = 1;
        for (size_t node = 0, depth = 0; node < t->len; node++) {
            if (node == level_end) {
                level_end = t->len;
                depth++;
            }
            t->child[node] = (uint32_t)t->len;
            add_children(t, key, under, (uint32_t)node, depth);
        }
        t->child[t->len] = (uint32_t)t->len;
    } else {
        wml_trie_release(t);
    }
    free(under);
    return ok;
}

void wml_trie_release(struct wml_trie *t)
{
    free(t->child);
    free(t->label);
    free(t->value);
    *t = (struct wml_trie){0};
}
