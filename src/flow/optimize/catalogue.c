/* The catalogue of capabilities: as a list, or, with -v, with what each does. */
#include "flow/optimize.h"

#include "graph/edit.h"

static bool is_wanted(const struct wml_pass *p, bool rewrites)
{
    return !rewrites || (p->pipe && strstr(p->pipe, "rewrite"));
}

static int by_category(const void *a, const void *b)
{
    const struct wml_pass *x = *(const struct wml_pass *const *)a, *y = *(const struct wml_pass *const *)b;
    int c = strcmp(x->category, y->category);
    return c ? c : strcmp(x->name, y->name);
}

static void put_json(struct wml_item *list, const struct wml_pass *p)
{
    struct wml_item *row = wml_item_object(list, NULL, NULL);
    wml_item_cstr(row, "name", NULL, p->name);
    wml_item_cstr(row, "category", NULL, p->category);
    wml_item_cstr(row, "pipe", NULL, p->pipe ? p->pipe : "winml");
    wml_item_cstr(row, "default", NULL, p->on ? "enabled" : "disabled");
    wml_item_cstr(row, "summary", NULL, p->summary);
    wml_item_cstr(row, "ort_name", NULL, p->ort_name);
    if (p->level) wml_item_int(row, "level", NULL, p->level, WML_SHOW_PLAIN);
    else wml_item_null(row, "level", NULL);
    wml_item_cstr(row, "domain", NULL, p->makes == WML_MAKES_CONTRIB ? "com.microsoft" : "ai.onnx");
    wml_item_cstr(row, "depends_on", NULL, p->needs);
    wml_item_cstr(row, "eps", NULL, p->only_for);
    wml_item_bool(row, "lossy", NULL, p->lossy);
    wml_item_bool(row, "effective", NULL, !p->refused);
    wml_item_cstr(row, "reason", NULL, p->refused);
}

static void show(struct wml_item *root, const struct wml_pass *p, bool verbose)
{
    if (!verbose) {
        wml_item_line(root, p->refused ? WML_TONE_DIM : WML_TONE_PLAIN, "  --%s-%s", p->on ? "disable" : "enable", p->name);
        return;
    }
    wml_item_line(root, WML_TONE_VALUE, "%s", p->name);
    wml_item_line(root, WML_TONE_PLAIN, "  Default: %s%s", p->on ? "enabled" : "disabled", p->lossy ? ", changes answers" : "");
    wml_item_line(root, WML_TONE_PLAIN, "  %s", p->summary);
    if (p->needs) wml_item_line(root, WML_TONE_PLAIN, "  Needs: %s", p->needs);
    if (p->refused) wml_item_line(root, WML_TONE_WARN, "  Refused: %s", p->refused);
    wml_item_line(root, WML_TONE_DIM, "  [ORT: %s]", p->ort_name ? p->ort_name : "None");
}

void wml_flow_capabilities(struct wml_report *out, bool verbose, bool rewrites)
{
    struct wml_item *root = wml_report_root(out), *list;
    struct wml_arena arena = {0};
    const struct wml_pass **p = WML_NEW_ARRAY(&arena, const struct wml_pass *, wml_n_passes);
    size_t n = 0, own = 0;
    for (size_t i = 0; i < wml_n_passes; i++)
        if (is_wanted(wml_passes[i], rewrites)) p[n++] = wml_passes[i];
    qsort(p, n, sizeof *p, by_category);
    for (size_t i = 0; i < n; i++) own += !p[i]->pipe;
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_line(root, WML_TONE_PLAIN, "%s: %zu, %zu of them winml's own", rewrites ? "Rewrites" : "Capabilities", n, own);
    list = wml_item_array(root, "capabilities", NULL);
    for (size_t i = 0; i < n; i++) {
        bool first = !i || strcmp(p[i]->category, p[i - 1]->category) != 0;
        put_json(list, p[i]);
        if (first) {
            wml_item_gap(root);
            wml_item_line(root, WML_TONE_VALUE, "%s:", p[i]->category);
        }
        show(root, p[i], verbose);
    }
    wml_item_gap(root);
    wml_item_line(root, WML_TONE_DIM, verbose ? "Switch one with --enable-NAME or --disable-NAME." : "-v says what each of them does.");
    wml_arena_release(&arena);
}
