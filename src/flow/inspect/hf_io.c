/* flow/inspect/hf_io.c - inputs and outputs of the graphs that export would write. */
#include <inttypes.h>
#include "flow/inspect/hf.h"
#include "graph/edit.h"

/* Of an axis: fixed, or so many times the batch. */
struct axis { int64_t size, batches; };

static void axes_of(const struct wml_nn_shape *s, const struct wml_nn_shape *wide, struct axis *out)
{
    for (size_t i = 0; i < s->rank; i++) {
        const int64_t n = s->at[i].size, twice = wide && wide->rank == s->rank ? wide->at[i].size : n;
        out[i] = (struct axis){n, n > 0 && twice == 2 * n ? n : 0};
    }
}

/* "[B, 3, 224, 224]" */
static void axes_text(struct wml_buf *b, const struct axis *a, size_t n)
{
    wml_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) wml_buf_cstr(b, ", ");
        if (a[i].batches > 1) wml_buf_fmt(b, "%" PRId64 "B", a[i].batches);
        else if (a[i].batches) wml_buf_char(b, 'B');
        else if (a[i].size < 0) wml_buf_char(b, '?');
        else wml_buf_fmt(b, "%" PRId64, a[i].size);
    }
    wml_buf_char(b, ']');
}

static struct wml_nn_shape shape_of_input(const struct wml_family_input *in)
{
    struct wml_nn_shape s = {.rank = in->rank};
    memcpy(s.at, in->axis, sizeof s.at);
    return s;
}

static const struct wml_nn_shape *wide_input(const struct wml_hf_part *p, size_t i, struct wml_nn_shape *s)
{
    if (!p->wide.model || i >= p->wide.n_inputs) return NULL;
    *s = shape_of_input(&p->wide.input[i]);
    return s;
}

static const struct wml_nn_shape *wide_output(const struct wml_hf_part *p, size_t i, struct wml_nn_shape *s)
{
    if (!p->wide.model || i >= p->wide.model->graph->outputs.len) return NULL;
    *s = wml_nn_shape(p->wide.model->graph->outputs.at[i]);
    return s;
}

static void put_shape(struct wml_item *o, const struct axis *a, size_t n)
{
    struct wml_buf text = {0};
    struct wml_item *shape = wml_item_array(o, "shape", NULL);
    for (size_t i = 0; i < n; i++) {
        if (a[i].size < 0) wml_item_null(shape, NULL, NULL);
        else wml_item_int(shape, NULL, NULL, a[i].size, WML_SHOW_PLAIN);
    }
    axes_text(&text, a, n);
    wml_item_cstr(o, "shape_desc", NULL, wml_buf_text(&text));
    struct wml_item *open = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!a[i].batches) continue;
        if (!open) open = wml_item_object(o, "dynamic_axes", NULL);
        wml_buf_clear(&text);
        wml_buf_fmt(&text, "%zu", i);
        wml_item_cstr(open, wml_item_name(open, wml_buf_view(&text)), NULL, "batch_size");
    }
    if (!open) wml_item_null(o, "dynamic_axes", NULL);
    wml_buf_release(&text);
}

static void put_bound(struct wml_item *range, enum wml_dtype dtype, double v)
{
    if (dtype == WML_F32) wml_item_num(range, NULL, NULL, v, 6, WML_SHOW_PLAIN);
    else wml_item_int(range, NULL, NULL, (int64_t)v, WML_SHOW_PLAIN);
}

void wml_hf_put_inputs(struct wml_hf *h, const struct wml_hf_part *p, struct wml_item *in)
{
    struct wml_item *list = wml_item_array(in, "input_tensors", NULL);
    (void)h;
    for (size_t i = 0; p->made.model && i < p->made.n_inputs; i++) {
        const struct wml_family_input *t = &p->made.input[i];
        struct wml_nn_shape wide;
        const struct wml_nn_shape s = shape_of_input(t);
        struct axis a[WML_NN_MAX_RANK];
        struct wml_item *o = wml_item_object(list, NULL, NULL);
        axes_of(&s, wide_input(p, i, &wide), a);
        wml_item_str(o, "name", NULL, t->name);
        wml_item_cstr(o, "dtype", NULL, wml_dtype_name(t->dtype));
        put_shape(o, a, t->rank);
        if (!t->has_range) wml_item_null(o, "value_range", NULL);
        else {
            struct wml_item *range = wml_item_array(o, "value_range", NULL);
            put_bound(range, t->dtype, t->low);
            put_bound(range, t->dtype, t->high);
        }
    }
}

void wml_hf_put_outputs(struct wml_hf *h, const struct wml_hf_part *p, struct wml_item *in)
{
    struct wml_item *list = wml_item_array(in, "output_tensors", NULL);
    (void)h;
    for (size_t i = 0; p->made.model && i < p->made.model->graph->outputs.len; i++) {
        const struct wml_value *v = p->made.model->graph->outputs.at[i];
        struct wml_nn_shape wide;
        const struct wml_nn_shape s = wml_nn_shape(v);
        struct axis a[WML_NN_MAX_RANK];
        struct wml_item *o = wml_item_object(list, NULL, NULL);
        axes_of(&s, wide_output(p, i, &wide), a);
        wml_item_str(o, "name", NULL, v->name);
        wml_item_cstr(o, "dtype", NULL, wml_dtype_name(wml_value_elem(v)));
        put_shape(o, a, s.rank);
    }
}

/* ------------------------------------------------------------------- text */

static void show_row(struct wml_item *table, struct wml_str name, enum wml_dtype dtype, const struct axis *a, size_t n, const char *values)
{
    struct wml_buf text = {0};
    struct wml_item *row = wml_table_row(table);
    axes_text(&text, a, n);
    wml_item_str(row, NULL, "Name", name);
    wml_item_cstr(row, NULL, "Type", wml_dtype_name(dtype));
    wml_item_str(row, NULL, "Shape", wml_buf_view(&text));
    if (values) wml_item_cstr(row, NULL, "Values", values);
    wml_buf_release(&text);
}

/* What sample values lie in: whole numbers up to the last, others up to the bound. */
static const char *values_text(const struct wml_family_input *t, char text[64])
{
    if (!t->has_range) return "";
    if (t->dtype == WML_F32) snprintf(text, 64, "%g to %g", t->low, t->high);
    else if ((int64_t)t->high - 1 == (int64_t)t->low) snprintf(text, 64, "%" PRId64, (int64_t)t->low);
    else snprintf(text, 64, "%" PRId64 " to %" PRId64, (int64_t)t->low, (int64_t)t->high - 1);
    return text;
}

enum { MOST_ROWS = 12 }; /* caches of decoders have dozens, all alike */

void wml_hf_show_io(struct wml_hf *h, const struct wml_hf_part *p)
{
    static const struct wml_column columns[] = {
        {.label = "Name", .max_width = 40}, {.label = "Type"}, {.label = "Shape"}, {.label = "Values"}};
    if (!p->made.model) return;
    const char *const of[2] = {"Inputs", "Outputs"};
    for (size_t k = 0; k < 2; k++) {
        const struct wml_str title = p->name ? wml_arena_fmt(&h->arena, "%s of the %s", of[k], p->name) : wml_str(of[k]);
        struct wml_item *table = wml_item_table(h->root, NULL, wml_item_name(h->root, title), columns, k ? 3 : 4);
        const size_t n = k ? p->made.model->graph->outputs.len : p->made.n_inputs;
        for (size_t i = 0; i < n; i++) {
            char values[64];
            struct axis a[WML_NN_MAX_RANK];
            struct wml_nn_shape wide;
            const struct wml_family_input *t = k ? NULL : &p->made.input[i];
            const struct wml_value *v = k ? p->made.model->graph->outputs.at[i] : NULL;
            const struct wml_nn_shape s = t ? shape_of_input(t) : wml_nn_shape(v);
            axes_of(&s, t ? wide_input(p, i, &wide) : wide_output(p, i, &wide), a);
            show_row(table, t ? t->name : v->name, t ? t->dtype : (enum wml_dtype)wml_value_elem(v), a, s.rank, t ? values_text(t, values) : NULL);
        }
        wml_table_limit(table, MOST_ROWS);
    }
}

/* ----------------------------------------------------------- build config */

static void write_tensors(struct wml_json *w, const struct wml_hf_part *p)
{
    wml_json_key(w, "input_tensors");
    wml_json_begin(w, '[');
    for (size_t i = 0; i < p->made.n_inputs; i++) {
        const struct wml_family_input *t = &p->made.input[i];
        wml_json_begin(w, '{');
        wml_json_key(w, "name");
        wml_json_put_str(w, t->name);
        wml_json_key(w, "dtype");
        wml_json_put_cstr(w, wml_dtype_name(t->dtype));
        wml_json_key(w, "shape");
        wml_json_begin(w, '[');
        for (size_t k = 0; k < t->rank; k++) wml_json_put_int(w, t->axis[k].size);
        wml_json_end(w, ']');
        if (t->has_range) {
            wml_json_key(w, "value_range");
            wml_json_begin(w, '[');
            for (size_t k = 0; k < 2; k++) {
                const double v = k ? t->high : t->low;
                if (t->dtype == WML_F32) wml_json_put_num(w, v);
                else wml_json_put_int(w, (int64_t)v);
            }
            wml_json_end(w, ']');
        }
        wml_json_end(w, '}');
    }
    wml_json_end(w, ']');
    wml_json_key(w, "output_tensors");
    wml_json_begin(w, '[');
    for (size_t i = 0; i < p->made.model->graph->outputs.len; i++) {
        wml_json_begin(w, '{');
        wml_json_key(w, "name");
        wml_json_put_str(w, p->made.model->graph->outputs.at[i]->name);
        wml_json_end(w, '}');
    }
    wml_json_end(w, ']');
}

static void write_config(struct wml_hf *h, struct wml_json *w)
{
    const struct wml_hf_part *p = &h->part[0];
    wml_json_begin(w, '{');
    wml_json_key(w, "export");
    wml_json_begin(w, '{');
    wml_json_key(w, "opset_version");
    wml_json_put_int(w, WML_NN_OPSET);
    wml_json_key(w, "batch_size");
    wml_json_put_int(w, 1);
    wml_json_key(w, "enable_hierarchy_tags");
    wml_json_put_bool(w, true);
    if (!p->name) write_tensors(w, p);
    wml_json_end(w, '}');
    wml_json_key(w, "optim");
    wml_json_begin(w, '{');
    wml_json_end(w, '}');
    wml_json_key(w, "quant");
    wml_json_put_null(w);
    wml_json_key(w, "compile");
    wml_json_put_null(w);
    wml_json_key(w, "loader");
    wml_json_begin(w, '{');
    wml_json_key(w, "task");
    wml_json_put_str(w, h->plan.task);
    wml_json_key(w, "model_class");
    wml_json_put_str(w, p->made.class_name);
    wml_json_key(w, "model_type");
    wml_json_put_cstr(w, h->plan.type->model_type);
    wml_json_end(w, '}');
    wml_json_end(w, '}');
}

void wml_hf_put_build_config(struct wml_hf *h)
{
    struct wml_buf text = {0};
    struct wml_json_doc *doc = NULL;
    struct wml_json w = {.out = &text, .indent = 2};
    if (!h->n_parts || !h->part[0].made.model) return;
    write_config(h, &w);
    if (wml_json_parse(wml_buf_view(&text), &doc, NULL)) wml_item_json(h->root, "build_config", wml_json_root(doc));
    struct wml_item *section = wml_item_object(h->root, NULL, "Build config (winml export --config FILE)");
    struct wml_str rest = wml_buf_view(&text), line;
    while (wml_str_split(&rest, '\n', &line)) wml_item_line(section, WML_TONE_PLAIN, "%.*s", WML_ARG(line));
    wml_json_free(doc);
    wml_buf_release(&text);
}
