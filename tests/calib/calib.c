/* Ranges of arrays, asked for on the command line:
 *
 *     winml_calib METHOD FILE.npz [KEY=VALUE...]      the arrays are named tensor@sample; prints "tensor low high" as hex
 *     winml_calib METHOD FILE.json [out=FILE.json]    reads a cache, prints it the same way, writes it again
 *
 * Keys: the members of struct wml_range_opts; threads=N (the samples dealt out to N states); out=FILE.json; time=N. */
#include <inttypes.h>

#include "base/num.h"
#include "calib/cache.h"
#include "os/sys.h"
#include "text/npy.h"

struct job {
    const struct wml_range_method *method;
    struct wml_range_opts opts;
    unsigned threads, times;
    const char *out;
};

static int complain(const struct wml_err *err)
{
    fprintf(stderr, "%s: %s\n%s\n", wml_code_name(err->code), err->msg, err->hint);
    return 1;
}

static bool option(struct job *j, const char *text, struct wml_err *err)
{
    struct wml_str rest = wml_str(text), key;
    double v = 0;
    if (!wml_str_split(&rest, '=', &key)) return wml_fail(err, WML_E_USAGE, "%s is not KEY=VALUE", text);
    if (wml_str_is(key, "out")) j->out = rest.ptr;
    else if (wml_str_is(key, "integer")) j->opts.integer = wml_dtype_parse(rest);
    else if (wml_str_is(key, "form")) j->opts.form = wml_str_is(rest, "free") ? WML_RANGE_FREE : WML_RANGE_SYMMETRIC;
    else if (!wml_parse_f64(rest, &v)) return wml_fail(err, WML_E_USAGE, "%s: not a number", text);
    else if (wml_str_is(key, "bins")) j->opts.bins = (unsigned)v;
    else if (wml_str_is(key, "levels")) j->opts.levels = (unsigned)v;
    else if (wml_str_is(key, "percentile")) j->opts.percentile = v;
    else if (wml_str_is(key, "averaging")) j->opts.averaging = v;
    else if (wml_str_is(key, "threads")) j->threads = (unsigned)v;
    else if (wml_str_is(key, "time")) j->times = (unsigned)v;
    else return wml_fail(err, WML_E_USAGE, "%s: no such key", text);
    return true;
}

static void show(const struct wml_ranges *r)
{
    for (size_t i = 0; i < r->map.len; i++) {
        const struct wml_range *x = r->map.entry[i].value;
        printf("%.*s %a %a %s\n", WML_ARG(r->map.entry[i].key), x->low, x->high, wml_dtype_name((int)x->dtype));
    }
}

/* Arrays of a file are not aligned. */
static void *aligned(const struct wml_npy *a)
{
    void *copy = wml_xcalloc(a->data.len + 1, 1);
    memcpy(copy, a->data.ptr, a->data.len);
    return copy;
}

static bool calibrate(const struct job *j, const struct wml_npys *a, struct wml_ranges *out, struct wml_err *err)
{
    struct wml_map number = {0}; /* tensor -> its number + 1 */
    struct wml_calib *c = wml_calib_new(j->method, &j->opts, j->threads, err);
    if (!c) return false;
    for (size_t i = 0; i < a->v.len; i++) {
        struct wml_str rest = a->v.at[i].name, name;
        wml_str_split(&rest, '@', &name);
        if (wml_map_has(&number, name)) continue;
        wml_map_put(&number, name, (void *)(uintptr_t)(wml_calib_add(c, name, a->v.at[i].dtype) + 1));
    }
    while (wml_calib_pass(c)) {
        uint64_t start = wml_now_ns(), bytes = 0;
        for (size_t i = 0; i < a->v.len; i++) {
            struct wml_str rest = a->v.at[i].name, name;
            uint64_t sample = 0;
            void *data = aligned(&a->v.at[i]);
            wml_str_split(&rest, '@', &name);
            if (!wml_parse_u64(rest, &sample)) sample = i;
            size_t tensor = (size_t)(uintptr_t)wml_map_get(&number, name) - 1, size = a->v.at[i].dtype == WML_F16 ? 2 : 4;
            for (unsigned t = 0; t < (j->times ? j->times : 1); t++, bytes += a->v.at[i].data.len)
                wml_calib_observe(c, (unsigned)sample % j->threads, tensor, (size_t)sample, data, a->v.at[i].data.len / size);
            free(data);
        }
        if (j->times) printf("# %.3f GB/s\n", (double)bytes / (double)(wml_now_ns() - start));
    }
    uint64_t start = wml_now_ns();
    wml_calib_finish(c, out);
    if (j->times) printf("# %.3f ms to finish %zu tensors\n", (double)(wml_now_ns() - start) / 1e6, number.live);
    for (size_t i = 0; j->times && i < number.live; i++) {
        struct wml_extent e = wml_calib_extent(c, i);
        printf("# %" PRIu64 " finite, %" PRIu64 " nan, %" PRIu64 " inf\n", e.finite, e.nan, e.inf);
    }
    wml_calib_free(c);
    wml_map_release(&number);
    return true;
}

int main(int argc, char **argv)
{
    struct wml_err err = {0};
    struct wml_ranges ranges = {0};
    struct wml_npys arrays = {0};
    struct job j = {.threads = 1};
    if (argc < 3) return 2;
    j.method = wml_range_method_find(argv[1]);
    if (!j.method && strcmp(argv[1], "any") != 0) return 2;
    for (int i = 3; i < argc; i++)
        if (!option(&j, argv[i], &err)) return complain(&err);
    bool ok = wml_str_ends(wml_str(argv[2]), ".json")
                  ? wml_ranges_load(argv[2], j.method, NULL, &ranges, &err)
                  : wml_npy_load(argv[2], &arrays, &err) && calibrate(&j, &arrays, &ranges, &err);
    if (ok) show(&ranges);
    ok = ok && (!j.out || wml_ranges_save(&ranges, j.method, NULL, j.out, &err));
    wml_ranges_release(&ranges);
    wml_npys_release(&arrays);
    return ok ? 0 : complain(&err);
}
