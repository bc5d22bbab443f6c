/* graph.c - reading ORT's graph handles: arrays of nodes and values, attributes, a map of names. */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *vnpu_node_inputs(const OrtApi *api, const OrtNode *n, const OrtValueInfo ***out,
                            size_t *count)
{
    void *p;
    *out = NULL;
    VNPU_TRY(api->Node_GetNumInputs(n, count));
    VNPU_TRY(vnpu_array(api, *count, sizeof(OrtValueInfo *), &p));
    *out = p;
    return *count > 0 ? api->Node_GetInputs(n, *out, *count) : NULL;
}

OrtStatus *vnpu_node_outputs(const OrtApi *api, const OrtNode *n, const OrtValueInfo ***out,
                             size_t *count)
{
    void *p;
    *out = NULL;
    VNPU_TRY(api->Node_GetNumOutputs(n, count));
    VNPU_TRY(vnpu_array(api, *count, sizeof(OrtValueInfo *), &p));
    *out = p;
    return *count > 0 ? api->Node_GetOutputs(n, *out, *count) : NULL;
}

OrtStatus *vnpu_graph_nodes(const OrtApi *api, const OrtGraph *g, const OrtNode ***out,
                            size_t *count)
{
    void *p;
    *out = NULL;
    VNPU_TRY(api->Graph_GetNumNodes(g, count));
    VNPU_TRY(vnpu_array(api, *count, sizeof(OrtNode *), &p));
    *out = p;
    return *count > 0 ? api->Graph_GetNodes(g, *out, *count) : NULL;
}

/* A missing attribute comes back as NULL or as a failure, depending on ORT's version: both mean
 * absent. */
static const OrtOpAttr *find_attribute(const OrtApi *api, const OrtNode *n, const char *name)
{
    const OrtOpAttr *a = NULL;
    OrtStatus *st = api->Node_GetAttributeByName(n, name, &a);
    if (st != NULL) {
        api->ReleaseStatus(st);
        return NULL;
    }
    return a;
}

OrtStatus *vnpu_string_attribute(const OrtApi *api, const OrtNode *n, const char *name, char **out,
                                 size_t *len)
{
    size_t need = 0;
    void *p;
    const OrtOpAttr *a = find_attribute(api, n, name);
    *out = NULL;
    *len = 0;
    if (a == NULL) return NULL;
    OrtStatus *st = api->ReadOpAttr(a, ORT_OP_ATTR_STRING, NULL, 0, &need);
    if (st != NULL) /* too little room: that is how one asks for the size */
        api->ReleaseStatus(st);
    VNPU_TRY(vnpu_array(api, need + 1, 1, &p));
    if ((st = api->ReadOpAttr(a, ORT_OP_ATTR_STRING, p, need + 1, &need)) != NULL) {
        free(p);
        return st;
    }
    *out = p;
    *len = need;
    return NULL;
}

OrtStatus *vnpu_int_attribute(const OrtApi *api, const OrtNode *n, const char *name,
                              int64_t fallback, int64_t *out)
{
    size_t need = 0;
    const OrtOpAttr *a = find_attribute(api, n, name);
    *out = fallback;
    return a != NULL ? api->ReadOpAttr(a, ORT_OP_ATTR_INT, out, sizeof(*out), &need) : NULL;
}

/* --- names: open addressing, at most half full --- */

OrtStatus *vnpu_names_init(const OrtApi *api, struct vnpu_names *m, size_t room)
{
    size_t size = 16;
    void *keys, *values;
    *m = (struct vnpu_names){0};
    while (size < 2 * room)
        size *= 2;
    VNPU_TRY(vnpu_array(api, size, sizeof(*m->key), &keys));
    m->key = keys;
    VNPU_TRY(vnpu_array(api, size, sizeof(*m->value), &values));
    m->value = values;
    m->mask = size - 1;
    return NULL;
}

void vnpu_names_release(struct vnpu_names *m)
{
    free(m->key);
    free(m->value);
    *m = (struct vnpu_names){0};
}

static size_t find_slot(const struct vnpu_names *m, const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (const char *p = name; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    size_t i = (size_t)h & m->mask;
    while (m->key[i] != NULL && strcmp(m->key[i], name) != 0)
        i = (i + 1) & m->mask;
    return i;
}

bool vnpu_names_get(const struct vnpu_names *m, const char *name, size_t *value)
{
    size_t i = find_slot(m, name);
    if (m->key[i] == NULL) return false;
    *value = m->value[i];
    return true;
}

void vnpu_names_put(struct vnpu_names *m, const char *name, size_t value)
{
    size_t i = find_slot(m, name);
    if (m->key[i] == NULL) {
        m->key[i] = name;
        m->value[i] = value;
    }
}
