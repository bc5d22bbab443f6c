/* Nodes per provider; as text with the most frequent operators, as many as fit. */
#include "flow/placement.h"

#include <inttypes.h>

enum { MAX_TEXT = 52, MAX_OPS = 64 };

struct op { struct wml_str name; int64_t n; };

static int by_count(const void *a, const void *b)
{
    const struct op *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : wml_str_cmp(x->name, y->name);
}

static void ops_text(const struct wml_json_val *ops, struct wml_buf *out)
{
    struct op op[MAX_OPS];
    size_t n = 0, shown = 0;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    while (n < MAX_OPS && wml_json_next(ops, &it, &key, &v)) op[n++] = (struct op){key, wml_json_int(v, 0)};
    qsort(op, n, sizeof *op, by_count);
    for (; shown < n && (!shown || out->len + op[shown].name.len + 8 < MAX_TEXT); shown++)
        wml_buf_fmt(out, "%s%.*s %" PRId64, shown ? ", " : "", WML_ARG(op[shown].name), op[shown].n);
    if (shown < wml_json_len(ops)) wml_buf_cstr(out, ", ...");
}

void wml_item_placement(struct wml_item *in, const char *key, struct wml_item *text, const char *title,
                        const struct wml_json_val *placement)
{
    static const struct wml_column columns[] = {{.label = "Provider"}, {.label = "Nodes", .right = true}, {.label = "Operators"}};
    if (!wml_json_is_array(placement)) {
        wml_item_null(in, key, NULL);
        return;
    }
    wml_item_json(in, key, placement);
    struct wml_item *table = wml_item_table(text, NULL, title, columns, WML_COUNT(columns));
    for (size_t i = 0; i < wml_json_len(placement); i++) {
        const struct wml_json_val *e = wml_json_at(placement, i);
        struct wml_item *row = wml_table_row(table);
        struct wml_buf ops = {0};
        ops_text(wml_json_get(e, "op_types"), &ops);
        wml_item_str(row, NULL, "Provider", wml_json_get_str(e, "ep"));
        wml_item_int(row, NULL, "Nodes", wml_json_get_int(e, "nodes", 0), WML_SHOW_COUNT);
        wml_item_str(row, NULL, "Operators", wml_buf_view(&ops));
        wml_buf_release(&ops);
    }
}
