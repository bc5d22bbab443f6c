/* options.c - provider options. ORT hands them over as session configuration entries named
 * "ep.<name in lower case>.<option>", beside its own entries such as "ep.context_enable". */
#include "vnpu.h"

#include <stdlib.h>
#include <string.h>

#include "onnxruntime_session_options_config_keys.h"

#define PREFIX         "ep.virtualnpuexecutionprovider."
#define FAULT_VARIABLE "WINML_VNPU_FAULT"

static const char default_ops[] =
    "Abs,Add,ArgMax,AveragePool,BatchNormalization,Cast,Ceil,Clip,Concat,Conv,ConvTranspose,"
    "DepthToSpace,"
    "DequantizeLinear,Div,Elu,Equal,Erf,Exp,Expand,Flatten,Floor,Gather,Gelu,Gemm,"
    "GlobalAveragePool,"
    "GlobalMaxPool,Greater,GroupNormalization,HardSigmoid,HardSwish,Identity,InstanceNormalization,"
    "LayerNormalization,LeakyRelu,Less,Log,LogSoftmax,MatMul,Max,MaxPool,Min,Mul,Neg,PRelu,Pad,Pow,"
    "QuantizeLinear,ReduceMax,ReduceMean,ReduceMin,ReduceSum,Relu,Reshape,Resize,Sigmoid,Slice,"
    "Softmax,"
    "SpaceToDepth,Split,Sqrt,Squeeze,Sub,Tanh,Tile,Transpose,Unsqueeze,Where";

struct reader {
    const OrtApi *api;
    const OrtKeyValuePairs *entries;
};

static const char *session_value(const struct reader *r, const char *key, const char *fallback)
{
    const char *v = r->api->GetKeyValue(r->entries, key);
    return v != NULL ? v : fallback;
}

static bool session_flag(const struct reader *r, const char *key)
{
    return strcmp(session_value(r, key, "0"), "1") == 0;
}

/* --- one function per kind of option --- */

static OrtStatus *read_text(const OrtApi *api, const char *key, const char *value, void *out)
{
    char **text = out;
    (void)key;
    free(*text);
    *text = NULL;
    return vnpu_copy_string(api, value, text);
}

static OrtStatus *read_number(const OrtApi *api, const char *key, const char *value, uint64_t max,
                              uint64_t *out)
{
    uint64_t n = 0;
    if (*value == '\0' || strlen(value) > 12 || strspn(value, "0123456789") != strlen(value) ||
        (n = strtoull(value, NULL, 10)) > max)
        return vnpu_fail(api, "option %s: '%s' is not a whole number up to %llu", key, value,
                         (unsigned long long)max);
    *out = n;
    return NULL;
}

static OrtStatus *read_latency(const OrtApi *api, const char *key, const char *value, void *out)
{
    return read_number(api, key, value, 600u * 1000000u, out);
}

static OrtStatus *read_count(const OrtApi *api, const char *key, const char *value, void *out)
{
    uint64_t n = 0;
    VNPU_TRY(read_number(api, key, value, 10000, &n));
    *(size_t *)out = (size_t)n;
    return NULL;
}

static OrtStatus *read_switch(const OrtApi *api, const char *key, const char *value, void *out)
{
    bool on = strcmp(value, "1") == 0 || strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
    if (!on && strcmp(value, "0") != 0 && strcmp(value, "off") != 0 && strcmp(value, "false") != 0)
        return vnpu_fail(api, "option %s: '%s' is neither on nor off", key, value);
    *(bool *)out = on;
    return NULL;
}

static OrtStatus *read_level(const OrtApi *api, const char *key, const char *value, void *out)
{
    static const char *const names[] = {
        [VNPU_PROFILE_OFF] = "off",
        [VNPU_PROFILE_BASIC] = "basic",
        [VNPU_PROFILE_DETAILED] = "detailed",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(value, names[i]) == 0) {
            *(enum vnpu_profiling *)out = (enum vnpu_profiling)i;
            return NULL;
        }
    return vnpu_fail(api, "option %s: '%s' is none of off, basic, detailed", key, value);
}

static OrtStatus *read_fault(const OrtApi *api, const char *key, const char *value, void *out)
{
    (void)key;
    return vnpu_fault_parse(api, value, out);
}

static const struct row {
    const char *key;
    OrtStatus *(*read)(const OrtApi *api, const char *key, const char *value, void *out);
    size_t at;
} rows[] = {
    {"ops", read_text, offsetof(struct vnpu_options, ops)},
    {"refuse_ops", read_text, offsetof(struct vnpu_options, refuse_ops)},
    {"min_nodes", read_count, offsetof(struct vnpu_options, min_nodes)},
    {"threads", read_count, offsetof(struct vnpu_options, threads)},
    {"latency_us", read_latency, offsetof(struct vnpu_options, latency_us)},
    {"profiling_level", read_level, offsetof(struct vnpu_options, profiling)},
    {"profiling_file_path", read_text, offsetof(struct vnpu_options, profiling_file)},
    {"csv", read_switch, offsetof(struct vnpu_options, csv)},
    {"shared_context", read_switch, offsetof(struct vnpu_options, shared_context)},
    {"fault", read_fault, offsetof(struct vnpu_options, fault)},
};
#define N_ROWS (sizeof(rows) / sizeof(*rows))

static OrtStatus *unknown(const OrtApi *api, const char *key)
{
    char known[256] = "";
    for (size_t i = 0; i < N_ROWS; i++) {
        strncat(known, i > 0 ? ", " : "", sizeof(known) - strlen(known) - 1);
        strncat(known, rows[i].key, sizeof(known) - strlen(known) - 1);
    }
    return vnpu_fail(api, "there is no option '%s'; known: %s", key, known);
}

static OrtStatus *read_options(const struct reader *r, struct vnpu_options *o)
{
    const char *const *keys, *const *values;
    size_t n;
    r->api->GetKeyValuePairs(r->entries, &keys, &values, &n);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(keys[i], PREFIX, strlen(PREFIX)) != 0) continue;
        const char *key = keys[i] + strlen(PREFIX);
        size_t k = 0;
        while (k < N_ROWS && strcmp(rows[k].key, key) != 0)
            k++;
        if (k == N_ROWS) return unknown(r->api, key);
        VNPU_TRY(rows[k].read(r->api, key, values[i], (char *)o + rows[k].at));
    }
    return NULL;
}

static OrtStatus *read_session(const struct reader *r, struct vnpu_options *o)
{
    const OrtApi *api = r->api;
    o->context_enable = session_flag(r, kOrtSessionOptionEpContextEnable);
    o->context_embed = session_flag(r, kOrtSessionOptionEpContextEmbedMode);
    o->context_share_stop = session_flag(r, kOrtSessionOptionStopShareEpContexts);
    o->context_share = o->context_share_stop || session_flag(r, kOrtSessionOptionShareEpContexts);
    VNPU_TRY(vnpu_copy_string(api, session_value(r, kOrtSessionOptionEpContextFilePath, ""),
                              &o->context_file));
    return vnpu_copy_string(api, session_value(r, kOrtSessionOptionEpContextNodeNamePrefix, ""),
                            &o->context_prefix);
}

static OrtStatus *read_all(const struct reader *r, struct vnpu_options *o)
{
    const OrtApi *api = r->api;
    VNPU_TRY(vnpu_copy_string(api, default_ops, &o->ops));
    VNPU_TRY(vnpu_copy_string(api, "", &o->refuse_ops));
    VNPU_TRY(vnpu_copy_string(api, "", &o->profiling_file));
    VNPU_TRY(vnpu_fault_parse(api, getenv(FAULT_VARIABLE), &o->fault)); /* the option wins */
    VNPU_TRY(read_options(r, o));
    VNPU_TRY(read_session(r, o));
    if (o->profiling != VNPU_PROFILE_OFF && o->csv && *o->profiling_file == '\0')
        return vnpu_fail(
            api, "profiling needs the option profiling_file_path: where to write the CSV file");
    return NULL;
}

OrtStatus *vnpu_options_read(const OrtApi *api, const OrtSessionOptions *so,
                             struct vnpu_options *out)
{
    OrtKeyValuePairs *entries = NULL;
    *out = (struct vnpu_options){.min_nodes = 1, .threads = 1, .csv = true, .shared_context = true};
    VNPU_TRY(api->GetSessionOptionsConfigEntries(so, &entries));
    OrtStatus *st = read_all(&(struct reader){api, entries}, out);
    api->ReleaseKeyValuePairs(entries);
    if (st != NULL) vnpu_options_release(out);
    return st;
}

void vnpu_options_release(struct vnpu_options *o)
{
    free(o->ops);
    free(o->refuse_ops);
    free(o->profiling_file);
    free(o->context_file);
    free(o->context_prefix);
    *o = (struct vnpu_options){0};
}
