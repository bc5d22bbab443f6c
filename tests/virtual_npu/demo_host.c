/* demo_host.c - what any host of a plugin EP does: load ORT, register the library, find its device,
 * make sessions with it, compile with it. */
#define _POSIX_C_SOURCE 200809L

#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

static void *open_symbol(const char *path, const char *name)
{
    void *p = NULL;
#if defined(_WIN32)
    HMODULE h = LoadLibraryExA(path, NULL,
                               LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    FARPROC f = h != NULL ? GetProcAddress(h, name) : NULL;
    memcpy(&p, &f, sizeof(p));
#else
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL)
        fprintf(stderr, "%s\n", dlerror());
    else
        p = dlsym(h, name);
#endif
    return p;
}

void *demo_plugin_symbol(const char *plugin, const char *name)
{
    return open_symbol(plugin, name);
}

void demo_environment(const char *name, const char *value)
{
#if defined(_WIN32)
    _putenv_s(name, value);
#else
    setenv(name, value, 1);
#endif
}

/* ORT's paths are wide on Windows; those of this program are ASCII. */
static const ORTCHAR_T *native(const char *path)
{
    static ORTCHAR_T buffer[4][1024];
    static size_t next;
    ORTCHAR_T *out = buffer[next++ % 4];
    size_t n = 0;
    for (; path[n] != '\0' && n < 1023; n++)
        out[n] = (ORTCHAR_T)path[n];
    out[n] = 0;
    return out;
}

void demo_must(const struct demo *d, OrtStatus *st, const char *what)
{
    if (st == NULL) return;
    fprintf(stderr, "%s: %s\n", what, d->api->GetErrorMessage(st));
    exit(1);
}

bool demo_says(const struct demo *d, OrtStatus *st, const char *text)
{
    if (st == NULL) return false;
    bool yes = strstr(d->api->GetErrorMessage(st), text) != NULL;
    if (!yes) fprintf(stderr, "  it says: %s\n", d->api->GetErrorMessage(st));
    d->api->ReleaseStatus(st);
    return yes;
}

bool demo_open(struct demo *d, const char *ort, const char *plugin, const char *folder)
{
    const OrtApiBase *(*get)(void);
    void *p = open_symbol(ort, "OrtGetApiBase");
    *d = (struct demo){.plugin = plugin, .folder = folder};
    if (p == NULL) {
        fprintf(stderr, "cannot load ONNX Runtime from %s\n", ort);
        return false;
    }
    memcpy(&get, &p, sizeof(get));
    d->base = get();
    d->api = d->base->GetApi(ORT_API_VERSION);
    if (d->api == NULL) {
        fprintf(stderr, "%s is ONNX Runtime %s: too old\n", ort, d->base->GetVersionString());
        return false;
    }
    demo_must(d, d->api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "demo", &d->env), "environment");
    return true;
}

void demo_close(struct demo *d)
{
    if (d->env != NULL) d->api->ReleaseEnv(d->env);
    *d = (struct demo){0};
}

OrtStatus *demo_register(struct demo *d, const char *name)
{
    return d->api->RegisterExecutionProviderLibrary(d->env, name, native(d->plugin));
}

OrtStatus *demo_unregister(struct demo *d, const char *name)
{
    return d->api->UnregisterExecutionProviderLibrary(d->env, name);
}

const OrtEpDevice *demo_device(struct demo *d)
{
    const OrtEpDevice *const *devices;
    size_t n;
    demo_must(d, d->api->GetEpDevices(d->env, &devices, &n), "devices");
    for (size_t i = 0; i < n; i++)
        if (strcmp(d->api->EpDevice_EpName(devices[i]), DEMO_EP) == 0) return devices[i];
    fprintf(stderr, "there is no device of %s\n", DEMO_EP);
    exit(1);
}

/* --- the model --- */

static OrtValueInfo *value_info(const struct demo *d, const char *name)
{
    const OrtApi *api = d->api;
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *type = NULL;
    OrtValueInfo *v = NULL;
    demo_must(d, api->CreateTensorTypeAndShapeInfo(&shape), name);
    demo_must(d, api->SetTensorElementType(shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT), name);
    demo_must(d, api->SetDimensions(shape, (const int64_t[]){2, 4}, 2), name);
    demo_must(d, api->GetModelEditorApi()->CreateTensorTypeInfo(shape, &type), name);
    demo_must(d, api->GetModelEditorApi()->CreateValueInfo(name, type, &v), name);
    api->ReleaseTypeInfo(type);
    api->ReleaseTensorTypeAndShapeInfo(shape);
    return v;
}

static void add_weights(const struct demo *d, OrtGraph *g, const char *name, const int64_t *dims,
                        size_t rank)
{
    OrtAllocator *a = NULL;
    OrtValue *v = NULL;
    void *p = NULL;
    size_t n = 1;
    for (size_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    demo_must(d, d->api->GetAllocatorWithDefaultOptions(&a), name);
    demo_must(
        d, d->api->CreateTensorAsOrtValue(a, dims, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &v),
        name);
    demo_must(d, d->api->GetTensorMutableData(v, &p), name);
    for (size_t i = 0; i < n; i++)
        ((float *)p)[i] = (float)((i * 7 + 3) % 11) / 11.0f - 0.4f;
    demo_must(d, d->api->GetModelEditorApi()->AddInitializerToGraph(g, name, v, false), name);
}

OrtModel *demo_model(const struct demo *d)
{
    static const struct {
        const char *op, *in[2], *out;
    } nodes[DEMO_NODES] = {
        {"MatMul", {"x", "W"}, "a"}, {"Add", {"a", "b"}, "c"}, {"Relu", {"c", NULL}, "r"},
        {"Sin", {"r", NULL}, "s"},   {"Mul", {"s", "k"}, "m"}, {"Sigmoid", {"m", NULL}, "y"},
    };
    const OrtModelEditorApi *editor = d->api->GetModelEditorApi();
    OrtGraph *g = NULL;
    OrtModel *m = NULL;
    OrtValueInfo *x = value_info(d, "x"), *y = value_info(d, "y");
    demo_must(d, editor->CreateGraph(&g), "graph");
    demo_must(d, editor->SetGraphInputs(g, &x, 1), "inputs");
    demo_must(d, editor->SetGraphOutputs(g, &y, 1), "outputs");
    add_weights(d, g, "W", (const int64_t[]){4, 4}, 2);
    add_weights(d, g, "b", (const int64_t[]){4}, 1);
    add_weights(d, g, "k", (const int64_t[]){1}, 1);
    for (size_t i = 0; i < DEMO_NODES; i++) {
        char name[32];
        OrtNode *node = NULL;
        snprintf(name, sizeof(name), "net/%s", nodes[i].op);
        demo_must(d,
                  editor->CreateNode(nodes[i].op, "", name, nodes[i].in,
                                     nodes[i].in[1] != NULL ? 2 : 1, &nodes[i].out, 1, NULL, 0,
                                     &node),
                  name);
        demo_must(d, editor->AddNodeToGraph(g, node), name);
    }
    demo_must(d, editor->CreateModel((const char *const[]){""}, (const int[]){17}, 1, &m), "model");
    demo_must(d, editor->AddGraphToModel(m, g), "model");
    return m;
}

/* --- sessions --- */

OrtSessionOptions *demo_options(struct demo *d, const struct demo_option *config,
                                const struct demo_option *option)
{
    OrtSessionOptions *so = NULL;
    const char *keys[16], *values[16];
    const OrtEpDevice *device = demo_device(d);
    size_t n = 0;
    demo_must(d, d->api->CreateSessionOptions(&so), "session options");
    demo_must(d, d->api->SetSessionGraphOptimizationLevel(so, ORT_DISABLE_ALL), "session options");
    for (; config != NULL && config->key != NULL; config++)
        demo_must(d, d->api->AddSessionConfigEntry(so, config->key, config->value), config->key);
    for (; option != NULL && option->key != NULL && n < 16; option++, n++) {
        keys[n] = option->key;
        values[n] = option->value;
    }
    demo_must(
        d,
        d->api->SessionOptionsAppendExecutionProvider_V2(so, d->env, &device, 1, keys, values, n),
        "execution provider");
    return so;
}

OrtStatus *demo_session(struct demo *d, const char *file, bool npu,
                        const struct demo_option *option, OrtSession **out)
{
    static const struct demo_option record[] = {{"session.record_ep_graph_assignment_info", "1"},
                                                {NULL, NULL}};
    OrtSessionOptions *so = NULL;
    OrtStatus *st;
    *out = NULL;
    if (npu) {
        so = demo_options(d, record, option);
    } else {
        demo_must(d, d->api->CreateSessionOptions(&so), "session options");
        demo_must(d, d->api->SetSessionGraphOptimizationLevel(so, ORT_DISABLE_ALL),
                  "session options");
    }
    if (file != NULL) {
        st = d->api->CreateSession(d->env, native(file), so, out);
    } else {
        OrtModel *m = demo_model(d);
        st = d->api->GetModelEditorApi()->CreateSessionFromModel(d->env, m, so, out);
        d->api->ReleaseModel(m);
    }
    d->api->ReleaseSessionOptions(so);
    return st;
}

OrtStatus *demo_compile(struct demo *d, const char *file, bool embed,
                        const struct demo_option *config, const struct demo_option *option)
{
    const OrtCompileApi *c = d->api->GetCompileApi();
    OrtSessionOptions *so = demo_options(d, config, option);
    OrtModelCompilationOptions *o = NULL;
    OrtModel *m = demo_model(d);
    demo_must(d, c->CreateModelCompilationOptionsFromSessionOptions(d->env, so, &o), "compile");
    demo_must(d, c->ModelCompilationOptions_SetInputModel(o, m), "compile");
    demo_must(d, c->ModelCompilationOptions_SetOutputModelPath(o, native(file)), "compile");
    demo_must(d, c->ModelCompilationOptions_SetEpContextEmbedMode(o, embed), "compile");
    OrtStatus *st = c->CompileModel(d->env, o);
    c->ReleaseModelCompilationOptions(o);
    d->api->ReleaseModel(m);
    d->api->ReleaseSessionOptions(so);
    return st;
}

OrtStatus *demo_run(struct demo *d, OrtSession *s, float y[8])
{
    float x[8] = {0.5f, -1.0f, 2.0f, 0.25f, 3.0f, -0.125f, 1.5f, 1.0f};
    OrtMemoryInfo *cpu = NULL;
    OrtValue *in = NULL, *out = NULL;
    void *p = NULL;
    demo_must(d, d->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu), "run");
    demo_must(d,
              d->api->CreateTensorWithDataAsOrtValue(cpu, x, sizeof(x), (const int64_t[]){2, 4}, 2,
                                                     ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in),
              "run");
    OrtStatus *st = d->api->Run(s, NULL, (const char *const[]){"x"}, (const OrtValue *const *)&in,
                                1, (const char *const[]){"y"}, 1, &out);
    if (st == NULL) {
        demo_must(d, d->api->GetTensorMutableData(out, &p), "run");
        memcpy(y, p, 8 * sizeof(float));
        d->api->ReleaseValue(out);
    }
    d->api->ReleaseValue(in);
    d->api->ReleaseMemoryInfo(cpu);
    return st;
}

size_t demo_nodes_on(struct demo *d, OrtSession *s, const char *ep)
{
    const OrtEpAssignedSubgraph *const *parts;
    size_t n, total = 0;
    demo_must(d, d->api->Session_GetEpGraphAssignmentInfo(s, &parts, &n), "placement");
    for (size_t i = 0; i < n; i++) {
        const OrtEpAssignedNode *const *nodes;
        const char *name;
        size_t count;
        demo_must(d, d->api->EpAssignedSubgraph_GetEpName(parts[i], &name), "placement");
        demo_must(d, d->api->EpAssignedSubgraph_GetNodes(parts[i], &nodes, &count), "placement");
        total += strcmp(name, ep) == 0 ? count : 0;
    }
    return total;
}

/* --- files --- */

const char *demo_path(const struct demo *d, const char *name)
{
    static char buffer[4][1024];
    static size_t next;
    char *out = buffer[next++ % 4];
    snprintf(out, sizeof(buffer[0]), "%s/%s", d->folder, name);
    return out;
}

char *demo_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    *n = 0;
    if (f == NULL) return NULL;
    for (size_t got = 1; got > 0; *n += got) {
        char *more = realloc(p, *n + 4097);
        if (more == NULL) exit(1);
        p = more;
        got = fread(p + *n, 1, 4096, f);
    }
    p[*n] = '\0';
    fclose(f);
    return p;
}

bool demo_write(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL) return false;
    bool ok = fwrite(bytes, 1, n, f) == n;
    return fclose(f) == 0 && ok;
}
