/* bench/ort_loop.c - the barest benchmark loop over ORT's C API: what `winml perf` is compared with.
 *
 *     ort_loop LIBRARY MODEL ITERATIONS [DIM]      open dimensions become DIM (default 128), the first 1
 *
 * Prints mean and median of the run time in ms, and the peak resident set in MB. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <onnxruntime_c_api.h>

enum { MAX_IO = 64, MAX_RANK = 16 };

static const OrtApi *api;

static void check(OrtStatus *status)
{
    if (!status) return;
    fprintf(stderr, "ort_loop: %s\n", api->GetErrorMessage(status));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static size_t elem_size(ONNXTensorElementDataType type)
{
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return 2;
    default: return 1;
    }
}

static void fill(void *data, ONNXTensorElementDataType type, size_t n)
{
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
        for (size_t i = 0; i < n; i++) ((float *)data)[i] = (float)(i % 1000) / 1000.0f;
    else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)
        for (size_t i = 0; i < n; i++) ((int64_t *)data)[i] = 1;
    else
        memset(data, 0, n * elem_size(type));
}

static OrtValue *make_input(const OrtSession *session, size_t index, int64_t unknown)
{
    OrtTypeInfo *info;
    const OrtTensorTypeAndShapeInfo *tensor;
    ONNXTensorElementDataType type;
    size_t rank, n = 1;
    int64_t dims[MAX_RANK];
    check(api->SessionGetInputTypeInfo(session, index, &info));
    check(api->CastTypeInfoToTensorInfo(info, &tensor));
    check(api->GetTensorElementType(tensor, &type));
    check(api->GetDimensionsCount(tensor, &rank));
    if (rank > MAX_RANK) exit(1);
    check(api->GetDimensions(tensor, dims, rank));
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0) dims[i] = i == 0 ? 1 : unknown;
        n *= (size_t)dims[i];
    }
    OrtAllocator *allocator;
    OrtValue *value;
    void *data;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    check(api->CreateTensorAsOrtValue(allocator, dims, rank, type, &value));
    check(api->GetTensorMutableData(value, &data));
    fill(data, type, n);
    api->ReleaseTypeInfo(info);
    return value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(OrtSession *session, int iterations, int64_t unknown)
{
    OrtAllocator *allocator;
    const char *in_name[MAX_IO] = {0}, *out_name[MAX_IO] = {0};
    const OrtValue *in[MAX_IO] = {0};
    size_t n_in, n_out;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    check(api->SessionGetInputCount(session, &n_in));
    check(api->SessionGetOutputCount(session, &n_out));
    if (n_in > MAX_IO || n_out > MAX_IO) exit(1);
    for (size_t i = 0; i < n_in; i++) {
        char *text;
        check(api->SessionGetInputName(session, i, allocator, &text));
        in_name[i] = text;
        in[i] = make_input(session, i, unknown);
    }
    for (size_t i = 0; i < n_out; i++) {
        char *text;
        check(api->SessionGetOutputName(session, i, allocator, &text));
        out_name[i] = text;
    }
    double *ms = calloc((size_t)iterations, sizeof *ms), sum = 0;
    if (!ms) abort();
    for (int i = -10; i < iterations; i++) {
        OrtValue *out[MAX_IO] = {0};
        double t = now_ms();
        check(api->Run(session, NULL, in_name, in, n_in, out_name, n_out, out));
        t = now_ms() - t;
        for (size_t o = 0; o < n_out; o++) api->ReleaseValue(out[o]);
        if (i >= 0) sum += ms[i] = t;
    }
    qsort(ms, (size_t)iterations, sizeof *ms, by_value);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("{\"mean_ms\": %.4f, \"p50_ms\": %.4f, \"rss_mb\": %.1f}\n", sum / iterations,
           ms[iterations / 2], (double)use.ru_maxrss / 1024);
    free(ms);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: ort_loop LIBRARY MODEL ITERATIONS [DIM]\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    const OrtApiBase *(*base)(void) = NULL;
    if (library) *(void **)&base = dlsym(library, "OrtGetApiBase");
    if (!base) {
        fprintf(stderr, "ort_loop: cannot load %s: %s\n", argv[1], dlerror());
        return 1;
    }
    api = base()->GetApi(ORT_API_VERSION);
    int iterations = (int)strtol(argv[3], NULL, 10);
    if (!api || iterations < 1) return 1;
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
    check(api->CreateSessionOptions(&options));
    check(api->CreateSession(env, argv[2], options, &session));
    measure(session, iterations, argc > 4 ? strtoll(argv[4], NULL, 10) : 128);
    return 0;
}
