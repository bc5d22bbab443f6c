/* A grouped 1-D Conv whose result is cut to a prefix: taps that can only meet padding are dropped, and the groups
 * are halved into two Convs. A hint in the model's metadata tells a quantiser that the two belong together. */
#include "passes/match.h"
#include "passes/slice_info.h"

struct trim {
    struct wml_node *conv, *slice;
    struct wml_tensor *w, *b;
    int64_t group, channels, width, length; /* of the input */
    int64_t out, taps, first, kept_taps, pads[2];
};

static bool is_default(const struct wml_node *n, const char *name)
{
    size_t len;
    const int64_t *v = wml_attr_ints(n, name, &len);
    return !v || (len == 1 && v[0] == 1);
}

static bool measure(struct trim *t, const struct wml_slice *s)
{
    size_t len;
    const int64_t *pads = wml_attr_ints(t->conv, "pads", &len);
    const struct wml_value *x = t->conv->in[0];
    if (!pads || len != 2 || !is_default(t->conv, "strides") || !is_default(t->conv, "dilations")) return false;
    if (!wml_str_is(wml_attr_str(t->conv, "auto_pad", WML_STR("NOTSET")), "NOTSET")) return false;
    t->group = wml_attr_int(t->conv, "group", 1);
    if (t->group < 2 || t->group % 2 || wml_value_rank(x) != 3 || t->w->dims.len != 3) return false;
    t->channels = wml_value_axis(x, 1).size;
    t->length = wml_value_axis(x, 2).size;
    t->width = t->w->dims.at[1];
    t->out = t->w->dims.at[0];
    t->taps = t->w->dims.at[2];
    if (t->channels < 0 || t->length < 1 || t->channels != t->group * t->width || t->out % t->group || t->taps < 2) return false;
    int64_t full = t->length + pads[0] + pads[1] - t->taps + 1, kept = s->count[0];
    if (kept <= 0 || kept >= full || s->size[0] != full) return false;
    t->first = WML_MAX(0, pads[0] - (kept - 1));
    int64_t last = WML_MIN(t->taps - 1, pads[0] + t->length - 1);
    t->kept_taps = last - t->first + 1;
    if (t->kept_taps < 1 || t->kept_taps >= t->taps) return false;
    t->pads[0] = pads[0] - t->first;
    t->pads[1] = kept - t->length - t->pads[0] + t->kept_taps - 1;
    return t->pads[0] >= 0 && t->pads[1] >= 0;
}

static bool find(struct wml_pass_run *r, struct wml_node *n, struct trim *t)
{
    struct wml_slice s;
    *t = (struct trim){.slice = n, .conv = wml_node_is(n, "Slice") ? wml_node_producer(n, 0) : NULL};
    if (!t->conv || !wml_node_is(t->conv, "Conv") || t->conv->graph != n->graph || !wml_node_out(n, 0)) return false;
    if (wml_value_only_user(t->conv->out[0]) != n || t->conv->out[0]->pinned) return false;
    t->w = wml_constant_of(wml_node_in(t->conv, 1));
    t->b = wml_constant_of(wml_node_in(t->conv, 2));
    if (!t->w || (wml_node_in(t->conv, 2) && !t->b) || !wml_dtype_is_float(t->w->dtype)) return false;
    if (!wml_slice_of(r, n, &s) || s.n != 1 || s.axis[0] != 2 || s.start[0] != 0 || s.step[0] != 1) return false;
    return measure(t, &s);
}

/* Output channels [half * out / 2, ...), taps [first, first + kept). */
static struct wml_value *half_weights(struct wml_pass_run *r, const struct trim *t, int64_t half)
{
    struct wml_span src;
    size_t width = wml_dtype_info(t->w->dtype)->bits / 8;
    int64_t dims[] = {t->out / 2, t->width, t->kept_taps}, rows = dims[0] * dims[1];
    if (!wml_tensor_bytes(r->model, t->w, &src, NULL)) return NULL;
    unsigned char *bytes = wml_big_alloc((uint64_t)(rows * t->kept_taps) * width, NULL);
    if (!bytes) return NULL;
    for (int64_t row = 0; row < rows; row++)
        memcpy(bytes + (size_t)(row * t->kept_taps) * width,
               src.ptr + (size_t)((half * rows + row) * t->taps + t->first) * width, (size_t)t->kept_taps * width);
    struct wml_str name = wml_arena_fmt(r->scratch, "%.*s__winml_part%d", WML_ARG(t->conv->in[1]->name), (int)half);
    return wml_graph_add_init(t->conv->graph, name, wml_tensor_own(r->model, (enum wml_dtype)t->w->dtype, 3, dims, bytes,
                                                                   (size_t)(rows * t->kept_taps) * width, NULL));
}

static struct wml_value *half_bias(struct wml_pass_run *r, const struct trim *t, int64_t half)
{
    struct wml_span src;
    size_t width = wml_dtype_info(t->w->dtype)->bits / 8;
    int64_t dim = t->out / 2;
    if (!wml_tensor_bytes(r->model, t->b, &src, NULL)) return NULL;
    struct wml_str name = wml_arena_fmt(r->scratch, "%.*s__winml_part%d", WML_ARG(t->conv->in[2]->name), (int)half);
    return wml_graph_add_init(t->conv->graph, name,
                              wml_tensor_copy(r->model, (enum wml_dtype)t->b->dtype, 1, &dim, src.ptr + (size_t)(half * dim) * width,
                                              (size_t)dim * width, NULL));
}

static void name_node(struct wml_pass_run *r, struct wml_node *n, const struct wml_node *conv, const char *suffix)
{
    n->name = wml_model_unique(r->model, wml_arena_fmt(r->scratch, "%.*s__winml_%s", WML_ARG(conv->name), suffix));
}

static void put_json(struct wml_buf *b, struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20) wml_buf_fmt(b, "\\u%04x", c);
        else if (c == '"' || c == '\\') wml_buf_fmt(b, "\\%c", c);
        else wml_buf_char(b, (char)c);
    }
}

/* Appends one region to the hints; what is there already is kept. */
static bool hint(struct wml_pass_run *r, const struct wml_node *a, const struct wml_node *b, const struct wml_node *concat)
{
    static const char key[] = "winml.quantization.region_hints", tail[] = "],\"version\":1}";
    struct wml_str old = wml_entries_get(&r->model->metadata, key);
    struct wml_buf text = {0};
    if (old.len && (old.len < sizeof tail || memcmp(old.ptr + old.len - (sizeof tail - 1), tail, sizeof tail - 1) != 0)) return false;
    if (old.len) wml_buf_fmt(&text, "%.*s,", (int)(old.len - (sizeof tail - 1)), old.ptr);
    else wml_buf_fmt(&text, "{\"regions\":[");
    wml_buf_cstr(&text, "{\"branches\":[\"");
    put_json(&text, a->name);
    wml_buf_cstr(&text, "\",\"");
    put_json(&text, b->name);
    wml_buf_cstr(&text, "\"],\"concat\":\"");
    put_json(&text, concat->name);
    wml_buf_fmt(&text, "\",\"kind\":\"conv_concat\"}%s", tail);
    wml_entries_set(r->model, &r->model->metadata, key, wml_buf_view(&text));
    wml_buf_release(&text);
    return true;
}

static void rewrite(struct wml_pass_run *r, const struct trim *t, struct wml_value *const w[2], struct wml_value *const b[2])
{
    struct wml_node *split = wml_node_new(t->slice, "", "Split"), *concat, *part[2];
    static const char *const suffix[] = {"part0", "part1"};
    name_node(r, split, t->conv, "split");
    wml_node_set_input(split, 0, t->conv->in[0]);
    wml_attr_set_int(split, "axis", 1);
    if (wml_model_opset(r->model, "") >= 18) wml_attr_set_int(split, "num_outputs", 2);
    for (size_t i = 0; i < 2; i++) wml_node_add_output(split, WML_STR("split_part"));
    for (size_t i = 0; i < 2; i++) {
        part[i] = wml_node_new(t->slice, "", "Conv");
        name_node(r, part[i], t->conv, suffix[i]);
        wml_attrs_copy(part[i], t->conv);
        wml_attr_set_int(part[i], "group", t->group / 2);
        wml_attr_set_ints(part[i], "kernel_shape", 1, &t->kept_taps);
        wml_attr_set_ints(part[i], "pads", 2, t->pads);
        wml_node_set_input(part[i], 0, split->out[i]);
        wml_node_set_input(part[i], 1, w[i]);
        if (b[i]) wml_node_set_input(part[i], 2, b[i]);
        wml_node_add_output(part[i], WML_STR("conv_part"));
    }
    concat = wml_node_new(t->slice, "", "Concat");
    name_node(r, concat, t->conv, "concat");
    wml_attr_set_int(concat, "axis", 1);
    for (size_t i = 0; i < 2; i++) wml_node_add_input(concat, part[i]->out[0]);
    wml_node_take_output(concat, 0, t->slice->out[0]);
    wml_pass_applied(r, t->conv->op_type, t->conv->name);
    wml_node_remove(t->slice);
    wml_node_remove(t->conv);
    if (!hint(r, part[0], part[1], concat)) wml_pass_skip(r, "the model's hints for quantisation cannot be read: none was added");
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct trim t;
    struct wml_value *w[2], *b[2] = {NULL, NULL};
    if (n->graph->owner || !find(r, n, &t)) return true;
    for (int64_t i = 0; i < 2; i++) {
        w[i] = half_weights(r, &t, i);
        if (t.b) b[i] = half_bias(r, &t, i);
        if (!w[i] || (t.b && !b[i])) return true;
    }
    rewrite(r, &t, w, b);
    return true;
}

const struct wml_pass wml_pass_trim_split_grouped_conv = {
    .name = "trim-split-grouped-conv", .category = "surgery", .pipe = "surgery", .visit = visit,
    .summary = "Cut dead taps of a grouped 1-D Conv whose result is sliced, and halve its groups",
};
