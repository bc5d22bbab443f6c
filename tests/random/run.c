/* Runs models in ONNX Runtime, its optimisations off, and compares answers.
 *
 * Answers may differ by rounding, and some graphs amplify it beyond any fixed tolerance: a difference of equal
 * numbers, a comparison, a division by nearly zero. So where answers differ the original is run again with noise
 * of a few units in the last place behind every float; what changes under noise may change under a rewrite. Some of the
 * noise is the same all over a tensor: a power of the difference of equal numbers is NaN under any other. */
#include "check.h"

#include <math.h>

#include "base/num.h"
#include "flow/compare.h"
#include "onnx/onnx.h"

static struct rc_tensor copy_view(struct wml_arena *a, const char *name, const struct wml_tensor_view *v)
{
    struct rc_tensor t = {.name = wml_arena_cstr(a, wml_str(name)), .t = v->dtype, .rank = v->rank, .bytes = v->bytes, .is_tensor = v->is_tensor};
    t.dim = WML_NEW_ARRAY(a, int64_t, v->rank + 1);
    t.data = wml_arena_zalloc(a, v->bytes + 1);
    if (v->rank) memcpy(t.dim, v->dim, v->rank * sizeof *t.dim);
    if (v->data && v->bytes) memcpy(t.data, v->data, v->bytes);
    return t;
}

static const struct rc_tensor *named(const struct rc_tensors *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->at[i].name, name)) return &f->at[i];
    return NULL;
}

bool rc_open(const struct rc_env *e, struct wml_str bytes, struct wml_session **out, struct wml_err *err)
{
    struct wml_ort *ort;
    struct wml_model_source s = {.bytes = {(const unsigned char *)bytes.ptr, bytes.len}};
    struct wml_session_opts opts = {.threads = 1};
    return wml_ort_open(e->cx, &ort, err) && wml_session_open(ort, &s, &opts, out, err);
}

bool rc_run_open(const struct rc_env *e, struct wml_session *s, const struct rc_tensors *feed, struct rc_tensors *out, struct wml_err *err)
{
    size_t n, n_more, n_out;
    const struct wml_io *in = wml_session_inputs(s, &n), *more = wml_session_optional_inputs(s, &n_more), *io = wml_session_outputs(s, &n_out);
    struct wml_tensor_view *view = WML_NEW_ARRAY(e->arena, struct wml_tensor_view, n + n_more + 1);
    struct wml_run *run = NULL;
    for (size_t i = 0; i < n + n_more; i++) {
        const struct rc_tensor *t = named(feed, i < n ? in[i].name : more[i - n].name);
        if (t) view[i] = (struct wml_tensor_view){t->t, t->rank, t->dim, t->data, t->bytes, true};
    }
    bool ok = wml_run_new(s, view, n + n_more, &run, err) && wml_run_once(run, err);
    *out = (struct rc_tensors){WML_NEW_ARRAY(e->arena, struct rc_tensor, n_out + 1), n_out};
    for (size_t i = 0; ok && i < n_out; i++) {
        struct wml_tensor_view v = {0};
        ok = wml_run_output(run, i, &v, err);
        if (ok) out->at[i] = copy_view(e->arena, io[i].name, &v);
    }
    wml_run_free(run);
    return ok;
}

bool rc_run(const struct rc_env *e, struct wml_str bytes, const struct rc_tensors *feed, struct rc_tensors *out, struct wml_err *err)
{
    struct wml_session *s = NULL;
    bool ok = rc_open(e, bytes, &s, err) && rc_run_open(e, s, feed, out, err);
    wml_session_close(s);
    return ok;
}

/* --- the interface --- */

static bool same_io(const struct wml_io *a, const struct wml_io *b, bool sizes)
{
    if (strcmp(a->name, b->name) || a->kind != b->kind || a->dtype != b->dtype) return false;
    if (!sizes) return true;
    if (a->has_shape != b->has_shape || a->rank != b->rank) return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] || strcmp(a->symbol[i], b->symbol[i])) return false;
    return true;
}

/* Sizes of outputs may become known. */
static bool known_same(const struct wml_io *a, const struct wml_io *b)
{
    if (!same_io(a, b, false)) return false;
    if (!a->has_shape || !b->has_shape) return true;
    if (a->rank != b->rank) return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i]) return false;
    return true;
}

static bool same_list(const struct wml_io *a, size_t n, const struct wml_io *b, size_t k, const char *what, char *why, size_t size)
{
    if (n != k) {
        snprintf(why, size, "%zu %ss became %zu", n, what, k);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (what[0] == 'o' ? known_same(&a[i], &b[i]) : same_io(&a[i], &b[i], true)) continue;
        snprintf(why, size, "%s %zu (%s) became another (%s)", what, i, a[i].name, b[i].name);
        return false;
    }
    return true;
}

bool rc_same_interface(const struct wml_session *a, const struct wml_session *b, char *why, size_t size)
{
    size_t n, k;
    const struct wml_io *x = wml_session_inputs(a, &n), *y = wml_session_inputs(b, &k);
    if (!same_list(x, n, y, k, "input", why, size)) return false;
    x = wml_session_optional_inputs(a, &n);
    y = wml_session_optional_inputs(b, &k);
    if (!same_list(x, n, y, k, "input with a default", why, size)) return false;
    x = wml_session_outputs(a, &n);
    y = wml_session_outputs(b, &k);
    return same_list(x, n, y, k, "output", why, size);
}

/* --- answers --- */

static uint64_t count_of(const struct rc_tensor *t)
{
    uint64_t n;
    wml_dims_count(t->dim, t->rank, &n);
    return n;
}

static bool has_nan(const struct rc_tensor *t, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (isnan(wml_dtype_load((int)t->t, t->data, (size_t)i))) return true;
    return false;
}

/* What noise does to element i; INFINITY where it is no number with or without. */
static double sway(const struct rc_tensor *a, const struct rc_tensors *noise, size_t n_noise, size_t output, size_t i)
{
    double x = wml_dtype_load((int)a->t, a->data, i), most = 0;
    for (size_t k = 0; k < n_noise; k++) {
        const struct rc_tensor *t = &noise[k].at[output];
        if (count_of(t) != count_of(a)) return INFINITY;
        double y = wml_dtype_load((int)t->t, t->data, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (!isfinite(x) || !isfinite(y)) return INFINITY;
        most = fmax(most, fabs(x - y));
    }
    return most;
}

/* Over all elements: noise that happens to be none at one of them is no promise. */
static double mean_sway(const struct rc_tensor *a, const struct rc_tensors *noise, size_t n_noise, size_t output, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; n_noise && i < n; i++) {
        double s = sway(a, noise, n_noise, output, (size_t)i);
        if (isfinite(s)) sum += s;
    }
    return n ? sum / (double)n : 0;
}

static bool equal_tensor(const struct rc_tensor *a, const struct rc_tensor *b, size_t output, const struct rc_tensors *noise, size_t n_noise,
                         const struct rc_loose *loose, char *why, size_t size)
{
    bool real = wml_dtype_is_float((int)a->t), half = real && wml_dtype_info((int)a->t)->bits < 32;
    uint64_t n = count_of(a);
    double scale = real ? wml_largest((int)a->t, a->data, n) : 0, rel = half ? 2e-2 : 2e-5;
    double mean = real ? mean_sway(a, noise, n_noise, output, n) : 0;
    bool any_sway = false;
    for (uint64_t i = 0; n_noise && !real && i < n; i++) any_sway = any_sway || sway(a, noise, n_noise, output, (size_t)i) > 0;
    if (real && loose->nan_is_chance && has_nan(a, n)) return true;
    for (uint64_t i = 0; i < n; i++) {
        double x = wml_dtype_load((int)a->t, a->data, (size_t)i), y = wml_dtype_load((int)b->t, b->data, (size_t)i);
        if (x == y || (isnan(x) && isnan(y)) || (loose->may_fail && isnan(y))) continue;
        if ((isinf(x) || isinf(y)) && fabs(x) > 1e36 && fabs(y) > 1e36) continue; /* sums overflow later, or not at all */
        double s = n_noise ? sway(a, noise, n_noise, output, (size_t)i) : 0;
        if (isinf(s) || s > fabs(x) / 2 || (!real && any_sway)) continue; /* nothing but noise */
        double room = real ? rel * fmax(fabs(x), fabs(y)) + 1e-5 * scale + (half ? 1e-3 : 1e-7) + 8 * fmax(s, mean) : 0;
        if (isfinite(x) && isfinite(y) && fabs(x - y) <= room) continue;
        snprintf(why, size, "%s[%llu]: %.9g became %.9g (allowed %.3g, under noise %.3g, largest %.3g)", a->name, (unsigned long long)i, x, y,
                 room, s, scale);
        return false;
    }
    return true;
}

bool rc_equal(const struct rc_tensors *a, const struct rc_tensors *b, const struct rc_tensors *noise, size_t n_noise, const struct rc_loose *loose,
              char *why, size_t size)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct rc_tensor *x = &a->at[i], *y = &b->at[i];
        bool shape = x->is_tensor == y->is_tensor && x->t == y->t && x->rank == y->rank && !memcmp(x->dim, y->dim, x->rank * sizeof *x->dim);
        if (!shape) {
            snprintf(why, size, "%s: another type or shape (rank %zu, %zu bytes became rank %zu, %zu bytes)", x->name, x->rank, x->bytes, y->rank,
                     y->bytes);
            return false;
        }
        if (x->is_tensor && !equal_tensor(x, y, i, noise, n_noise, loose, why, size)) return false;
    }
    return true;
}

/* --- noise --- */

bool rc_load(struct wml_str bytes, struct wml_model **out, struct wml_err *err)
{
    return wml_onnx_load_bytes((struct wml_span){(const unsigned char *)bytes.ptr, bytes.len}, NULL, out, err);
}

bool rc_encode(const struct rc_env *e, struct wml_model *m, struct wml_str *out, struct wml_err *err)
{
    struct wml_buf b = {0};
    bool ok = wml_onnx_encode(m, &b, err);
    *out = wml_arena_str(e->arena, wml_buf_view(&b));
    wml_buf_release(&b);
    return ok;
}

/* Numbers that say sizes. */
static bool is_exact(const struct wml_node *n, size_t slot)
{
    return wml_node_is(n, "Range") || (wml_node_is(n, "Resize") && slot > 0);
}

/* A value that cancels to zero has an error of the size of what cancelled: noise of the largest, on every element. */
static struct wml_value *add_floor(struct wml_node *before, struct wml_value *x, struct wml_value *noise)
{
    static const float one_value = 1;
    struct wml_graph *g = x->graph;
    struct wml_value *in[4], *one = wml_graph_add_init(g, WML_STR("one"), wml_tensor_copy(g->model, WML_F32, 0, NULL, &one_value, 4, NULL));
    static const char *const op[] = {"Abs", "ReduceMax", "Sub", "Mul", "Add"};
    for (int i = 0; i < 5; i++) {
        struct wml_node *n = wml_node_new(before, "", op[i]);
        wml_node_add_input(n, i == 0 ? x : i == 1 ? in[0] : i == 2 ? noise : i == 3 ? in[1] : x);
        if (i >= 2) wml_node_add_input(n, i == 2 ? one : i == 3 ? in[2] : in[3]);
        if (i == 1) wml_attr_set_int(n, "keepdims", 0);
        struct wml_value *y = wml_node_add_output(n, WML_STR("noise"));
        if (i == 4) return y;
        in[i] = y;
    }
    return NULL;
}

static struct wml_value *with_number(struct wml_node *before, const char *op, struct wml_value *x, enum wml_dtype t, double number)
{
    unsigned char bytes[8];
    struct wml_graph *g = x->graph;
    wml_dtype_store((int)t, bytes, 0, number);
    struct wml_node *n = wml_node_new(before, "", op);
    wml_node_add_input(n, x);
    wml_node_add_input(n, wml_graph_add_init(g, WML_STR("number"), wml_tensor_copy(g->model, t, 0, NULL, bytes, wml_dtype_info((int)t)->bits / 8, NULL)));
    return wml_node_add_output(n, WML_STR("noise"));
}

static struct wml_value *of_two(struct wml_node *before, const char *op, struct wml_value *x, struct wml_value *y)
{
    struct wml_node *n = wml_node_new(before, "", op);
    wml_node_add_input(n, x);
    if (y) wml_node_add_input(n, y);
    return wml_node_add_output(n, WML_STR("noise"));
}

/* Numbers around 1, of the sizes of x: sines of each element's place. ORT has RandomUniformLike up to opset 21 only. */
static struct wml_value *random_like(struct wml_node *before, struct wml_value *x, enum wml_dtype t, struct rc_noise noise)
{
    struct wml_graph *g = x->graph;
    struct wml_value *bound[2], *y;
    for (int64_t i = 0; i < 2; i++) bound[i] = wml_graph_add_init(g, WML_STR("number"), wml_tensor_copy(g->model, WML_I64, 0, NULL, &i, sizeof i, NULL));
    struct wml_node *range = wml_node_new(before, "", "Range");
    wml_node_add_input(range, bound[0]);
    wml_node_add_input(range, of_two(range, "Size", x, NULL));
    wml_node_add_input(range, bound[1]);
    y = of_two(before, "Reshape", wml_node_add_output(range, WML_STR("noise")), of_two(before, "Shape", x, NULL));
    if (wml_model_opset(g->model, "") >= 14) wml_attr_set_int(y->def, "allowzero", 1);
    y = of_two(before, "Cast", y, NULL);
    wml_attr_set_int(y->def, "to", t);
    y = with_number(before, "Add", with_number(before, "Mul", y, t, noise.even ? 0 : 12.9898), t, (double)(noise.seed % 997));
    return with_number(before, "Add", with_number(before, "Mul", of_two(before, "Sin", y, NULL), t, noise.size), t, 1);
}

static void add_noise(struct wml_value *v, enum wml_dtype t, struct rc_noise noise)
{
    bool half = t == WML_F16;
    struct wml_graph *g = v->graph;
    struct wml_node *before = v->def ? v->def->next : g->first;
    struct wml_value *x = v, *y;
    struct wml_node *n;
    struct wml_use *uses[256];
    size_t n_uses = 0;
    for (struct wml_use *u = v->uses; u && n_uses < 256; u = u->next)
        if (!is_exact(u->node, u->slot)) uses[n_uses++] = u;
    if (!n_uses || !before) return;
    if (half) {
        n = wml_node_new(before, "", "Cast");
        wml_node_add_input(n, v);
        wml_attr_set_int(n, "to", WML_F32);
        x = wml_node_add_output(n, WML_STR("noise"));
    }
    if (half) noise.size = 5e-4f;
    y = random_like(before, x, half ? WML_F32 : t, noise);
    if (v->def && wml_node_is(v->def, "DFT")) x = add_floor(before, x, y);
    n = wml_node_new(before, "", "Mul");
    wml_node_add_input(n, x);
    wml_node_add_input(n, y);
    y = wml_node_add_output(n, WML_STR("noise"));
    if (half) {
        n = wml_node_new(before, "", "Cast");
        wml_node_add_input(n, y);
        wml_attr_set_int(n, "to", WML_F16);
        y = wml_node_add_output(n, WML_STR("noise"));
    }
    for (size_t i = 0; i < n_uses; i++) wml_node_set_input(uses[i]->node, uses[i]->slot, y);
}

bool rc_noisy(const struct rc_env *e, struct wml_str bytes, struct rc_noise noise, struct wml_str *out, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_flow_oracle oracle = {.cx = e->cx};
    struct wml_env env = wml_flow_env(&oracle);
    size_t n = 0;
    bool ok = rc_load(bytes, &m, err) && env.infer_types(env.arg, m, &n, err);
    if (ok) {
        struct wml_value *last = m->graph->last_value;
        for (struct wml_value *v = m->graph->first_value, *next; v; v = next) {
            enum wml_dtype t = wml_value_elem(v);
            next = v == last ? NULL : v->next;
            if (t != WML_F32 && t != WML_F64 && t != WML_F16) continue;
            add_noise(v, t, noise);
            noise.seed++;
        }
        ok = rc_encode(e, m, out, err);
    }
    wml_model_free(m);
    return ok;
}
