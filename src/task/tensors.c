/* No task: nested arrays of JSON in, nested arrays out, under the names of the model's inputs and outputs. */
#include "task/task.h"

#include <string.h>

#include "text/json.h"

struct filling {
    const struct wml_task_input *in;
    int64_t dim[WML_NPY_MAX_RANK];
    size_t rank;
    void *data; /* NULL: only the shape is wanted */
    size_t at;
};

static bool ragged(const struct filling *f, struct wml_err *err)
{
    return wml_fail(err, WML_E_USAGE, "input '%.*s': the lists of one depth differ in length, or mix lists and numbers", WML_ARG(f->in->name));
}

/* The shape is that of the first elements. */
static bool measure(struct filling *f, const struct wml_json_val *v, struct wml_err *err)
{
    for (f->rank = 0; wml_json_is_array(v); v = wml_json_at(v, 0)) {
        if (f->rank == WML_NPY_MAX_RANK) return wml_fail(err, WML_E_USAGE, "input '%.*s': lists are too deep", WML_ARG(f->in->name));
        f->dim[f->rank++] = (int64_t)wml_json_len(v);
    }
    return true;
}

static bool fill(struct filling *f, const struct wml_json_val *v, size_t depth, struct wml_err *err)
{
    if (depth == f->rank) {
        if (!wml_json_is_number(v) && !wml_json_is_bool(v)) return ragged(f, err);
        double x = wml_json_is_bool(v) ? (double)wml_json_bool(v, false) : wml_json_num(v, 0);
        wml_dtype_store((int)f->in->dtype, f->data, f->at++, x);
        return true;
    }
    struct wml_json_iter it = {0};
    struct wml_str none;
    const struct wml_json_val *e;
    if (!wml_json_is_array(v) || (int64_t)wml_json_len(v) != f->dim[depth]) return ragged(f, err);
    while (wml_json_next(v, &it, &none, &e))
        if (!fill(f, e, depth + 1, err)) return false;
    return true;
}

static bool take(struct wml_task_work *w, const struct wml_task_input *in, struct wml_npys *sample, struct wml_err *err)
{
    const char *text = wml_task_value(w, wml_arena_cstr(w->arena, in->name));
    struct wml_json_doc *doc = NULL;
    struct filling f = {.in = in};
    if (!text) return wml_fail(err, WML_E_RUN, "input '%.*s' is missing", WML_ARG(in->name));
    if (!wml_dtype_info((int)in->dtype)->bits) return wml_fail(err, WML_E_UNSUPPORTED, "input '%.*s' is no array of numbers", WML_ARG(in->name));
    bool ok = wml_json_parse(wml_str(text), &doc, err) || wml_wrap(err, "input '%.*s'", WML_ARG(in->name));
    ok = ok && measure(&f, wml_json_root(doc), err);
    if (ok) f.data = wml_sample_add(sample, in->name, in->dtype, f.dim, f.rank, err);
    ok = ok && f.data && fill(&f, wml_json_root(doc), 0, err);
    wml_json_free(doc);
    return ok;
}

static bool prepare(struct wml_task_work *w, struct wml_err *err)
{
    struct wml_npys sample = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < w->n_inputs; i++) ok = take(w, &w->input[i], &sample, err);
    WML_PUSH(&w->sample, sample);
    return ok;
}

static size_t put_nested(struct wml_item *in, const char *key, const struct wml_npy *a, size_t depth, size_t at)
{
    if (depth == a->rank) {
        double v = wml_dtype_load((int)a->dtype, a->data.ptr, at);
        if (wml_dtype_is_float((int)a->dtype)) wml_item_num(in, key, NULL, v, 8, WML_SHOW_PLAIN);
        else wml_item_int(in, key, NULL, (int64_t)v, WML_SHOW_PLAIN);
        return at + 1;
    }
    struct wml_item *list = wml_item_array(in, key, NULL);
    for (int64_t i = 0; i < a->dim[depth]; i++) at = put_nested(list, NULL, a, depth + 1, at);
    return at;
}

static bool finish(struct wml_task_work *w, struct wml_item *root, struct wml_err *err)
{
    (void)err;
    struct wml_item *out = wml_item_object(root, "predictions", "Output:");
    for (size_t i = 0; i < w->answer[0].v.len; i++) {
        const struct wml_npy *a = &w->answer[0].v.at[i];
        put_nested(out, wml_item_name(out, a->name), a, 0, 0);
        wml_task_array_line(out, a);
    }
    return true;
}

const struct wml_task wml_task_tensors = {.summary = "Arrays in, arrays out", .prepare = prepare, .finish = finish};
