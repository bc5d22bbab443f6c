/* partition.c - which nodes the virtual NPU takes, and how they group.
 *
 * A group becomes one fused node, so no path may leave it and come back. Each node gets a stage:
 * the largest stage of the nodes before it, plus one when the step goes from a node that is not
 * ours to one that is. A path that leaves our nodes and comes back therefore ends in a later stage,
 * and connected nodes of one stage are always a legal group. One pass over ORT's topological order
 * does it. */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

struct item {
    const OrtNode *node;
    const OrtValueInfo **in, **out;
    size_t n_in, n_out;
    bool ours;    /* may join a group */
    bool context; /* an EPContext node of ours: a group by itself */
    size_t stage;
    size_t root; /* of its group, in a union-find forest */
};

struct partition {
    struct vnpu_ep *ep;
    const OrtApi *api;
    struct item *item;
    size_t n;
    struct vnpu_names producer; /* value -> item */
};

/* --- one node --- */

static bool type_is_supported(ONNXTensorElementDataType t)
{
    switch (t) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
        return true;
    default:
        return false; /* text, complex and the floats the CPU has few kernels for */
    }
}

static OrtStatus *values_are_supported(const OrtApi *api, const OrtValueInfo *const *v, size_t n,
                                       bool *yes)
{
    for (size_t i = 0; i < n && *yes; i++) {
        const OrtTypeInfo *type = NULL;
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        if (v[i] == NULL) continue; /* an optional value that is left out */
        VNPU_TRY(api->GetValueInfoTypeInfo(v[i], &type));
        if (type != NULL) VNPU_TRY(api->CastTypeInfoToTensorInfo(type, &tensor));
        if (tensor != NULL) VNPU_TRY(api->GetTensorElementType(tensor, &element));
        *yes = type_is_supported(element);
    }
    return NULL;
}

static bool op_is_listed(const struct vnpu_options *o, const char *domain, const char *op)
{
    bool standard = *domain == '\0' || strcmp(domain, "ai.onnx") == 0;
    if (vnpu_list_has(o->refuse_ops, op) || vnpu_list_has(o->refuse_ops, "all")) return false;
    return standard && (vnpu_list_has(o->ops, "all") || vnpu_list_has(o->ops, op));
}

OrtStatus *vnpu_is_context_node(const struct vnpu_ep *ep, const OrtNode *node, bool *yes)
{
    const char *op, *domain;
    char *source;
    size_t len;
    *yes = false;
    VNPU_TRY(ep->api->Node_GetOperatorType(node, &op));
    VNPU_TRY(ep->api->Node_GetDomain(node, &domain));
    if (strcmp(op, "EPContext") != 0 || strcmp(domain, "com.microsoft") != 0) return NULL;
    VNPU_TRY(vnpu_string_attribute(ep->api, node, "source", &source, &len));
    *yes = source != NULL && strcmp(source, VNPU_NAME) == 0;
    free(source);
    return NULL;
}

static OrtStatus *judge(const struct partition *p, struct item *it)
{
    const char *op, *domain;
    size_t n_graphs = 0;
    VNPU_TRY(vnpu_is_context_node(p->ep, it->node, &it->context));
    if (it->context) return NULL;
    VNPU_TRY(p->api->Node_GetOperatorType(it->node, &op));
    VNPU_TRY(p->api->Node_GetDomain(it->node, &domain));
    VNPU_TRY(p->api->Node_GetNumSubgraphs(it->node, &n_graphs));
    it->ours = n_graphs == 0 && op_is_listed(&p->ep->options, domain, op);
    VNPU_TRY(values_are_supported(p->api, it->in, it->n_in, &it->ours));
    return values_are_supported(p->api, it->out, it->n_out, &it->ours);
}

/* --- groups --- */

static size_t find_root(struct partition *p, size_t i)
{
    while (p->item[i].root != i)
        i = p->item[i].root = p->item[p->item[i].root].root;
    return i;
}

/* Calls visit for the item that makes v, if a node of this graph does. */
static OrtStatus *visit(struct partition *p, const OrtValueInfo *v, size_t i, bool join)
{
    const char *name;
    size_t from;
    struct item *it = &p->item[i];
    if (v == NULL) return NULL;
    VNPU_TRY(p->api->GetValueInfoName(v, &name));
    if (!vnpu_names_get(&p->producer, name, &from) || from == i) return NULL;
    const struct item *before = &p->item[from];
    if (!join) {
        size_t stage = before->stage + (it->ours && !before->ours ? 1 : 0);
        it->stage = stage > it->stage ? stage : it->stage;
    } else if (it->ours && before->ours && it->stage == before->stage) {
        size_t a = find_root(p, from), b = find_root(p, i);
        p->item[a > b ? a : b].root = a > b ? b : a;
    }
    return NULL;
}

static OrtStatus *visit_all(struct partition *p, size_t i, bool join)
{
    struct item *it = &p->item[i];
    size_t n = 0;
    void *room;
    for (size_t k = 0; k < it->n_in; k++)
        VNPU_TRY(visit(p, it->in[k], i, join));
    if (join) return NULL;
    VNPU_TRY(
        p->api->Node_GetNumImplicitInputs(it->node, &n)); /* what the bodies of If and Loop use */
    if (n == 0) return NULL;
    VNPU_TRY(vnpu_array(p->api, n, sizeof(OrtValueInfo *), &room));
    const OrtValueInfo **implicit = room;
    OrtStatus *st = p->api->Node_GetImplicitInputs(it->node, implicit, n);
    for (size_t k = 0; k < n && st == NULL; k++)
        st = visit(p, implicit[k], i, join);
    free(room);
    return st;
}

static OrtStatus *add_group(struct partition *p, OrtEpGraphSupportInfo *info, const OrtNode **group,
                            size_t root)
{
    bool context = p->item[root].context;
    size_t n = 0;
    for (size_t i = root; i < p->n; i++)
        if (i == root || (!context && p->item[i].ours && find_root(p, i) == root))
            group[n++] = p->item[i].node;
    if (!context && n < p->ep->options.min_nodes) return NULL;
    /* Weights are copied into the compiled program. An EPContext node keeps every input in its
     * place. */
    OrtNodeFusionOptions options = {
        .ort_version_supported = ORT_API_VERSION,
        .drop_constant_initializers = !context,
    };
    return p->ep->factory->ep_api->EpGraphSupportInfo_AddNodesToFuse(info, group, n, &options);
}

/* --- the whole graph --- */

static OrtStatus *read_items(struct partition *p, const OrtNode *const *nodes)
{
    size_t n_values = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct item *it = &p->item[i];
        it->node = nodes[i];
        it->root = i;
        VNPU_TRY(vnpu_node_inputs(p->api, it->node, &it->in, &it->n_in));
        VNPU_TRY(vnpu_node_outputs(p->api, it->node, &it->out, &it->n_out));
        n_values += it->n_out;
    }
    VNPU_TRY(vnpu_names_init(p->api, &p->producer, n_values));
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->item[i].n_out; k++) {
            const char *name;
            if (p->item[i].out[k] == NULL) continue;
            VNPU_TRY(p->api->GetValueInfoName(p->item[i].out[k], &name));
            vnpu_names_put(&p->producer, name, i);
        }
    return NULL;
}

static OrtStatus *group_items(struct partition *p, OrtEpGraphSupportInfo *info)
{
    void *room;
    for (size_t i = 0; i < p->n; i++) {
        VNPU_TRY(judge(p, &p->item[i]));
        VNPU_TRY(visit_all(p, i, false));
    }
    for (size_t i = 0; i < p->n; i++)
        VNPU_TRY(visit_all(p, i, true));
    VNPU_TRY(vnpu_array(p->api, p->n, sizeof(OrtNode *), &room));
    OrtStatus *st = NULL;
    for (size_t i = 0; i < p->n && st == NULL; i++)
        if (p->item[i].context || (p->item[i].ours && find_root(p, i) == i))
            st = add_group(p, info, room, i);
    free(room);
    return st;
}

OrtStatus *vnpu_partition(struct vnpu_ep *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info)
{
    struct partition p = {.ep = ep, .api = ep->api};
    const OrtNode *parent = NULL, **nodes = NULL;
    OrtStatus *st = NULL;
    void *items = NULL;
    VNPU_GOTO(p.api->Graph_GetParentNode(graph, &parent));
    if (parent != NULL) goto done;
    VNPU_GOTO(vnpu_graph_nodes(p.api, graph, &nodes, &p.n));
    VNPU_GOTO(vnpu_array(p.api, p.n, sizeof(*p.item), &items));
    p.item = items;
    VNPU_GOTO(read_items(&p, nodes));
    VNPU_GOTO(group_items(&p, info));
done:
    for (size_t i = 0; i < p.n && p.item != NULL; i++) {
        free(p.item[i].in);
        free(p.item[i].out);
    }
    free(items);
    free(nodes);
    vnpu_names_release(&p.producer);
    return st;
}
