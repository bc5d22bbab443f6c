/* flow/export/specs.c - what users say of inputs: --input-specs, --shape-config, --dynamic-axes. */
#include <inttypes.h>
#include "base/num.h"
#include "flow/export/internal.h"
#include "opset/opset.h"
#include "text/words.h"

static bool object_of(const char *option, const char *path, struct wml_json_doc **doc, struct wml_err *err)
{
    if (!wml_json_load(path, doc, err)) return wml_wrap(err, "%s", option);
    if (wml_json_is_object(wml_json_root(*doc))) return true;
    wml_json_free(*doc);
    *doc = NULL;
    return wml_fail(err, WML_E_FORMAT, "%s must contain a JSON object: %s", option, path);
}

static struct wml_family_input *input_named(struct wml_export_run *r, struct wml_str name)
{
    for (size_t i = 0; i < r->given.len; i++)
        if (wml_str_eq(r->given.at[i].name, name)) return &r->given.at[i];
    struct wml_family_input in = {.name = wml_arena_str(&r->arena, name)};
    for (size_t i = 0; i < WML_NN_MAX_RANK; i++) in.axis[i].size = -1;
    WML_PUSH_IN(&r->arena, &r->given, in);
    return &r->given.at[r->given.len - 1];
}

/* {"input_ids": {"dtype": "int32", "shape": [1, "length"], "value_range": [0, 100]}} */
static bool read_spec(struct wml_export_run *r, struct wml_str name, const struct wml_json_val *v, struct wml_err *err)
{
    static const enum wml_dtype types[] = {WML_F32, WML_F16, WML_BF16, WML_I64, WML_I32, WML_I8};
    struct wml_family_input *in = input_named(r, name);
    const struct wml_str dtype = wml_json_get_str(v, "dtype");
    if (!wml_json_is_object(v)) return wml_fail(err, WML_E_USAGE, "--input-specs: '%.*s' is no object", WML_ARG(name));
    if (dtype.ptr) in->dtype = wml_dtype_parse(dtype);
    bool known = !dtype.ptr;
    for (size_t i = 0; i < WML_COUNT(types); i++) known |= in->dtype == types[i];
    if (!known) return wml_fail(err, WML_E_USAGE, "--input-specs: '%.*s' has the dtype '%.*s', not float32, float16, bfloat16, int64, int32 or int8",
                                WML_ARG(name), WML_ARG(dtype));
    const struct wml_json_val *shape = wml_json_get(v, "shape"), *range = wml_json_get(v, "value_range"), *e;
    in->has_rank = wml_json_is_array(shape);
    in->rank = in->has_rank ? wml_json_len(shape) : 0;
    if (in->rank > WML_NN_MAX_RANK) return wml_fail(err, WML_E_USAGE, "--input-specs: '%.*s' has %zu axes", WML_ARG(name), in->rank);
    struct wml_json_iter it = {0};
    struct wml_str key;
    for (size_t i = 0; in->has_rank && wml_json_next(shape, &it, &key, &e); i++) {
        const int64_t size = wml_json_int(e, -1);
        const struct wml_str symbol = wml_json_str(e);
        if (!symbol.len && (size < 1 || size > 1 << 24))
            return wml_fail(err, WML_E_USAGE, "--input-specs: axis %zu of '%.*s' is neither a size nor a name", i, WML_ARG(name));
        in->axis[i] = symbol.len ? (struct wml_axis){-1, wml_arena_str(&r->arena, symbol)} : (struct wml_axis){.size = size};
    }
    in->has_range = wml_json_len(range) == 2;
    in->low = wml_json_num(wml_json_at(range, 0), 0);
    in->high = wml_json_num(wml_json_at(range, 1), 0);
    return true;
}

/* {"input_ids": {"0": "batch", "1": "length"}} */
static bool read_axes(struct wml_export_run *r, struct wml_str name, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    struct wml_family_input *in = input_named(r, name);
    if (!wml_json_is_object(v)) return wml_fail(err, WML_E_USAGE, "--dynamic-axes: '%.*s' is no object of axes and names", WML_ARG(name));
    while (wml_json_next(v, &it, &key, &e)) {
        uint64_t axis = 0;
        const struct wml_str symbol = wml_json_str(e);
        if (!wml_parse_u64(key, &axis) || axis >= WML_NN_MAX_RANK || !symbol.len)
            return wml_fail(err, WML_E_USAGE, "--dynamic-axes: '%.*s' of '%.*s' is no axis with a name", WML_ARG(key), WML_ARG(name));
        if (in->axis[axis].symbol.len && !wml_str_eq(in->axis[axis].symbol, symbol))
            return wml_fail(err, WML_E_USAGE, "Conflicting dynamic axis for '%.*s' axis %" PRIu64 ": '%.*s' and '%.*s'", WML_ARG(name), axis,
                            WML_ARG(in->axis[axis].symbol), WML_ARG(symbol));
        in->axis[axis] = (struct wml_axis){-1, wml_arena_str(&r->arena, symbol)};
    }
    return true;
}

static bool read_shape(struct wml_export_run *r, struct wml_str name, const struct wml_json_val *v, struct wml_err *err)
{
    for (size_t i = 0; i < WML_SIZE_COUNT; i++) {
        if (!wml_str_is(name, wml_family_size_names[i])) continue;
        r->opts.size[i] = wml_json_int(v, -1);
        if (r->opts.size[i] >= 1 && r->opts.size[i] <= 1 << 24) return true;
        return wml_fail(err, WML_E_USAGE, "--shape-config: %.*s must be a whole number from 1 to 16777216", WML_ARG(name));
    }
    if (wml_str_is(name, "batch_size")) wml_log(r->cx, WML_LOG_WARN, "--shape-config: batch_size is not read: use --batch-size");
    else wml_log(r->cx, WML_LOG_WARN, "--shape-config: nothing reads '%.*s'", WML_ARG(name));
    return true;
}

static bool each(struct wml_export_run *r, const char *option, const char *path,
                 bool (*f)(struct wml_export_run *, struct wml_str, const struct wml_json_val *, struct wml_err *), struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    if (!path) return true;
    if (!object_of(option, path, &doc, err)) return false;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    bool ok = true;
    while (ok && wml_json_next(wml_json_root(doc), &it, &key, &v)) ok = f(r, key, v, err);
    wml_json_free(doc);
    return ok;
}

/* ------------------------------------------------------------------ configs */

static bool wrong_key(const char *key, const char *wanted, struct wml_err *err)
{
    return wml_fail(err, WML_E_USAGE, "Configuration error: %s must be %s", key, wanted);
}

/* {"transformers_attention": "eager"}: what is built anyway. */
static bool read_compatibility(const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    while (wml_json_next(v, &it, &key, &e)) {
        if (!wml_str_is(key, "transformers_attention"))
            return wml_fail(err, WML_E_USAGE, "Configuration error: compatibility has no '%.*s'", WML_ARG(key));
        if (!wml_json_is_null(e) && !wml_str_is(wml_json_str(e), "eager")) return wrong_key("compatibility.transformers_attention", "eager or null", err);
    }
    return true;
}

static bool read_tensors(struct wml_export_run *r, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    bool ok = true;
    while (ok && wml_json_next(v, &it, &key, &e)) {
        const struct wml_str name = wml_json_get_str(e, "name");
        ok = name.len ? read_spec(r, name, e, err) : wrong_key("input_tensors", "a list of objects with a name", err);
    }
    return ok;
}

/* The section `export`; keys that mean nothing here (constants are folded, weights always there) are let pass. */
static bool read_export(struct wml_export_run *r, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *batch = wml_json_get(v, "batch_size"), *opset = wml_json_get(v, "opset_version");
    const struct wml_json_val *format = wml_json_get(v, "hierarchy_tag_format"), *axes = wml_json_get(v, "dynamic_axes"), *e;
    if (!wml_json_is_null(batch) && !r->args.batch_given) {
        r->args.batch = wml_json_int(batch, 0);
        if (r->args.batch < 1 || r->args.batch > 1 << 24) return wrong_key("batch_size", "a positive integer", err);
    }
    if (!wml_json_is_null(opset) && !r->args.opset_given) {
        r->args.opset = wml_json_int(opset, 0);
        if (r->args.opset < WML_OPSET_FIRST || r->args.opset > WML_OPSET_LAST) return wrong_key("opset_version", "from 11 to 25", err);
    }
    if (!r->args.hierarchy_given)
        r->args.hierarchy = wml_json_get_bool(v, "enable_hierarchy_tags", true) && !wml_json_get_bool(v, "clean_onnx", false);
    if (!wml_json_is_null(format) && !wml_str_is(wml_json_str(format), "full") && !wml_str_is(wml_json_str(format), "module_only"))
        return wrong_key("hierarchy_tag_format", "full or module_only", err);
    struct wml_json_iter it = {0};
    struct wml_str key;
    bool ok = read_compatibility(wml_json_get(v, "compatibility"), err) && read_tensors(r, wml_json_get(v, "input_tensors"), err);
    while (ok && wml_json_next(axes, &it, &key, &e)) ok = read_axes(r, key, e, err);
    return ok;
}

static bool read_configs(struct wml_export_run *r, struct wml_err *err)
{
    const char *const path[2] = {r->a->config, r->a->export_config}, *const option[2] = {"--config", "--export-config"};
    for (size_t i = 0; i < 2; i++) {
        struct wml_json_doc *doc = NULL;
        if (!path[i]) continue;
        if (!object_of(option[i], path[i], &doc, err)) return false;
        const struct wml_json_val *root = wml_json_root(doc), *section = i ? root : wml_json_get(root, "export");
        const struct wml_str task = wml_json_get_str(wml_json_get(root, "loader"), "task");
        if (!i && task.len && !r->args.task) r->args.task = wml_arena_cstr(&r->arena, task);
        const bool ok = !wml_json_is_object(section) || read_export(r, section, err);
        wml_json_free(doc);
        if (!ok) return wml_wrap(err, "%s", path[i]);
    }
    return true;
}

bool wml_export_read_specs(struct wml_export_run *r, struct wml_err *err)
{
    bool ok = read_configs(r, err) && each(r, "--shape-config", r->a->shape_config, read_shape, err) &&
              each(r, "--input-specs", r->a->input_specs, read_spec, err) &&
              each(r, "--dynamic-axes", r->a->dynamic_axes, read_axes, err);
    r->source.submodel = r->a->submodel;
    r->source.inputs_named = r->a->input_specs && !r->a->submodel;
    r->opts.batch = r->a->batch;
    r->opts.opset = r->a->opset;
    r->opts.given = r->given.at;
    r->opts.n_given = r->given.len;
    return ok;
}
