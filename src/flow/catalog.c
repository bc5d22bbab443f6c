/* catalog: rows of the table that pass every filter. */
#include <math.h>

#include "catalog/catalog.h"
#include "export/export.h"
#include "flow/flow.h"
#include "flow/output.h"
#include "os/file.h"
#include "report/render.h"
#include "text/words.h"

struct filter {
    const struct wml_catalog_args *args;
    const struct wml_ep *ep; /* NULL: not asked for */
    const struct wml_ep_libraries *local; /* NULL: what this machine has does not matter */
    unsigned device;         /* 0: not asked for */
};

static const struct { unsigned bit; const char *name; } kinds[] = {
    {WML_CATALOG_CPU, "CPU"}, {WML_CATALOG_GPU, "GPU"}, {WML_CATALOG_NPU, "NPU"},
};

static bool is_local(const struct wml_ep_libraries *l, const struct wml_ep *ep)
{
    for (size_t i = 0; i < l->v.len; i++)
        if (l->v.at[i].ep == ep) return true;
    return false;
}

/* Whether this EP of a row is among those asked for, with the device asked for. */
static bool wants_ep(const struct filter *f, const struct wml_catalog_ep *e)
{
    const struct wml_ep *ep = wml_ep_find(wml_str(e->alias));
    if (f->ep && f->ep != ep) return false;
    if (f->local && !is_local(f->local, ep)) return false;
    return !f->device || (e->devices & f->device);
}

static bool wants(const struct filter *f, const struct wml_catalog_model *m)
{
    const struct wml_catalog_args *a = f->args;
    bool some = false;
    if (a->model && !wml_str_ieq(wml_str(a->model), wml_str(m->id))) return false;
    if (a->type && !wml_str_ieq(wml_str(a->type), wml_str(m->type))) return false;
    if (a->task && !wml_catalog_is_task(m, wml_str(a->task))) return false;
    for (const struct wml_catalog_ep *e = m->ep; e->alias; e++) some = some || wants_ep(f, e);
    return some;
}

static const char *size_text(double mb, char text[32])
{
    if (mb >= 1024) snprintf(text, 32, "%.1f GB", mb / 1024);
    else snprintf(text, 32, "%.0f MB", mb);
    return text;
}

static void put_names(struct wml_item *in, const char *key, const char *list)
{
    struct wml_str rest = wml_str(list), one;
    struct wml_item *array = wml_item_array(in, key, NULL);
    while (wml_str_split(&rest, ',', &one)) wml_item_str(array, NULL, NULL, one);
}

static void put_eps(struct wml_item *row, const struct wml_catalog_model *m)
{
    struct wml_item *eps = wml_item_object(row, "supported_eps", NULL);
    for (const struct wml_catalog_ep *e = m->ep; e->alias; e++) {
        struct wml_item *devices = wml_item_array(eps, e->alias, NULL);
        for (size_t i = 0; i < WML_COUNT(kinds); i++)
            if (e->devices & kinds[i].bit) wml_item_cstr(devices, NULL, NULL, kinds[i].name);
    }
}

/* "CPU / GPU" of one EP. */
static void put_devices(struct wml_buf *out, unsigned devices)
{
    const char *between = "";
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (!(devices & kinds[i].bit)) continue;
        wml_buf_fmt(out, "%s%s", between, kinds[i].name);
        between = " / ";
    }
}

/* The last column: what the one that was asked for leaves open. */
static void put_match(struct wml_item *row, const struct filter *f, const struct wml_catalog_model *m)
{
    struct wml_buf text = {0};
    for (const struct wml_catalog_ep *e = m->ep; e->alias; e++) {
        if (!wants_ep(f, e)) continue;
        if (f->device) {
            wml_buf_fmt(&text, "%s", text.len ? " / " : "");
            for (const char *c = e->alias; *c; c++) wml_buf_char(&text, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
        } else put_devices(&text, e->devices);
    }
    wml_item_cstr(row, NULL, f->device ? "EPs" : "Devices", wml_buf_text(&text));
    wml_buf_release(&text);
}

/* From weights, by this program. */
static bool can_export(const struct wml_catalog_model *m)
{
    return !m->onnx_path && wml_export_can(wml_str(m->type), wml_str(m->task));
}

static void put_row(struct wml_item *table, const struct filter *f, const struct wml_catalog_model *m, bool match)
{
    char size[32];
    struct wml_item *row = wml_table_row(table);
    wml_item_cstr(row, "model_id", NULL, m->id);
    wml_item_tone(row, WML_TONE_VALUE);
    wml_item_cstr(row, "task", NULL, m->task);
    wml_item_cstr(row, NULL, "Size", size_text(m->size_mb, size));
    wml_item_cstr(row, "model_type", NULL, m->type);
    wml_item_cstr(row, NULL, "Export", can_export(m) ? "yes" : "no");
    if (match) put_match(row, f, m);
    put_eps(row, m);
    wml_item_num(row, "size_mb", NULL, m->size_mb, 1, WML_SHOW_PLAIN);
    if (m->onnx_path) wml_item_cstr(row, "onnx_path", NULL, m->onnx_path);
    put_names(row, "precisions", m->precisions);
    wml_item_bool(row, "exportable", NULL, can_export(m));
    struct wml_item *releases = wml_item_array(row, "releases", NULL);
    for (unsigned i = 0; wml_catalog_release(i); i++)
        if (m->releases >> i & 1) wml_item_cstr(releases, NULL, NULL, wml_catalog_release(i));
}

/* One model was asked for: everything about it, in text too. */
static void put_details(struct wml_item *root, const struct wml_catalog_model *m)
{
    char size[32];
    struct wml_buf text = {0};
    struct wml_item *s = wml_item_object(root, NULL, wml_item_name(root, wml_str(m->id)));
    wml_item_cstr(s, NULL, "Task", m->task);
    wml_item_cstr(s, NULL, "Model type", m->type);
    wml_item_cstr(s, NULL, "Size", size_text(m->size_mb, size));
    for (const struct wml_catalog_ep *e = m->ep; e->alias; e++) {
        wml_buf_fmt(&text, "%s%s (", text.len ? ", " : "", e->alias);
        put_devices(&text, e->devices);
        wml_buf_char(&text, ')');
    }
    wml_item_cstr(s, NULL, "Export", can_export(m) ? "yes, by `winml export`" : m->onnx_path ? "it is ONNX already" : "not by this version");
    wml_item_cstr(s, NULL, "Targets", wml_buf_text(&text));
    wml_item_cstr(s, NULL, "Recipes", m->precisions ? m->precisions : "none");
    if (m->onnx_path) wml_item_cstr(s, NULL, "ONNX file", m->onnx_path);
    wml_buf_release(&text);
}

static struct wml_item *begin_table(struct wml_item *root, const struct filter *f, size_t n, bool *match)
{
    static const struct wml_column plain[] = {
        {.key = "model_id", .label = "Model"}, {.key = "task", .label = "Task"}, {.label = "Size", .right = true}, {.key = "model_type", .label = "Model type"}, {.label = "Export"}};
    static const struct wml_column devices[] = {
        {.key = "model_id", .label = "Model"}, {.key = "task", .label = "Task"}, {.label = "Size", .right = true}, {.key = "model_type", .label = "Model type"}, {.label = "Export"}, {.label = "Devices"}};
    static const struct wml_column eps[] = {
        {.key = "model_id", .label = "Model"}, {.key = "task", .label = "Task"}, {.label = "Size", .right = true}, {.key = "model_type", .label = "Model type"}, {.label = "Export"}, {.label = "EPs"}};
    static const struct wml_column none[] = {{.key = "model_id"}};
    struct wml_str title = wml_str("");
    char text[64];
    snprintf(text, sizeof text, "%zu validated model%s", n, n == 1 ? "" : "s");
    title = wml_str(text);
    *match = !f->args->model && (f->ep != NULL) != (f->device != 0);
    if (f->args->model || !n) return wml_item_table(root, "models", NULL, none, WML_COUNT(none));
    if (*match && f->ep) return wml_item_table(root, "models", wml_item_name(root, title), devices, WML_COUNT(devices));
    if (*match) return wml_item_table(root, "models", wml_item_name(root, title), eps, WML_COUNT(eps));
    return wml_item_table(root, "models", wml_item_name(root, title), plain, WML_COUNT(plain));
}

static void put_nothing(struct wml_item *root, const struct wml_catalog_args *a)
{
    const char **ids = wml_xcalloc(wml_n_catalog, sizeof *ids);
    for (size_t i = 0; i < wml_n_catalog; i++) ids[i] = wml_catalog[i].id;
    const char *near = a->model ? wml_similar(wml_str(a->model), ids, wml_n_catalog) : NULL;
    wml_item_line(root, WML_TONE_WARN, "No models match the given filters.");
    if (near) wml_item_line(root, WML_TONE_DIM, "Did you mean %s?", near);
    free(ids);
}

static void put_all(const struct filter *f, struct wml_report *r)
{
    struct wml_item *root = wml_report_root(r);
    size_t n = 0;
    bool match = false;
    for (size_t i = 0; i < wml_n_catalog; i++) n += wants(f, &wml_catalog[i]);
    struct wml_item *table = begin_table(root, f, n, &match);
    wml_report_list(r, table);
    for (size_t i = 0; i < wml_n_catalog; i++) {
        if (!wants(f, &wml_catalog[i])) continue;
        put_row(table, f, &wml_catalog[i], match);
        if (f->args->model) put_details(root, &wml_catalog[i]);
    }
    if (!n) put_nothing(root, f->args);
    else if (!f->args->model) wml_item_line(root, WML_TONE_DIM, "Other models may work as well: winml export -m ID tries.");
}

static bool write_rows(const char *path, struct wml_report *r, struct wml_err *err)
{
    struct wml_buf text = {0};
    const struct wml_render_opts opts = {.indent = 2};
    wml_renderer_find("json")->render(r, &opts, &text);
    bool ok = wml_file_write(path, wml_buf_view(&text), err);
    wml_buf_release(&text);
    if (ok) wml_item_line(wml_report_root(r), WML_TONE_PLAIN, "Results saved to: %s", path);
    return ok;
}

static bool read_filter(const struct wml_catalog_args *a, struct filter *f, struct wml_err *err)
{
    const struct wml_target_spec spec = {.ep = a->ep};
    *f = (struct filter){.args = a};
    for (size_t i = 0; a->device && i < WML_COUNT(kinds); i++)
        if (wml_str_ieq(wml_str(a->device), wml_str(kinds[i].name))) f->device = kinds[i].bit;
    return !a->ep || wml_str_ieq(wml_str(a->ep), WML_STR("all-local")) || wml_target_check(&spec, &f->ep, err);
}

bool wml_flow_catalog(const struct wml_catalog_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct filter f;
    struct wml_ep_libraries local = {0};
    bool here = a->ep && wml_str_ieq(wml_str(a->ep), WML_STR("all-local"));
    bool ok = read_filter(a, &f, err) && (!a->output || wml_output_check("Output file", a->output, a->overwrite, NULL, err));
    if (ok && here) {
        ok = wml_ep_discover(cx, &local, err);
        f.local = &local;
    }
    if (ok) put_all(&f, r);
    ok = ok && (!a->output || write_rows(a->output, r, err));
    wml_ep_libraries_release(&local);
    return ok;
}
