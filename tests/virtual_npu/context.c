/* context.c - programs that outlive the session, in the form that ORT calls an EPContext model.
 *
 * A blob holds one or more programs; all numbers are little-endian:
 *   "VNPUCTX1", count:u32, then per program
 *   name length:u32, model length:u64, FNV-1a of the model:u64, name, ONNX model
 * It lies in the node (embed_mode 1) or in <stem>_vnpu.bin beside the model (embed_mode 0). What is
 * read back is not trusted: every length is checked against what is left. */
#include "context.h"
#include "partition.h"
#include "sys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct vnpu_context { /* one blob that was read */
    struct vnpu_context *next;
    unsigned char *bytes;
    size_t n;
};

static const char magic[8] = {'V', 'N', 'P', 'U', 'C', 'T', 'X', '1'};
enum { ENTRY_HEADER = 4 + 8 + 8 };

/* --- the blob --- */

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static void put_number(struct vnpu_buf *b, uint64_t v, size_t bytes)
{
    unsigned char le[8];
    for (size_t i = 0; i < bytes; i++)
        le[i] = (unsigned char)(v >> (8 * i));
    vnpu_buf_add(b, le, bytes);
}

static uint64_t get_number(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static OrtStatus *write_blob(const OrtApi *api, const struct vnpu_program *program, size_t n,
                             struct vnpu_buf *out)
{
    vnpu_buf_add(out, magic, sizeof(magic));
    put_number(out, n, 4);
    for (size_t i = 0; i < n; i++) {
        const struct vnpu_buf *m = &program[i].model;
        put_number(out, strlen(program[i].name), 4);
        put_number(out, m->len, 8);
        put_number(out, fnv1a(m->ptr, m->len), 8);
        vnpu_buf_add(out, program[i].name, strlen(program[i].name));
        vnpu_buf_add(out, m->ptr, m->len);
    }
    return out->failed ? vnpu_fail(api, "out of memory while writing a context") : NULL;
}

/* Finds a program by name; a blob with a single one gives that, since nodes may be renamed.
 * *bytes is NULL when there is none. */
static OrtStatus *find_program(const OrtApi *api, const struct vnpu_context *c, const char *name,
                               const unsigned char **bytes, size_t *size)
{
    const unsigned char *p = c->bytes, *end = c->bytes + c->n;
    *bytes = NULL;
    if (c->n < sizeof(magic) + 4 || memcmp(p, magic, sizeof(magic)) != 0)
        return vnpu_fail(api, "the context of %s is not one of a virtual NPU (%zu bytes)", name,
                         c->n);
    uint64_t count = get_number(p + sizeof(magic), 4);
    p += sizeof(magic) + 4;
    for (uint64_t i = 0; i < count; i++) {
        if ((size_t)(end - p) < ENTRY_HEADER)
            return vnpu_fail(api, "the context of %s ends inside program %llu", name,
                             (unsigned long long)i);
        uint64_t name_len = get_number(p, 4), len = get_number(p + 4, 8),
                 hash = get_number(p + 12, 8);
        p += ENTRY_HEADER;
        if (name_len > (size_t)(end - p) || len > (size_t)(end - p) - name_len)
            return vnpu_fail(api, "the context of %s ends inside program %llu", name,
                             (unsigned long long)i);
        bool same = name_len == strlen(name) && memcmp(p, name, (size_t)name_len) == 0;
        p += name_len;
        if (same || count == 1) {
            if (fnv1a(p, (size_t)len) != hash)
                return vnpu_fail(api, "the context of %s is damaged: its checksum differs", name);
            *bytes = p;
            *size = (size_t)len;
            return NULL;
        }
        p += len;
    }
    return NULL;
}

/* --- where the file is --- */

enum { PATH_MAX_BYTES = 4096 };

static size_t folder_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && !vnpu_is_separator(path[n - 1]))
        n--;
    return n;
}

/* The path of the compiled model, as the session says or as ORT would choose; empty when it has
 * none. */
static OrtStatus *model_path(const struct vnpu_ep *ep, const OrtGraph *graph, bool writing,
                             char out[PATH_MAX_BYTES])
{
    const OrtApi *api = ep->api;
    const ORTCHAR_T *native = NULL;
    out[0] = '\0';
    VNPU_TRY(api->Graph_GetModelPath(graph, &native));
    if (native != NULL && !vnpu_narrow_path(native, out, PATH_MAX_BYTES))
        return vnpu_fail(api, "the model's path is longer than %d bytes", PATH_MAX_BYTES);
    if (*ep->options.context_file != '\0' && (writing || *out == '\0')) {
        if (strlen(ep->options.context_file) >= PATH_MAX_BYTES)
            return vnpu_fail(api, "ep.context_file_path is longer than %d bytes", PATH_MAX_BYTES);
        memcpy(out, ep->options.context_file, strlen(ep->options.context_file) + 1);
    } else if (writing && *out != '\0') {
        size_t stem = strlen(out), folder = folder_length(out);
        const char *dot = strrchr(out + folder, '.');
        stem = dot != NULL ? (size_t)(dot - out) : stem;
        if (stem + sizeof("_ctx.onnx") > PATH_MAX_BYTES)
            return vnpu_fail(api, "the model's path is longer than %d bytes", PATH_MAX_BYTES);
        memcpy(out + stem, "_ctx.onnx", sizeof("_ctx.onnx"));
    }
    return NULL;
}

static OrtStatus *open_failed(const OrtApi *api, const char *what, const char *path)
{
    return vnpu_fail(api, "cannot %s %s: is the folder there and are you allowed to use it?", what,
                     path);
}

/* Half a file never carries the final name. */
static OrtStatus *write_file(const OrtApi *api, const char *path, const struct vnpu_buf *b)
{
    char temporary[PATH_MAX_BYTES + 32];
    snprintf(temporary, sizeof(temporary), "%s.%llu.tmp", path,
             (unsigned long long)vnpu_process_id());
    FILE *f = vnpu_fopen(temporary, "wb");
    if (f == NULL) return open_failed(api, "create", temporary);
    bool ok = fwrite(b->ptr, 1, b->len, f) == b->len;
    ok = fclose(f) == 0 && ok;
    if (ok && vnpu_rename(temporary, path)) return NULL;
    vnpu_remove(temporary);
    return open_failed(api, "write", path);
}

static OrtStatus *read_file(const OrtApi *api, const char *path, struct vnpu_buf *b)
{
    unsigned char chunk[16384];
    FILE *f = vnpu_fopen(path, "rb");
    if (f == NULL)
        return vnpu_fail(api, "context file %s is not there; it belongs beside the model", path);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        vnpu_buf_add(b, chunk, n);
    bool ok = !ferror(f) && !b->failed;
    fclose(f);
    return ok ? NULL : open_failed(api, "read", path);
}

/* --- saving --- */

static OrtStatus *save_sidecar(struct vnpu_ep *ep, const OrtGraph *graph,
                               const struct vnpu_buf *blob, char name[PATH_MAX_BYTES])
{
    char path[PATH_MAX_BYTES], number[24] = "";
    VNPU_TRY(model_path(ep, graph, true, path));
    if (*path == '\0')
        return vnpu_fail(
            ep->api, "a context file needs a place: set ep.context_file_path or embed the context");
    size_t folder = folder_length(path), stem = strlen(path);
    const char *dot = strrchr(path + folder, '.');
    if (dot != NULL) stem = (size_t)(dot - path);
    if (ep->n_sidecars > 0) snprintf(number, sizeof(number), "_%zu", ep->n_sidecars);
    int n = snprintf(name, PATH_MAX_BYTES, "%.*s_vnpu%s.bin", (int)(stem - folder), path + folder,
                     number);
    if (n < 0 || folder + (size_t)n >= PATH_MAX_BYTES)
        return vnpu_fail(ep->api, "the path of the context file is longer than %d bytes",
                         PATH_MAX_BYTES);
    memcpy(path + folder, name, (size_t)n + 1);
    VNPU_TRY(write_file(ep->api, path, blob));
    ep->n_sidecars++;
    return NULL;
}

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

static OrtStatus *create_node(struct vnpu_ep *ep, const OrtNode *fused, const char *partition,
                              struct attributes *a, OrtNode **out)
{
    const OrtApi *api = ep->api;
    const OrtValueInfo **in = NULL, **result = NULL;
    size_t n_in = 0, n_out = 0;
    void *in_name = NULL, *out_name = NULL;
    char name[512];
    OrtStatus *st = NULL;
    snprintf(name, sizeof(name), "%s%s", ep->options.context_prefix, partition);
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

/* blob: NULL for a node whose program is inside another node's blob. */
static OrtStatus *save_node(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode *fused,
                            const struct vnpu_program *p, const struct vnpu_buf *blob,
                            OrtNode **out)
{
    struct attributes a = {.api = ep->api};
    char file[PATH_MAX_BYTES];
    bool embed = ep->options.context_embed;
    OrtStatus *st = NULL;
    VNPU_GOTO(add_int(&a, "main_context", blob != NULL));
    VNPU_GOTO(add_int(&a, "embed_mode", embed));
    if (blob != NULL && embed) {
        VNPU_GOTO(add_bytes(&a, "ep_cache_context", blob->ptr, blob->len));
    } else if (blob != NULL) {
        VNPU_GOTO(save_sidecar(ep, graph, blob, file));
        VNPU_GOTO(add_text(&a, "ep_cache_context", file));
    }
    VNPU_GOTO(add_text(&a, "source", VNPU_NAME));
    VNPU_GOTO(add_text(&a, "partition_name", p->name));
    VNPU_GOTO(add_text(&a, "ep_sdk_version", VNPU_VERSION));
    VNPU_GOTO(add_text(&a, "hardware_architecture", VNPU_ARCHITECTURE));
    VNPU_GOTO(create_node(ep, fused, p->name, &a, out));
done:
    for (size_t i = 0; i < a.n; i++)
        if (a.v[i] != NULL) ep->api->ReleaseOpAttr(a.v[i]);
    return st;
}

OrtStatus *vnpu_context_save(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **fused,
                             const struct vnpu_program *program, size_t n, OrtNode **out)
{
    bool shared = ep->options.shared_context;
    OrtStatus *st = NULL;
    for (size_t i = 0; i < n && st == NULL; i++) {
        bool main = i == 0 || !shared;
        struct vnpu_buf blob = {0};
        if (main) st = write_blob(ep->api, &program[i], shared ? n : 1, &blob);
        if (st == NULL)
            st = save_node(ep, graph, fused[i], &program[i], main ? &blob : NULL, &out[i]);
        vnpu_buf_release(&blob);
    }
    for (size_t i = 0; i < n && st != NULL; i++)
        if (out[i] != NULL) {
            ep->api->ReleaseNode(out[i]);
            out[i] = NULL;
        }
    return st;
}

/* --- loading --- */

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
    char path[PATH_MAX_BYTES];
    if (path_escapes(file))
        return vnpu_fail(ep->api, "context file '%.200s' is not inside the model's folder", file);
    VNPU_TRY(model_path(ep, graph, false, path));
    size_t folder = folder_length(path), n = strlen(file);
    if (folder + n >= sizeof(path))
        return vnpu_fail(ep->api, "the path of context file '%.200s' is too long", file);
    memcpy(path + folder, file, n + 1);
    return read_file(ep->api, path, blob);
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
        VNPU_TRY(find_program(ep->api, c, *name, bytes, size));
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
