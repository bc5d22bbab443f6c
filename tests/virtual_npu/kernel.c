/* kernel.c - runs a compiled sub-graph in an inner session on ORT's CPU EP.
 *
 * The inner session takes ORT's graph as it is, without optimisations: the nodes keep their names,
 * and the results are those of the CPU EP with as many threads, bit by bit. Inputs are handed
 * through; outputs are copied, since their shapes may be known only after the run. */
#include "kernel.h"
#include "partition.h"
#include "profile.h"
#include "sys.h"

#include <stdlib.h>
#include <string.h>

/* --- running --- */

static OrtStatus *copy_output(const OrtApi *api, OrtKernelContext *kc, size_t at,
                              const OrtValue *from)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtValue *to = NULL;
    size_t rank, n = 0, room = 0;
    void *dims = NULL, *dst = NULL;
    const void *src = NULL;
    OrtStatus *st = NULL;
    VNPU_GOTO(api->GetTensorTypeAndShape(from, &info));
    VNPU_GOTO(api->GetDimensionsCount(info, &rank));
    VNPU_GOTO(vnpu_array(api, rank, sizeof(int64_t), &dims));
    VNPU_GOTO(api->GetDimensions(info, dims, rank));
    VNPU_GOTO(api->KernelContext_GetOutput(kc, at, dims, rank, &to));
    if (to == NULL) goto done; /* nobody wants it */
    VNPU_GOTO(api->GetTensorSizeInBytes(from, &n));
    VNPU_GOTO(api->GetTensorSizeInBytes(to, &room));
    if (n != room)
        VNPU_GOTO(vnpu_fail(api, "output %zu has %zu bytes where ORT expects %zu", at, n, room));
    if (n == 0) goto done;
    VNPU_GOTO(api->GetTensorData(from, &src));
    VNPU_GOTO(api->GetTensorMutableData(to, &dst));
    memcpy(dst, src, n);
done:
    free(dims);
    if (info != NULL) api->ReleaseTensorTypeAndShapeInfo(info);
    return st;
}

static OrtStatus *run_session(struct vnpu_kernel *k, OrtKernelContext *kc, const OrtRunOptions *ro,
                              const OrtValue **in, OrtValue **out, struct vnpu_times *t)
{
    const OrtApi *api = k->ep->api;
    for (size_t i = 0; i < k->n_in; i++) {
        VNPU_TRY(api->KernelContext_GetInput(kc, k->in_at[i], &in[i]));
        if (in[i] == NULL) return vnpu_fail(api, "%s: input %s is missing", k->name, k->in_name[i]);
    }
    uint64_t start = vnpu_now_ns();
    VNPU_TRY(api->Run(k->session, ro, (const char *const *)k->in_name, in, k->n_in,
                      (const char *const *)k->out_name, k->n_out, out));
    t->run_ns = vnpu_now_ns() - start;
    for (size_t i = 0; i < k->n_out; i++)
        if (k->out_at[i] != VNPU_NOWHERE) VNPU_TRY(copy_output(api, kc, k->out_at[i], out[i]));
    t->output_ns = vnpu_now_ns() - start - t->run_ns;
    return NULL;
}

/* What happens once per run of the whole model, at the first kernel that it reaches. */
static OrtStatus *begin_run(struct vnpu_ep *ep)
{
    if (ep->options.latency_us == 0 && ep->options.fault.what == 0)
        return NULL; /* concurrent runs come here: touch nothing */
    if (ep->run_begun) return NULL;
    ep->run_begun = true;
    VNPU_TRY(vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_RUN));
    if (ep->options.latency_us > 0) vnpu_sleep_us(ep->options.latency_us);
    return NULL;
}

static OrtStatus *ORT_API_CALL kernel_compute(OrtNodeComputeInfo *base, void *state,
                                              OrtKernelContext *kc)
{
    struct vnpu_kernel *k = (struct vnpu_kernel *)base;
    const OrtApi *api = k->ep->api;
    OrtRunOptions *ro = NULL;
    void *in = NULL, *out = NULL;
    struct vnpu_times t = {0};
    uint64_t start = vnpu_now_ns();
    OrtStatus *st = NULL;
    (void)state;
    VNPU_GOTO(begin_run(k->ep));
    VNPU_GOTO(vnpu_array(api, k->n_in, sizeof(OrtValue *), &in));
    VNPU_GOTO(vnpu_array(api, k->n_out, sizeof(OrtValue *), &out));
    VNPU_GOTO(vnpu_profile_start(k->ep->profile, &ro));
    VNPU_GOTO(run_session(k, kc, ro, in, out, &t));
done:
    t.total_ns = vnpu_now_ns() - start;
    if (in != NULL && out != NULL) {
        OrtStatus *written = vnpu_profile_finish(k->ep->profile, ro, st != NULL, &t);
        if (st == NULL)
            st = written;
        else if (written != NULL)
            api->ReleaseStatus(written);
    }
    for (size_t i = 0; out != NULL && i < k->n_out; i++)
        if (((OrtValue **)out)[i] != NULL) api->ReleaseValue(((OrtValue **)out)[i]);
    free(in);
    free(out);
    return st;
}

static OrtStatus *ORT_API_CALL kernel_create_state(OrtNodeComputeInfo *base,
                                                   OrtNodeComputeContext *c, void **state)
{
    (void)c;
    *state = base; /* the kernel itself is all that a run needs */
    return NULL;
}

static void ORT_API_CALL kernel_release_state(OrtNodeComputeInfo *base, void *state)
{
    (void)base;
    (void)state;
}

/* --- making --- */

static OrtStatus *create_session(struct vnpu_ep *ep, const void *bytes, size_t n, OrtSession **out)
{
    const OrtApi *api = ep->api;
    OrtEnv *env = NULL;
    OrtSessionOptions *so = NULL;
    OrtStatus *st = NULL;
    /* The process has one environment, the host's: this only finds it. A session does not hold on
     * to it, and neither may we, or our library would be asked to unload itself. */
    VNPU_GOTO(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "vnpu", &env));
    VNPU_GOTO(api->CreateSessionOptions(&so));
    VNPU_GOTO(api->SetSessionGraphOptimizationLevel(so, ORT_DISABLE_ALL));
    VNPU_GOTO(api->SetIntraOpNumThreads(so, (int)ep->options.threads));
    VNPU_GOTO(api->CreateSessionFromArray(env, bytes, n, so, out));
done:
    if (so != NULL) api->ReleaseSessionOptions(so);
    if (env != NULL) api->ReleaseEnv(env);
    return st;
}

static OrtStatus *read_names(struct vnpu_kernel *k)
{
    const OrtApi *api = k->ep->api;
    OrtAllocator *a;
    void *p;
    VNPU_TRY(api->GetAllocatorWithDefaultOptions(&a));
    VNPU_TRY(vnpu_array(api, k->n_in, sizeof(char *), &p));
    k->in_name = p;
    VNPU_TRY(vnpu_array(api, k->n_out, sizeof(char *), &p));
    k->out_name = p;
    for (size_t i = 0; i < k->n_in; i++)
        VNPU_TRY(api->SessionGetInputName(k->session, i, a, &k->in_name[i]));
    for (size_t i = 0; i < k->n_out; i++)
        VNPU_TRY(api->SessionGetOutputName(k->session, i, a, &k->out_name[i]));
    return NULL;
}

static OrtStatus *place(const struct vnpu_kernel *k, const OrtValueInfo *const *inner,
                        size_t n_inner, const OrtValueInfo *const *outer, size_t n_outer,
                        size_t *at)
{
    const OrtApi *api = k->ep->api;
    for (size_t i = 0; i < n_inner; i++) {
        const char *name = NULL, *other;
        at[i] = VNPU_NOWHERE;
        if (inner[i] != NULL) VNPU_TRY(api->GetValueInfoName(inner[i], &name));
        for (size_t j = 0; name != NULL && j < n_outer && at[i] == VNPU_NOWHERE; j++) {
            VNPU_TRY(api->GetValueInfoName(outer[j], &other));
            if (strcmp(name, other) == 0) at[i] = j;
        }
    }
    return NULL;
}

/* ORT may have merged two inputs of an EPContext node, or dropped an output: positions are found by
 * name. */
static OrtStatus *place_values(struct vnpu_kernel *k, const OrtNode *fused, const OrtNode *inner)
{
    const OrtApi *api = k->ep->api;
    const OrtValueInfo **a[4] = {NULL, NULL, NULL, NULL};
    size_t n[4];
    OrtStatus *st = NULL;
    void *p;
    VNPU_GOTO(vnpu_node_inputs(api, inner, &a[0], &n[0]));
    VNPU_GOTO(vnpu_node_inputs(api, fused, &a[1], &n[1]));
    VNPU_GOTO(vnpu_node_outputs(api, inner, &a[2], &n[2]));
    VNPU_GOTO(vnpu_node_outputs(api, fused, &a[3], &n[3]));
    if (n[0] != k->n_in || n[2] != k->n_out)
        VNPU_GOTO(vnpu_fail(
            api, "%s takes %zu inputs and gives %zu outputs; its program wants %zu and %zu",
            k->name, n[0], n[2], k->n_in, k->n_out));
    VNPU_GOTO(vnpu_array(api, n[0], sizeof(size_t), &p));
    k->in_at = p;
    VNPU_GOTO(vnpu_array(api, n[2], sizeof(size_t), &p));
    k->out_at = p;
    VNPU_GOTO(place(k, a[0], n[0], a[1], n[1], k->in_at));
    VNPU_GOTO(place(k, a[2], n[2], a[3], n[3], k->out_at));
    for (size_t i = 0; i < k->n_in; i++)
        if (k->in_at[i] == VNPU_NOWHERE)
            VNPU_GOTO(vnpu_fail(api, "%s: input %s is not connected", k->name, k->in_name[i]));
done:
    for (size_t i = 0; i < 4; i++)
        free(a[i]);
    return st;
}

OrtStatus *vnpu_kernel_create(struct vnpu_ep *ep, const char *name, const void *bytes, size_t n,
                              const OrtNode *fused, const OrtNode *inner, struct vnpu_kernel **out)
{
    const OrtApi *api = ep->api;
    void *p;
    OrtStatus *st = NULL;
    *out = NULL;
    VNPU_TRY(vnpu_array(api, 1, sizeof(struct vnpu_kernel), &p));
    struct vnpu_kernel *k = p;
    k->ep = ep;
    k->base = (OrtNodeComputeInfo){
        .ort_version_supported = ORT_API_VERSION,
        .CreateState = kernel_create_state,
        .Compute = kernel_compute,
        .ReleaseState = kernel_release_state,
    };
    VNPU_GOTO(vnpu_copy_string(api, name, &k->name));
    VNPU_GOTO(create_session(ep, bytes, n, &k->session));
    VNPU_GOTO(api->SessionGetInputCount(k->session, &k->n_in));
    VNPU_GOTO(api->SessionGetOutputCount(k->session, &k->n_out));
    VNPU_GOTO(read_names(k));
    VNPU_GOTO(place_values(k, fused, inner));
    *out = k;
    return NULL;
done:
    vnpu_kernel_free(k);
    return st;
}

static void free_names(const OrtApi *api, char **names, size_t n)
{
    OrtAllocator *a = NULL;
    OrtStatus *st = api->GetAllocatorWithDefaultOptions(&a);
    if (st != NULL) api->ReleaseStatus(st);
    for (size_t i = 0; names != NULL && a != NULL && i < n; i++)
        if (names[i] != NULL) a->Free(a, names[i]);
    free(names);
}

void vnpu_kernel_free(struct vnpu_kernel *k)
{
    if (k == NULL) return;
    free_names(k->ep->api, k->in_name, k->n_in);
    free_names(k->ep->api, k->out_name, k->n_out);
    if (k->session != NULL) k->ep->api->ReleaseSession(k->session);
    free(k->in_at);
    free(k->out_at);
    free(k->name);
    free(k);
}
