/* flow/inspect/hf_tree.c - the modules of a model. Layers of the framework (Linear, Conv2d, ...) are not shown: their
 * parameters count for the module around them. */
#include <inttypes.h>
#include "flow/inspect/hf.h"
#include "text/words.h"

struct twig {
    const struct wml_nn_module *module;
    struct wml_str name; /* within the one above */
    uint64_t own, all;   /* parameters */
    size_t first, last, next; /* children and sisters; 0: none, since 0 is the root */
};

struct tree {
    const struct wml_hf_part *part;
    struct twig *at;
    size_t modules; /* that are shown */
};

static struct tree grow(struct wml_hf *h, const struct wml_hf_part *p)
{
    struct tree t = {.part = p, .at = WML_NEW_ARRAY(&h->arena, struct twig, p->made.n_modules + 1)};
    for (size_t i = 0; i < p->made.n_modules; i++) {
        const struct wml_nn_module *m = &p->made.module[i];
        struct twig *x = &t.at[i];
        if (i && m->layer) continue;
        size_t up = m->parent;
        while (p->made.module[up].layer) up = p->made.module[up].parent;
        const struct wml_str above = p->made.module[up].path;
        *x = (struct twig){.module = m, .name = above.len ? wml_str_sub(m->path, above.len + 1, m->path.len) : m->path, .own = p->own ? p->own[i] : 0};
        t.modules++;
        if (!i) continue;
        if (t.at[up].last) t.at[t.at[up].last].next = i;
        else t.at[up].first = i;
        t.at[up].last = i;
    }
    for (size_t i = p->made.n_modules; i-- > 0;) { /* modules come after those they are in */
        struct twig *x = &t.at[i];
        x->all += x->own;
        if (!x->module || !i) continue;
        size_t up = x->module->parent;
        while (p->made.module[up].layer) up = p->made.module[up].parent;
        t.at[up].all += x->all;
    }
    return t;
}

/* -------------------------------------------------------------------- JSON */

static void put_count(struct wml_item *o, const char *key, const struct wml_hf_part *p, uint64_t n)
{
    if (p->own) wml_item_int(o, key, NULL, (int64_t)n, WML_SHOW_COUNT);
    else wml_item_null(o, key, NULL);
}

static void put_twig(const struct tree *t, size_t i, unsigned depth, struct wml_item *list)
{
    const struct twig *x = &t->at[i];
    struct wml_item *o = wml_item_object(list, NULL, NULL);
    wml_item_str(o, "name", NULL, x->name.len ? x->name : wml_str(x->module->class_name));
    wml_item_cstr(o, "class_name", NULL, x->module->class_name);
    wml_item_str(o, "module_path", NULL, x->module->path);
    wml_item_int(o, "depth", NULL, depth, WML_SHOW_PLAIN);
    put_count(o, "num_parameters", t->part, x->own);
    put_count(o, "total_parameters", t->part, x->all);
    struct wml_item *children = wml_item_array(o, "children", NULL);
    for (size_t k = x->first; k; k = t->at[k].next) put_twig(t, k, depth + 1, children);
}

/* -------------------------------------------------------------------- text */

/* The same classes with the same sizes, whatever they are called. */
static bool alike(const struct tree *t, size_t a, size_t b)
{
    const struct twig *x = &t->at[a], *y = &t->at[b];
    if (strcmp(x->module->class_name, y->module->class_name) != 0 || x->own != y->own || x->all != y->all) return false;
    size_t i = x->first, k = y->first;
    while (i && k && alike(t, i, k)) i = t->at[i].next, k = t->at[k].next;
    return !i && !k;
}

struct lines {
    struct wml_item *section;
    struct wml_buf indent;
    size_t width; /* of the tree */
};

static void show_twig(const struct tree *t, size_t i, size_t times, size_t last, bool ends, struct lines *l);

static void show_children(const struct tree *t, size_t i, struct lines *l)
{
    for (size_t k = t->at[i].first, next; k; k = next) {
        size_t times = 1, last = k;
        for (next = t->at[k].next; next && alike(t, k, next); next = t->at[next].next) times++, last = next;
        show_twig(t, k, times, last, !next, l);
    }
}

static void show_twig(const struct tree *t, size_t i, size_t times, size_t last, bool ends, struct lines *l)
{
    const struct twig *x = &t->at[i];
    const size_t indent = l->indent.len;
    struct wml_buf line = {0}, count = {0};
    wml_buf_str(&line, wml_buf_view(&l->indent));
    if (i) wml_buf_cstr(&line, ends ? "`- " : "|- ");
    if (i) wml_buf_fmt(&line, "%.*s", WML_ARG(x->name));
    if (times > 1) wml_buf_fmt(&line, " .. %.*s", WML_ARG(t->at[last].name));
    wml_buf_fmt(&line, "%s%s", i ? ": " : "", x->module->class_name);
    if (t->part->own) wml_count_text(&count, x->all);
    if (times > 1) wml_buf_fmt(&count, "%sx %zu", count.len ? "  " : "", times);
    while (count.len && line.len < l->width) wml_buf_char(&line, ' ');
    wml_item_line(l->section, WML_TONE_PLAIN, "%s%s%s", wml_buf_text(&line), count.len ? "  " : "", wml_buf_text(&count));
    if (i) wml_buf_cstr(&l->indent, ends ? "   " : "|  ");
    show_children(t, i, l);
    l->indent.len = indent;
    if (l->indent.ptr) l->indent.ptr[indent] = 0;
    wml_buf_release(&line);
    wml_buf_release(&count);
}

static void show(struct wml_hf *h, const struct tree *t)
{
    struct lines l = {.width = 60};
    const struct wml_str title = t->part->name ? wml_arena_fmt(&h->arena, "Modules of the %s", t->part->name) : WML_STR("Modules");
    l.section = wml_item_object(h->root, NULL, wml_item_name(h->root, title));
    show_twig(t, 0, 1, 0, true, &l);
    wml_buf_release(&l.indent);
}

void wml_hf_put_tree(struct wml_hf *h)
{
    struct tree tree[WML_HF_PARTS];
    size_t n = 0, shown = 0, all = 0;
    bool counted = true;
    for (size_t i = 0; h->a->hierarchy && i < h->n_parts; i++) {
        if (!h->part[i].made.model) continue;
        tree[n] = grow(h, &h->part[i]);
        shown += tree[n].modules;
        all += h->part[i].made.n_modules;
        counted = counted && h->part[i].own;
        n++;
    }
    if (!n) {
        wml_item_null(h->root, "hierarchy", NULL);
        return;
    }
    struct wml_item *o = wml_item_object(h->root, "hierarchy", NULL);
    wml_item_cstr(o, "root_class", NULL, tree[0].at[0].module->class_name);
    if (counted) wml_item_int(o, "total_parameters", NULL, (int64_t)h->parameters, WML_SHOW_COUNT);
    else wml_item_null(o, "total_parameters", NULL);
    wml_item_int(o, "hf_module_count", NULL, (int64_t)shown, WML_SHOW_COUNT);
    wml_item_int(o, "nn_module_count", NULL, (int64_t)all, WML_SHOW_COUNT);
    struct wml_item *list = wml_item_array(o, "hf_modules", NULL);
    for (size_t i = 0; i < n; i++) {
        put_twig(&tree[i], 0, 0, list);
        show(h, &tree[i]);
    }
}
