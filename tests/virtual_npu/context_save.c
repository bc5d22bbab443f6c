/* context_save.c - programs become EPContext nodes, with the blob inside or in a file beside the
 * model.
 *
 * By default the partitions of a model share one blob: the first node has it, the others refer to
 * it. Models that share a context (ep.share_ep_contexts) put their programs into one file, which
 * grows with every model and is whole at each step; ep.stop_share_ep_contexts marks the last of
 * them. */
#include "blob.h"
#include "context.h"
#include "partition.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the file --- */

/* <folder>/<stem>_vnpu[_N].bin beside the compiled model. */
static OrtStatus *sidecar_path(const struct vnpu_ep *ep, const OrtGraph *graph,
                               char out[VNPU_PATH_MAX])
{
    char path[VNPU_PATH_MAX], number[24] = "";
    VNPU_TRY(vnpu_model_path(ep, graph, true, path));
    if (*path == '\0')
        return vnpu_fail(ep->api, "a context file needs a place: set ep.context_file_path or "
                                  "embed the context");
    size_t stem = strlen(path);
    const char *dot = strrchr(path + vnpu_folder_length(path), '.');
    if (dot != NULL) stem = (size_t)(dot - path);
    if (ep->n_sidecars > 0) snprintf(number, sizeof(number), "_%zu", ep->n_sidecars);
    int n = snprintf(out, VNPU_PATH_MAX, "%.*s_vnpu%s.bin", (int)stem, path, number);
    if (n < 0 || n >= VNPU_PATH_MAX)
        return vnpu_fail(ep->api, "the path of the context file is longer than %d bytes",
                         VNPU_PATH_MAX);
    return NULL;
}

/* --- the node --- */

struct attributes {
    const OrtApi *api;
    OrtOpAttr *v[10];
    size_t n;
};

static OrtStatus *add_int(struct attributes *a, const char *name, int64_t v)
{
    return a->api->CreateOpAttr(name, &v, 1, ORT_OP_ATTR_INT, &a->v[a->n++]);
}

static OrtStatus *add_bytes(struct attributes *a, const char *name, const void *p, size_t n)
{
    if (n > INT_MAX)
        return vnpu_fail(a->api, "a context of %zu bytes cannot be embedded; use embed_mode 0", n);
    return a->api->CreateOpAttr(name, p, (int)n, ORT_OP_ATTR_STRING, &a->v[a->n++]);
}

static OrtStatus *add_text(struct attributes *a, const char *name, const char *s)
{
    return add_bytes(a, name, s, strlen(s));
}

static OrtStatus *value_names(const OrtApi *api, const OrtValueInfo *const *v, size_t n,
                              const char **out)
{
    for (size_t i = 0; i < n; i++)
        VNPU_TRY(api->GetValueInfoName(v[i], &out[i]));
    return NULL;
}

/* ORT finds the node by its name, which must be that of the fused node. */
static OrtStatus *create_node(struct vnpu_ep *ep, const OrtNode *fused, struct attributes *a,
                              OrtNode **out)
{
    const OrtApi *api = ep->api;
    const OrtValueInfo **in = NULL, **result = NULL;
    size_t n_in = 0, n_out = 0;
    void *in_name = NULL, *out_name = NULL;
    const char *name;
    OrtStatus *st = NULL;
    VNPU_GOTO(api->Node_GetName(fused, &name));
    VNPU_GOTO(vnpu_node_inputs(api, fused, &in, &n_in));
    VNPU_GOTO(vnpu_node_outputs(api, fused, &result, &n_out));
    VNPU_GOTO(vnpu_array(api, n_in, sizeof(char *), &in_name));
    VNPU_GOTO(vnpu_array(api, n_out, sizeof(char *), &out_name));
    VNPU_GOTO(value_names(api, in, n_in, in_name));
    VNPU_GOTO(value_names(api, result, n_out, out_name));
    VNPU_GOTO(ep->factory->editor->CreateNode("EPContext", "com.microsoft", name, in_name, n_in,
                                              out_name, n_out, a->v, a->n, out));
done:
    free(in);
    free(result);
    free(in_name);
    free(out_name);
    return st;
}

/* main: carries `blob` when that is not NULL, else names `file`. */
static OrtStatus *save_node(struct vnpu_ep *ep, const OrtNode *fused, const char *partition,
                            bool main, const struct vnpu_buf *blob, const char *file, OrtNode **out)
{
    struct attributes a = {.api = ep->api};
    OrtStatus *st = NULL;
    VNPU_GOTO(add_int(&a, "main_context", main));
    VNPU_GOTO(add_int(&a, "embed_mode", blob != NULL));
    if (main && blob != NULL)
        VNPU_GOTO(add_bytes(&a, "ep_cache_context", blob->ptr, blob->len));
    else if (main)
        VNPU_GOTO(add_text(&a, "ep_cache_context", file));
    VNPU_GOTO(add_text(&a, "source", VNPU_NAME));
    VNPU_GOTO(add_text(&a, "partition_name", partition));
    VNPU_GOTO(add_text(&a, "ep_sdk_version", VNPU_VERSION));
    VNPU_GOTO(add_text(&a, "hardware_architecture", VNPU_ARCHITECTURE));
    VNPU_GOTO(create_node(ep, fused, &a, out));
done:
    for (size_t i = 0; i < a.n; i++)
        if (a.v[i] != NULL) ep->api->ReleaseOpAttr(a.v[i]);
    return st;
}

/* The nodes of programs that share a blob: n of them. */
static OrtStatus *save_nodes(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **fused,
                             const struct vnpu_program *program, size_t n, OrtNode **out)
{
    bool embed = ep->options.context_embed;
    char path[VNPU_PATH_MAX] = "";
    struct vnpu_buf blob = {0};
    OrtStatus *st = NULL;
    VNPU_GOTO(vnpu_blob_header(ep->api, n, &blob));
    for (size_t i = 0; i < n; i++)
        VNPU_GOTO(vnpu_blob_entry(ep->api, &program[i], &blob));
    if (!embed) {
        VNPU_GOTO(sidecar_path(ep, graph, path));
        VNPU_GOTO(vnpu_write_file(ep->api, path, &blob));
        ep->n_sidecars++;
    }
    for (size_t i = 0; i < n; i++)
        VNPU_GOTO(save_node(ep, fused[i], program[i].name, i == 0, embed ? &blob : NULL,
                            path + vnpu_folder_length(path), &out[i]));
done:
    vnpu_buf_release(&blob);
    return st;
}

/* --- one file for several models --- */

void vnpu_shared_release(struct vnpu_shared *s)
{
    vnpu_buf_release(&s->entries);
    free(s->path);
    *s = (struct vnpu_shared){0};
}

/* Where the shared file is: beside the first model. The others refer to it by its bare name. */
static OrtStatus *shared_path(struct vnpu_ep *ep, struct vnpu_shared *s, const OrtGraph *graph)
{
    char path[VNPU_PATH_MAX];
    VNPU_TRY(sidecar_path(ep, graph, path));
    if (s->path == NULL) return vnpu_copy_string(ep->api, path, &s->path);
    size_t n = vnpu_folder_length(path);
    if (n == vnpu_folder_length(s->path) && memcmp(path, s->path, n) == 0) return NULL;
    return vnpu_fail(ep->api, "models that share a context belong into one folder: %s is elsewhere",
                     s->path);
}

static OrtStatus *write_shared(const OrtApi *api, const struct vnpu_shared *s)
{
    struct vnpu_buf blob = {0};
    OrtStatus *st = vnpu_blob_header(api, s->n, &blob);
    vnpu_buf_add(&blob, s->entries.ptr, s->entries.len);
    if (st == NULL && blob.failed) st = vnpu_fail(api, "out of memory while writing a context");
    if (st == NULL) st = vnpu_write_file(api, s->path, &blob);
    vnpu_buf_release(&blob);
    return st;
}

static OrtStatus *save_shared(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **fused,
                              const struct vnpu_program *program, size_t n, OrtNode **out)
{
    struct vnpu_shared *s = &ep->factory->shared;
    OrtStatus *st = NULL;
    if (ep->options.context_embed)
        return vnpu_fail(ep->api, "models that share a context need a context file: embed_mode 0");
    VNPU_GOTO(shared_path(ep, s, graph));
    for (size_t i = 0; i < n; i++)
        VNPU_GOTO(vnpu_blob_entry(ep->api, &program[i], &s->entries));
    s->n += n;
    VNPU_GOTO(write_shared(ep->api, s));
    for (size_t i = 0; i < n; i++)
        VNPU_GOTO(save_node(ep, fused[i], program[i].name, i == 0, NULL,
                            s->path + vnpu_folder_length(s->path), &out[i]));
done:
    if (st != NULL || ep->options.context_share_stop) vnpu_shared_release(s);
    return st;
}

OrtStatus *vnpu_context_save(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **fused,
                             const struct vnpu_program *program, size_t n, OrtNode **out)
{
    size_t step = ep->options.shared_context ? n : 1;
    OrtStatus *st = NULL;
    if (ep->options.context_share) {
        st = save_shared(ep, graph, fused, program, n, out);
    } else {
        for (size_t i = 0; i < n && st == NULL; i += step)
            st = save_nodes(ep, graph, fused + i, program + i, step, out + i);
    }
    /* The context file is there, the model that refers to it is not. */
    if (st == NULL) st = vnpu_fault_strike(ep->api, &ep->options.fault, VNPU_SAVE);
    for (size_t i = 0; i < n && st != NULL; i++)
        if (out[i] != NULL) {
            ep->api->ReleaseNode(out[i]);
            out[i] = NULL;
        }
    return st;
}
