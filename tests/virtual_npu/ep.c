/* ep.c - one EP per session: the table of functions that ORT calls, and what each passes on to. */
#include "vnpu.h"
#include "context.h"
#include "kernel.h"
#include "partition.h"
#include "profile.h"

#include <stdlib.h>

static struct vnpu_ep *ep_of(OrtEp *base)
{
    return (struct vnpu_ep *)base; /* `base` is its first member */
}

static const char *ORT_API_CALL ep_name(const OrtEp *base)
{
    (void)base;
    return VNPU_NAME;
}

static OrtStatus *ORT_API_CALL ep_capability(OrtEp *base, const OrtGraph *graph,
                                             OrtEpGraphSupportInfo *info)
{
    return vnpu_partition(ep_of(base), graph, info);
}

static OrtStatus *ORT_API_CALL ep_compile(OrtEp *base, const OrtGraph **graphs,
                                          const OrtNode **fused, size_t n,
                                          OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    return vnpu_compile(ep_of(base), graphs, fused, n, infos, context_nodes);
}

static void ORT_API_CALL ep_release_infos(OrtEp *base, OrtNodeComputeInfo **infos, size_t n)
{
    (void)base;
    for (size_t i = 0; i < n; i++)
        vnpu_kernel_free((struct vnpu_kernel *)infos[i]);
}

static const char *ORT_API_CALL ep_compatibility(OrtEp *base, const OrtGraph *graph)
{
    (void)base;
    (void)graph;
    return VNPU_ARCHITECTURE ";" VNPU_VERSION;
}

/* A session that writes a compiled model never gets ready to run in the sense of the load fault. */
static OrtStatus *ORT_API_CALL ep_ready(OrtEp *base)
{
    struct vnpu_ep *ep = ep_of(base);
    if (ep->options.context_enable || ep->loaded) return NULL;
    ep->loaded = true;
    return vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_LOAD);
}

static OrtStatus *ORT_API_CALL ep_run_start(OrtEp *base, const OrtRunOptions *ro)
{
    struct vnpu_ep *ep = ep_of(base);
    (void)ro;
    if (ep->options.latency_us > 0 || ep->options.fault.what != 0) ep->run_begun = false;
    return NULL;
}

/* Profiles, delays and faults count runs, one after another. */
static OrtStatus *ORT_API_CALL ep_concurrent(OrtEp *base, bool *yes)
{
    const struct vnpu_options *o = &ep_of(base)->options;
    *yes = o->profiling == VNPU_PROFILE_OFF && o->latency_us == 0 && o->fault.what == 0;
    return NULL;
}

OrtStatus *vnpu_ep_create(struct vnpu_factory *f, const OrtSessionOptions *so,
                          const OrtLogger *logger, struct vnpu_ep **out)
{
    void *p;
    VNPU_TRY(vnpu_array(f->api, 1, sizeof(struct vnpu_ep), &p));
    struct vnpu_ep *ep = p;
    OrtStatus *st = vnpu_options_read(f->api, so, &ep->options);
    if (st != NULL) {
        free(ep);
        return st;
    }
    ep->factory = f;
    ep->api = f->api;
    ep->logger = logger;
    ep->base = (OrtEp){
        .ort_version_supported = ORT_API_VERSION,
        .GetName = ep_name,
        .GetCapability = ep_capability,
        .Compile = ep_compile,
        .ReleaseNodeComputeInfos = ep_release_infos,
        .OnRunStart = ep_run_start,
        .GetCompiledModelCompatibilityInfo = ep_compatibility,
        .IsConcurrentRunSupported = ep_concurrent,
        .OnSessionInitializationEnd = ep_ready,
    };
    *out = ep;
    return NULL;
}

void vnpu_ep_free(struct vnpu_ep *ep)
{
    if (ep == NULL) return;
    OrtStatus *st = vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_TEARDOWN);
    if (st != NULL) { /* releasing cannot fail: all that is left is to say so */
        vnpu_log(ep->api, ep->logger, ORT_LOGGING_LEVEL_ERROR, "%s", ep->api->GetErrorMessage(st));
        ep->api->ReleaseStatus(st);
    }
    vnpu_profile_close(ep->profile);
    vnpu_contexts_free(ep->contexts);
    vnpu_options_release(&ep->options);
    free(ep);
}
