/* bench/genai_loop.c - the barest generation loop over the C API of onnxruntime-genai: what winml's decode rate is compared with.
 *
 *     genai_loop ORT GENAI BUNDLE PROMPT NEW      libraries, folder, tokens of the prompt (their ids are 3, 4, ...), tokens to make
 *
 * Prints the mean ms of a token behind the second, after one request that is not timed. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct OgaResult;
struct OgaModel;
struct OgaGeneratorParams;
struct OgaGenerator;

static const char *(*error_of)(const struct OgaResult *);
static struct OgaResult *(*create_model)(const char *, struct OgaModel **);
static struct OgaResult *(*create_params)(const struct OgaModel *, struct OgaGeneratorParams **);
static struct OgaResult *(*set_number)(struct OgaGeneratorParams *, const char *, double);
static struct OgaResult *(*create_generator)(const struct OgaModel *, const struct OgaGeneratorParams *, struct OgaGenerator **);
static struct OgaResult *(*append)(struct OgaGenerator *, const int32_t *, size_t);
static struct OgaResult *(*next)(struct OgaGenerator *);
static void (*destroy_generator)(struct OgaGenerator *);

static void check(struct OgaResult *r)
{
    if (!r) return;
    fprintf(stderr, "genai_loop: %s\n", error_of(r));
    exit(1);
}

static void find(void *dl, const char *name, void *function)
{
    void *symbol = dlsym(dl, name);
    if (!symbol) {
        fprintf(stderr, "genai_loop: no function %s\n", name);
        exit(1);
    }
    memcpy(function, &symbol, sizeof symbol);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double request(const struct OgaModel *model, const int32_t *prompt, size_t n, size_t more)
{
    struct OgaGeneratorParams *params;
    struct OgaGenerator *g;
    double start = 0;
    check(create_params(model, &params));
    check(set_number(params, "max_length", (double)(n + more)));
    check(create_generator(model, params, &g));
    check(append(g, prompt, n));
    for (size_t i = 0; i < more; i++) {
        if (i == 2) start = now_ms();
        check(next(g));
    }
    const double ms = (now_ms() - start) / (double)(more - 2);
    destroy_generator(g);
    return ms;
}

int main(int argc, char **argv)
{
    const size_t n = argc == 6 ? strtoull(argv[4], NULL, 10) : 0, more = argc == 6 ? strtoull(argv[5], NULL, 10) : 0;
    if (!n || more < 3 || n > 100000) {
        fprintf(stderr, "usage: genai_loop ORT GENAI BUNDLE PROMPT NEW\n");
        return 2;
    }
    setenv("ORT_LIB_PATH", argv[1], 1);
    void *ort = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL), *dl = ort ? dlopen(argv[2], RTLD_NOW) : NULL;
    if (!dl) {
        fprintf(stderr, "genai_loop: %s\n", dlerror());
        return 1;
    }
    void (*telemetry)(bool);
    find(dl, "OgaSetTelemetryEnabled", &telemetry);
    find(dl, "OgaResultGetError", &error_of);
    find(dl, "OgaCreateModel", &create_model);
    find(dl, "OgaCreateGeneratorParams", &create_params);
    find(dl, "OgaGeneratorParamsSetSearchNumber", &set_number);
    find(dl, "OgaCreateGenerator", &create_generator);
    find(dl, "OgaGenerator_AppendTokens", &append);
    find(dl, "OgaGenerator_GenerateNextToken", &next);
    find(dl, "OgaDestroyGenerator", &destroy_generator);
    telemetry(false);
    struct OgaModel *model;
    int32_t *prompt = malloc(n * sizeof *prompt);
    if (!prompt) return 1;
    for (size_t i = 0; i < n; i++) prompt[i] = (int32_t)(3 + i % 200);
    check(create_model(argv[3], &model));
    request(model, prompt, n, 3);
    printf("%.4f\n", request(model, prompt, n, more));
    fflush(stdout);
    _Exit(0); /* what the libraries do at their end is not compared */
}
