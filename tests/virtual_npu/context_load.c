/* context_load.c - EPContext nodes give their programs back.
 *
 * A main node holds a blob or names the file beside the model that does; a secondary node's program
 * is in the blob of a main node, which may come later in the graph. Hence all blobs are read first. */
#include "context.h"
#include "blob.h"
#include "partition.h"
#include "sys.h"

#include <stdlib.h>
#include <string.h>

struct vnpu_context { /* one blob that was read */
    struct vnpu_context *next;
    unsigned char *bytes;
    size_t n;
};

/* A context file lies in the model's folder or below; any other path is never opened. */
static bool path_escapes(const char *p)
{
    if (vnpu_is_separator(*p) || strchr(p, ':') != NULL) return true;
    for (const char *part = p; *part != '\0';) {
        size_t n = 0;
        while (part[n] != '\0' && !vnpu_is_separator(part[n]))
            n++;
        if (n == 2 && part[0] == '.' && part[1] == '.') return true;
        part += n + (part[n] != '\0');
    }
    return *p == '\0';
}

static OrtStatus *load_file(const struct vnpu_ep *ep, const OrtGraph *graph, const char *file,
                            struct vnpu_buf *blob)
{
    char path[VNPU_PATH_MAX];
    if (path_escapes(file))
        return vnpu_fail(ep->api, "context file '%.200s' is not inside the model's folder", file);
    VNPU_TRY(vnpu_model_path(ep, graph, false, path));
    size_t folder = vnpu_folder_length(path), n = strlen(file);
    if (folder + n >= sizeof(path))
        return vnpu_fail(ep->api, "the path of context file '%.200s' is too long", file);
    memcpy(path + folder, file, n + 1);
    return vnpu_read_file(ep->api, path, blob);
}

static OrtStatus *load_main(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode *node)
{
    const OrtApi *api = ep->api;
    struct vnpu_buf blob = {0};
    int64_t embed;
    char *cache = NULL;
    size_t n;
    void *room = NULL;
    OrtStatus *st = NULL;
    VNPU_GOTO(vnpu_int_attribute(api, node, "embed_mode", 1, &embed));
    VNPU_GOTO(vnpu_string_attribute(api, node, "ep_cache_context", &cache, &n));
    if (cache == NULL)
        VNPU_GOTO(vnpu_fail(api, "an EPContext node with main_context 1 has no ep_cache_context"));
    if (embed != 0)
        blob = (struct vnpu_buf){.ptr = (unsigned char *)cache, .len = n};
    else
        VNPU_GOTO(load_file(ep, graph, cache, &blob));
    VNPU_GOTO(vnpu_array(api, 1, sizeof(struct vnpu_context), &room));
    struct vnpu_context *c = room;
    *c = (struct vnpu_context){.next = ep->contexts, .bytes = blob.ptr, .n = blob.len};
    ep->contexts = c;
    if (embed != 0) cache = NULL; /* its bytes are the context's now */
    blob.ptr = NULL;
done:
    if (blob.ptr != (unsigned char *)cache) vnpu_buf_release(&blob);
    free(cache);
    return st;
}

static OrtStatus *find(struct vnpu_ep *ep, const OrtNode *node, const unsigned char **bytes,
                       size_t *size, char **name)
{
    size_t n;
    const char *node_name;
    VNPU_TRY(vnpu_string_attribute(ep->api, node, "partition_name", name, &n));
    if (*name == NULL) {
        VNPU_TRY(ep->api->Node_GetName(node, &node_name));
        VNPU_TRY(vnpu_copy_string(ep->api, node_name, name));
    }
    for (const struct vnpu_context *c = ep->contexts; c != NULL; c = c->next) {
        VNPU_TRY(vnpu_blob_find(ep->api, c->bytes, c->n, *name, bytes, size));
        if (*bytes != NULL) return NULL;
    }
    return vnpu_fail(ep->api,
                     "no context holds the program %s; is the node with main_context 1 missing?",
                     *name);
}

static OrtStatus *context_node(const struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **out)
{
    const OrtNode **nodes;
    size_t n;
    bool yes = false;
    OrtStatus *st = vnpu_graph_nodes(ep->api, graph, &nodes, &n);
    if (st == NULL && n == 1) st = vnpu_is_context_node(ep, nodes[0], &yes);
    *out = yes ? nodes[0] : NULL;
    free(nodes);
    return st;
}

OrtStatus *vnpu_context_nodes(struct vnpu_ep *ep, const OrtGraph **graphs, size_t n,
                              const OrtNode **nodes)
{
    for (size_t i = 0; i < n; i++)
        VNPU_TRY(context_node(ep, graphs[i], &nodes[i]));
    return NULL;
}

OrtStatus *vnpu_context_load(struct vnpu_ep *ep, const OrtGraph **graphs,
                             const OrtNode *const *nodes, size_t n, const unsigned char **bytes,
                             size_t *size, char **name)
{
    for (size_t i = 0; i < n; i++) {
        int64_t main = 0;
        if (nodes[i] != NULL)
            VNPU_TRY(vnpu_int_attribute(ep->api, nodes[i], "main_context", 1, &main));
        if (main == 0) continue;
        VNPU_TRY(load_main(ep, graphs[i], nodes[i]));
        VNPU_TRY(
            find(ep, nodes[i], &bytes[i], &size[i], &name[i])); /* newest first: its own blob */
    }
    for (size_t i = 0; i < n; i++)
        if (nodes[i] != NULL && bytes[i] == NULL)
            VNPU_TRY(find(ep, nodes[i], &bytes[i], &size[i], &name[i]));
    return NULL;
}

void vnpu_contexts_free(struct vnpu_context *c)
{
    while (c != NULL) {
        struct vnpu_context *next = c->next;
        free(c->bytes);
        free(c);
        c = next;
    }
}
