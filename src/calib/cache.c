/* The JSON cache of ranges, read and written. The reader trusts nothing: every member is looked at for its type. */
#include "calib/cache.h"

#include <math.h>

#include "calib/internal.h"
#include "os/file.h"
#include "text/json.h"

static const char FACTS[] = "winml";
static const char METHOD_CLASS[] = "CalibrationMethod";
static const uint64_t MAX_BYTES = UINT64_C(1) << 28; /* histograms included: 2048 bins of 10000 tensors are 200 MB */

static bool method_fits(const struct wml_json_val *root, const struct wml_range_method *m, struct wml_err *err)
{
    struct wml_str value = wml_json_get_str(wml_json_get(root, "calibration_method"), "value");
    struct wml_str ours = wml_json_get_str(root, "winml_method");
    size_t dot = wml_str_rfind(value, '.');
    struct wml_str name = dot == SIZE_MAX ? value : wml_str_sub(value, dot + 1, value.len);
    if (!name.ptr)
        return wml_fail(err, WML_E_FORMAT, "no calibration method: \"calibration_method\" is not {\"value\": \"CalibrationMethod.NAME\"}");
    if (wml_str_is(name, m->ort_name) && (m->ours ? wml_str_is(ours, m->name) : !ours.ptr)) return true;
    wml_fail(err, WML_E_USAGE, "the ranges come from method %.*s, asked for is %s", WML_ARG(ours.ptr ? ours : name), m->name);
    return wml_hint(err, "ask for the method of the cache, or remove the file to calibrate again");
}

static bool facts_fit(const struct wml_json_val *root, const struct wml_cache_facts *facts, struct wml_err *err)
{
    const struct wml_json_val *said = wml_json_get(root, FACTS);
    for (size_t i = 0; facts && i < facts->len; i++) {
        const struct wml_cache_fact *f = &facts->at[i];
        struct wml_str value = wml_json_get_str(said, f->key);
        if (!value.ptr && !f->unsaid) continue;
        if (!value.ptr) value = wml_str(f->unsaid);
        if (wml_str_is(value, f->value)) continue;
        if (f->differs) {
            *f->differs = true;
            continue;
        }
        wml_fail(err, WML_E_USAGE, "the ranges come from %s %.*s, asked for is %s", f->key, WML_ARG(value), f->value);
        return wml_hint(err, "ask for the same as when the cache was made, or remove the file to calibrate again");
    }
    return true;
}

static const char *const BOUND[] = {"lowest", "highest"};

/* The smallest or largest of a bound's numbers, which may not be finite; its dtype where it says one. */
static bool read_bound(const struct wml_json_val *v, int which, double *out, enum wml_dtype *dtype, struct wml_err *err)
{
    const struct wml_json_val *data = wml_json_is_object(v) ? wml_json_get(v, "data") : v, *each = data;
    struct wml_str type = wml_json_is_object(v) ? wml_json_get_str(v, "dtype") : WML_NO_STR, key;
    struct wml_json_iter it = {0};
    bool any = false;
    if (type.ptr) *dtype = wml_dtype_parse(type);
    if (*dtype != WML_F32 && *dtype != WML_F16)
        return wml_fail(err, WML_E_FORMAT, "\"%s\" is of type '%.*s', not float32 or float16", BOUND[which], WML_ARG(type));
    while (wml_json_is_array(data) ? wml_json_next(data, &it, &key, &each) : !any) {
        double x = wml_json_num(each, NAN);
        if (!wml_json_is_number(each))
            return wml_fail(err, WML_E_FORMAT, "\"%s\" is not a number, nor an array of numbers", BOUND[which]);
        if (!any || isnan(x) || (which ? x > *out : x < *out)) *out = x;
        any = true;
    }
    return any || wml_fail(err, WML_E_FORMAT, "\"%s\" is empty", BOUND[which]);
}

static bool read_tensor(const struct wml_json_val *v, struct wml_range *out, struct wml_err *err)
{
    double bound[2];
    *out = (struct wml_range){.dtype = WML_F32};
    if (!wml_json_is_object(v)) return wml_fail(err, WML_E_FORMAT, "not an object");
    for (int i = 0; i < 2; i++)
        if (!read_bound(wml_json_get(v, BOUND[i]), i, &bound[i], &out->dtype, err)) return false;
    for (int i = 0; i < 2; i++) {
        bound[i] = wml_range_round(out->dtype, bound[i]);
        if (isfinite(bound[i])) continue;
        wml_fail(err, WML_E_FORMAT, "\"%s\" is %s, of which no scale can be made", BOUND[i], isnan(bound[i]) ? "NaN" : "infinite");
        return wml_hint(err, "calibrate again with winml, which leaves NaN and infinities out");
    }
    *out = wml_range_make(out->dtype, bound[0], bound[1], false); /* ORT's can have crossed */
    return true;
}

static bool read_tensors(const struct wml_json_val *data, struct wml_ranges *out, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str name;
    const struct wml_json_val *v;
    if (!wml_json_is_object(data)) return wml_fail(err, WML_E_FORMAT, "no tensors: \"data\" is not an object");
    while (wml_json_next(data, &it, &name, &v)) {
        struct wml_range range;
        if (!read_tensor(v, &range, err)) return wml_wrap(err, "tensor '%.*s'", WML_ARG(name));
        wml_ranges_put(out, name, range);
    }
    return true;
}

static bool read_root(const struct wml_json_val *root, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_ranges *out,
                      struct wml_err *err)
{
    if (!wml_json_is_object(root)) return wml_fail(err, WML_E_FORMAT, "not an object");
    if (!wml_str_is(wml_json_get_str(root, "CLS"), "TensorsData")) return read_tensors(root, out, err);
    if (!m) facts = NULL;
    if (wml_json_get_bool(root, "smooth_quant", false) && !wml_json_is_object(wml_json_get(root, FACTS))) { /* not by ours */
        wml_fail(err, WML_E_UNSUPPORTED, "the ranges belong to a model changed by SmoothQuant");
        return wml_hint(err, "remove the file to calibrate again");
    }
    return (!m || method_fits(root, m, err)) && facts_fit(root, facts, err) && read_tensors(wml_json_get(root, "data"), out, err);
}

bool wml_ranges_parse(struct wml_str json, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_ranges *out, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    bool ok = wml_json_parse_python(json, &doc, err) && read_root(wml_json_root(doc), m, facts, out, err);
    wml_json_free(doc);
    return ok;
}

bool wml_ranges_load(const char *path, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_ranges *out, struct wml_err *err)
{
    struct wml_buf text = {0};
    bool ok = wml_file_read(path, MAX_BYTES, &text, err) &&
              (wml_ranges_parse(wml_buf_view(&text), m, facts, out, err) || wml_wrap(err, "calibration cache %s", path));
    wml_buf_release(&text);
    return ok;
}

/* MinMax has arrays of one element, the other methods arrays without a dimension, as ORT has them. */
static void print_bound(struct wml_json *j, const char *key, double x, enum wml_dtype dtype, bool list)
{
    wml_json_key(j, key);
    wml_json_begin(j, '{');
    wml_json_key(j, "data");
    if (list) wml_json_begin(j, '[');
    wml_json_put_num(j, x);
    if (list) wml_json_end(j, ']');
    wml_json_key(j, "dtype");
    wml_json_put_cstr(j, wml_dtype_name((int)dtype));
    wml_json_key(j, "CLS");
    wml_json_put_cstr(j, "numpy.array");
    wml_json_end(j, '}');
}

static void print_facts(struct wml_json *j, const struct wml_cache_facts *facts)
{
    bool any = false;
    for (size_t i = 0; facts && i < facts->len; i++) {
        const struct wml_cache_fact *f = &facts->at[i];
        if (f->unsaid && strcmp(f->value, f->unsaid) == 0) continue;
        if (!any) {
            wml_json_key(j, FACTS);
            wml_json_begin(j, '{');
        }
        any = true;
        wml_json_key(j, f->key);
        wml_json_put_cstr(j, f->value);
    }
    if (any) wml_json_end(j, '}');
}

void wml_ranges_print(const struct wml_ranges *r, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    char value[64];
    bool list = !strcmp(m->ort_name, "MinMax");
    wml_json_begin(&j, '{');
    wml_json_key(&j, "CLS");
    wml_json_put_cstr(&j, "TensorsData");
    wml_json_key(&j, "data");
    wml_json_begin(&j, '{');
    for (size_t i = 0; i < r->map.len; i++) {
        const struct wml_range *range = r->map.entry[i].value;
        if (!r->map.entry[i].live) continue;
        wml_json_key_str(&j, r->map.entry[i].key);
        wml_json_begin(&j, '{');
        print_bound(&j, "lowest", range->low, range->dtype, list);
        print_bound(&j, "highest", range->high, range->dtype, list);
        wml_json_key(&j, "CLS");
        wml_json_put_cstr(&j, "TensorData");
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, '}');
    wml_json_key(&j, "calibration_method");
    wml_json_begin(&j, '{');
    wml_json_key(&j, "CLS");
    wml_json_put_cstr(&j, METHOD_CLASS);
    wml_json_key(&j, "value");
    snprintf(value, sizeof value, "%s.%s", METHOD_CLASS, m->ort_name);
    wml_json_put_cstr(&j, value);
    wml_json_end(&j, '}');
    wml_json_key(&j, "smooth_quant");
    wml_json_put_bool(&j, facts && facts->smooth);
    if (m->ours) {
        wml_json_key(&j, "winml_method");
        wml_json_put_cstr(&j, m->name);
    }
    print_facts(&j, facts);
    wml_json_end(&j, '}');
}

bool wml_ranges_save(const struct wml_ranges *r, const struct wml_range_method *m, const struct wml_cache_facts *facts, const char *path, struct wml_err *err)
{
    struct wml_buf text = {0};
    wml_ranges_print(r, m, facts, &text);
    wml_buf_char(&text, '\n');
    bool ok = text.failed ? wml_fail(err, WML_E_MEMORY, "calibration cache %s: too long", path)
                          : wml_file_write(path, wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}
