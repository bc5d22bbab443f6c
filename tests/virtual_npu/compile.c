/* compile.c - OrtEp::Compile: sub-graphs become programs, EPContext nodes give their programs back,
 * and each program becomes a kernel. */
#include "context.h"
#include "kernel.h"
#include "model.h"
#include "partition.h"
#include "profile.h"
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job { /* arrays of n */
    struct vnpu_ep *ep;
    const OrtGraph **graphs;
    const OrtNode **fused;
    size_t n;
    const OrtNode **context;      /* the EPContext node of a graph, or NULL */
    struct vnpu_program *program; /* made here */
    const unsigned char **bytes;  /* loaded */
    size_t *size;
    char **name;
    struct vnpu_kernel **kernel;
};

static OrtStatus *prepare(struct job *j)
{
    const OrtApi *api = j->ep->api;
    void *p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->context), &p));
    j->context = p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->program), &p));
    j->program = p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->bytes), &p));
    j->bytes = p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->size), &p));
    j->size = p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->name), &p));
    j->name = p;
    VNPU_TRY(vnpu_array(api, j->n, sizeof(*j->kernel), &p));
    j->kernel = p;
    return vnpu_context_nodes(j->ep, j->graphs, j->n, j->context);
}

/* Where the faults `compile` and `load` strike, before anything is written. */
static OrtStatus *strike(struct job *j)
{
    struct vnpu_ep *ep = j->ep;
    bool compiles = false, loads = false;
    for (size_t i = 0; i < j->n; i++) {
        loads = loads || j->context[i] != NULL;
        compiles = compiles || j->context[i] == NULL;
    }
    if (loads && ep->options.context_enable)
        return vnpu_fail(ep->api,
                         "the model is compiled already; compile the model it was made from");
    if (compiles) VNPU_TRY(vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_COMPILE));
    if (!loads || ep->loaded) return NULL;
    ep->loaded = true;
    return vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_LOAD);
}

/* The fused node's name; the prefix keeps apart partitions of models that will be merged. */
static OrtStatus *partition_name(const struct vnpu_ep *ep, const char *fused, char **out)
{
    const char *prefix = ep->options.context_enable ? ep->options.context_prefix : "";
    size_t n = strlen(prefix) + strlen(fused) + 1;
    void *room;
    VNPU_TRY(vnpu_array(ep->api, n, 1, &room));
    *out = room;
    snprintf(*out, n, "%s%s", prefix, fused);
    return NULL;
}

static OrtStatus *make_kernel(struct job *j, size_t i)
{
    struct vnpu_ep *ep = j->ep;
    struct vnpu_program *p = &j->program[i];
    const char *name;
    uint64_t start = vnpu_now_ns();
    if (j->context[i] != NULL) {
        VNPU_TRY(vnpu_kernel_create(ep, j->name[i], j->bytes[i], j->size[i], j->fused[i],
                                    j->context[i], &j->kernel[i]));
    } else {
        VNPU_TRY(ep->api->Node_GetName(j->fused[i], &name));
        VNPU_TRY(partition_name(ep, name, &p->name));
        VNPU_TRY(vnpu_model_write(ep->api, j->graphs[i], j->fused[i], p->name, &p->model));
        VNPU_TRY(vnpu_kernel_create(ep, p->name, p->model.ptr, p->model.len, j->fused[i],
                                    j->fused[i], &j->kernel[i]));
        if (!ep->options.context_enable) vnpu_buf_release(&p->model);
    }
    vnpu_log(ep->api, ep->logger, ORT_LOGGING_LEVEL_INFO, "%s is ready", j->kernel[i]->name);
    return vnpu_profile_ready(ep->profile, j->context[i] != NULL, vnpu_now_ns() - start);
}

static OrtStatus *run_job(struct job *j, OrtNode **context_nodes)
{
    VNPU_TRY(prepare(j));
    VNPU_TRY(strike(j));
    VNPU_TRY(vnpu_profile_open(j->ep));
    VNPU_TRY(vnpu_context_load(j->ep, j->graphs, j->context, j->n, j->bytes, j->size, j->name));
    for (size_t i = 0; i < j->n; i++)
        VNPU_TRY(make_kernel(j, i));
    if (!j->ep->options.context_enable || j->n == 0) return NULL;
    return vnpu_context_save(j->ep, j->graphs[0], j->fused, j->program, j->n, context_nodes);
}

OrtStatus *vnpu_compile(struct vnpu_ep *ep, const OrtGraph **graphs, const OrtNode **fused,
                        size_t n, OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    struct job j = {.ep = ep, .graphs = graphs, .fused = fused, .n = n};
    OrtStatus *st = run_job(&j, context_nodes);
    for (size_t i = 0; i < n; i++) {
        if (j.program != NULL) {
            free(j.program[i].name);
            vnpu_buf_release(&j.program[i].model);
        }
        if (j.name != NULL) free(j.name[i]);
        if (j.kernel != NULL && st != NULL)
            vnpu_kernel_free(j.kernel[i]);
        else if (j.kernel != NULL)
            infos[i] = &j.kernel[i]->base;
    }
    free(j.context);
    free(j.program);
    free(j.bytes);
    free(j.size);
    free(j.name);
    free(j.kernel);
    return st;
}
