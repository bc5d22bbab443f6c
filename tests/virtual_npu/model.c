/* model.c - writes the graph that ORT hands to Compile as an ONNX model.
 *
 * Protobuf is simple to write: a field is a key (number and kind), then a varint, four bytes, or a
 * length and that many bytes. A nested message needs its length before its content; five bytes are
 * kept free for it and filled in afterwards, which every protobuf reader accepts. Field numbers are
 * those of onnx.proto. */
#include "model.h"
#include "partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

static void put_varint(struct vnpu_buf *b, uint64_t v)
{
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v != 0);
    vnpu_buf_add(b, bytes, n);
}

static void put_int(struct vnpu_buf *b, unsigned field, int64_t v)
{
    put_varint(b, field << 3 | VARINT);
    put_varint(b, (uint64_t)v);
}

static void put_bytes(struct vnpu_buf *b, unsigned field, const void *p, size_t n)
{
    put_varint(b, field << 3 | BYTES);
    put_varint(b, n);
    vnpu_buf_add(b, p, n);
}

static void put_text(struct vnpu_buf *b, unsigned field, const char *s)
{
    put_bytes(b, field, s, strlen(s));
}

static void put_float(struct vnpu_buf *b, unsigned field, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    unsigned char le[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                           (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
    put_varint(b, field << 3 | FIXED32);
    vnpu_buf_add(b, le, sizeof(le));
}

static size_t begin(struct vnpu_buf *b, unsigned field)
{
    put_varint(b, field << 3 | BYTES);
    vnpu_buf_add(b, "\0\0\0\0", 5);
    return b->len;
}

static void end(struct vnpu_buf *b, size_t start)
{
    if (b->failed) return;
    uint64_t n = b->len - start;
    for (size_t i = 0; i < 5; i++, n >>= 7)
        b->ptr[start - 5 + i] = (unsigned char)((n & 0x7f) | (i < 4 ? 0x80 : 0));
}

/* --- types and tensors --- */

static OrtStatus *put_shape(const OrtApi *api, const OrtTensorTypeAndShapeInfo *t,
                            struct vnpu_buf *b)
{
    size_t rank;
    void *dims, *names;
    if (!api->TensorTypeAndShape_HasShape(t)) return NULL;
    VNPU_TRY(api->GetDimensionsCount(t, &rank));
    VNPU_TRY(vnpu_array(api, rank, sizeof(int64_t), &dims));
    OrtStatus *st = vnpu_array(api, rank, sizeof(char *), &names);
    const int64_t *dim = dims;
    const char **name = names;
    if (st == NULL) st = api->GetDimensions(t, dims, rank);
    if (st == NULL) st = api->GetSymbolicDimensions(t, name, rank);
    size_t shape = begin(b, 2); /* TypeProto.Tensor.shape */
    for (size_t i = 0; st == NULL && i < rank; i++) {
        size_t d = begin(b, 1); /* TensorShapeProto.dim */
        if (dim[i] >= 0)
            put_int(b, 1, dim[i]);
        else if (name[i] != NULL && *name[i] != '\0')
            put_text(b, 2, name[i]);
        end(b, d);
    }
    end(b, shape);
    free(dims);
    free(names);
    return st;
}

/* A ValueInfoProto in the given field of GraphProto. */
static OrtStatus *put_value_info(const OrtApi *api, const OrtValueInfo *v, unsigned field,
                                 struct vnpu_buf *b)
{
    const char *name;
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element;
    VNPU_TRY(api->GetValueInfoName(v, &name));
    VNPU_TRY(api->GetValueInfoTypeInfo(v, &type));
    VNPU_TRY(api->CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor == NULL) return vnpu_fail(api, "value %s is not a tensor", name);
    VNPU_TRY(api->GetTensorElementType(tensor, &element));
    size_t info = begin(b, field);
    put_text(b, 1, name);
    size_t t = begin(b, 2);          /* type */
    size_t tt = begin(b, 1);         /* tensor_type */
    put_int(b, 1, (int64_t)element); /* ORT numbers element types as ONNX does */
    OrtStatus *st = put_shape(api, tensor, b);
    end(b, tt);
    end(b, t);
    end(b, info);
    return st;
}

/* A TensorProto in the given field; the weights of a graph and the tensors among attributes. */
static OrtStatus *put_tensor(const OrtApi *api, const OrtValue *v, const char *name, unsigned field,
                             struct vnpu_buf *b)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element;
    size_t rank, bytes;
    const void *data = NULL;
    void *dims = NULL;
    OrtStatus *st = NULL;
    VNPU_GOTO(api->GetTensorTypeAndShape(v, &info));
    VNPU_GOTO(api->GetTensorElementType(info, &element));
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
        VNPU_GOTO(vnpu_fail(api, "tensor %s holds text", name));
    VNPU_GOTO(api->GetDimensionsCount(info, &rank));
    VNPU_GOTO(vnpu_array(api, rank, sizeof(int64_t), &dims));
    VNPU_GOTO(api->GetDimensions(info, dims, rank));
    VNPU_GOTO(api->GetTensorSizeInBytes(v, &bytes));
    if (bytes > 0) VNPU_GOTO(api->GetTensorData(v, &data));
    size_t tensor = begin(b, field);
    for (size_t i = 0; i < rank; i++)
        put_int(b, 1, ((const int64_t *)dims)[i]);
    put_int(b, 2, (int64_t)element);
    if (*name != '\0') put_text(b, 8, name);
    put_bytes(b, 9, data,
              bytes); /* raw_data; ORT keeps tensors in the little-endian order it wants */
    end(b, tensor);
done:
    free(dims);
    if (info != NULL) api->ReleaseTensorTypeAndShapeInfo(info);
    return st;
}

/* --- attributes --- */

static OrtStatus *read_attribute(const OrtApi *api, const OrtOpAttr *a, OrtOpAttrType type,
                                 unsigned char **out, size_t *n)
{
    size_t need = 0;
    void *p;
    OrtStatus *st = api->ReadOpAttr(a, type, NULL, 0, &need);
    if (st != NULL) /* too little room: that is how one asks for the size */
        api->ReleaseStatus(st);
    VNPU_TRY(vnpu_array(api, need + 8, 1, &p));
    st = api->ReadOpAttr(a, type, p, need + 8, n);
    if (st != NULL) free(p);
    *out = p;
    return st;
}

static void put_plain_attribute(struct vnpu_buf *b, OrtOpAttrType type, const unsigned char *p,
                                size_t n)
{
    int64_t i;
    float f;
    switch (type) {
    case ORT_OP_ATTR_FLOAT:
        memcpy(&f, p, sizeof(f));
        put_float(b, 2, f);
        put_int(b, 20, 1);
        break;
    case ORT_OP_ATTR_INT:
        memcpy(&i, p, sizeof(i));
        put_int(b, 3, i);
        put_int(b, 20, 2);
        break;
    case ORT_OP_ATTR_STRING:
        put_bytes(b, 4, p,
                  n > 0 && p[n - 1] == '\0' ? n - 1 : n); /* some versions of ORT count a NUL */
        put_int(b, 20, 3);
        break;
    case ORT_OP_ATTR_FLOATS:
        for (size_t k = 0; k + sizeof(f) <= n; k += sizeof(f)) {
            memcpy(&f, p + k, sizeof(f));
            put_float(b, 7, f);
        }
        put_int(b, 20, 6);
        break;
    case ORT_OP_ATTR_INTS:
        for (size_t k = 0; k + sizeof(i) <= n; k += sizeof(i)) {
            memcpy(&i, p + k, sizeof(i));
            put_int(b, 8, i);
        }
        put_int(b, 20, 7);
        break;
    default: /* texts, each closed by NUL */
        for (size_t k = 0; k < n; k += strlen((const char *)p + k) + 1)
            put_text(b, 9, (const char *)p + k);
        put_int(b, 20, 8);
        break;
    }
}

static OrtStatus *put_attribute(const OrtApi *api, const OrtOpAttr *a, struct vnpu_buf *b)
{
    OrtOpAttrType type;
    const char *name;
    OrtStatus *st;
    VNPU_TRY(api->OpAttr_GetType(a, &type));
    VNPU_TRY(api->OpAttr_GetName(a, &name));
    if (type == ORT_OP_ATTR_UNDEFINED || type == ORT_OP_ATTR_GRAPH)
        return vnpu_fail(api, "attribute %s is of a kind that is not supported", name);
    size_t attribute = begin(b, 5);
    put_text(b, 1, name);
    if (type == ORT_OP_ATTR_TENSOR) {
        OrtValue *v = NULL;
        VNPU_TRY(api->OpAttr_GetTensorAttributeAsOrtValue(a, &v));
        st = put_tensor(api, v, "", 5, b);
        api->ReleaseValue(v);
        put_int(b, 20, 4);
    } else {
        unsigned char *p = NULL;
        size_t n = 0;
        if ((st = read_attribute(api, a, type, &p, &n)) == NULL) {
            put_plain_attribute(b, type, p, n);
            free(p);
        }
    }
    end(b, attribute);
    return st;
}

/* --- nodes --- */

static OrtStatus *put_names(const OrtApi *api, const OrtValueInfo *const *v, size_t n,
                            unsigned field, struct vnpu_buf *b)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = "";
        if (v[i] != NULL) VNPU_TRY(api->GetValueInfoName(v[i], &name));
        put_text(b, field, name);
    }
    return NULL;
}

static OrtStatus *put_attributes(const OrtApi *api, const OrtNode *node, struct vnpu_buf *b)
{
    size_t n;
    void *room;
    VNPU_TRY(api->Node_GetNumAttributes(node, &n));
    VNPU_TRY(vnpu_array(api, n, sizeof(OrtOpAttr *), &room));
    const OrtOpAttr **a = room;
    OrtStatus *st = n > 0 ? api->Node_GetAttributes(node, a, n) : NULL;
    for (size_t i = 0; i < n && st == NULL; i++)
        st = put_attribute(api, a[i], b);
    free(room);
    return st;
}

/* Weights that the node uses and that are neither inputs of the fused node nor written already. */
static OrtStatus *put_weights(const OrtApi *api, const OrtValueInfo *const *in, size_t n,
                              struct vnpu_names *known, struct vnpu_buf *b)
{
    for (size_t i = 0; i < n; i++) {
        const char *name;
        const OrtValue *v = NULL;
        size_t seen;
        if (in[i] == NULL) continue;
        VNPU_TRY(api->GetValueInfoName(in[i], &name));
        if (vnpu_names_get(known, name, &seen)) continue;
        VNPU_TRY(api->ValueInfo_GetInitializerValue(in[i], &v));
        if (v == NULL) continue;
        vnpu_names_put(known, name, 1);
        VNPU_TRY(put_tensor(api, v, name, 5, b));
    }
    return NULL;
}

static OrtStatus *put_node(const OrtApi *api, const OrtNode *node, size_t index,
                           struct vnpu_names *known, struct vnpu_buf *b)
{
    const OrtValueInfo **in = NULL, **out = NULL;
    size_t n_in = 0, n_out = 0;
    const char *name, *op, *domain;
    OrtStatus *st = NULL;
    VNPU_GOTO(vnpu_node_inputs(api, node, &in, &n_in));
    VNPU_GOTO(vnpu_node_outputs(api, node, &out, &n_out));
    VNPU_GOTO(api->Node_GetName(node, &name));
    VNPU_GOTO(api->Node_GetOperatorType(node, &op));
    VNPU_GOTO(api->Node_GetDomain(node, &domain));
    VNPU_GOTO(put_weights(api, in, n_in, known, b));
    size_t message = begin(b, 1);
    VNPU_GOTO(put_names(api, in, n_in, 1, b));
    VNPU_GOTO(put_names(api, out, n_out, 2, b));
    if (*name != '\0') {
        put_text(b, 3, name);
    } else { /* a profile needs something to call it */
        char made[96];
        snprintf(made, sizeof(made), "%.64s_%zu", op, index);
        put_text(b, 3, made);
    }
    put_text(b, 4, op);
    put_text(b, 7, domain);
    VNPU_GOTO(put_attributes(api, node, b));
    end(b, message);
done:
    free(in);
    free(out);
    return st;
}

/* --- the model --- */

static OrtStatus *put_graph(const OrtApi *api, const OrtGraph *graph, const OrtNode *fused,
                            const char *name, struct vnpu_buf *b)
{
    const OrtValueInfo **in = NULL, **out = NULL;
    const OrtNode **nodes = NULL;
    struct vnpu_names known = {0};
    size_t n_in = 0, n_out = 0, n_nodes = 0, n_values = 0;
    OrtStatus *st = NULL;
    VNPU_GOTO(vnpu_node_inputs(api, fused, &in, &n_in));
    VNPU_GOTO(vnpu_node_outputs(api, fused, &out, &n_out));
    VNPU_GOTO(vnpu_graph_nodes(api, graph, &nodes, &n_nodes));
    for (size_t i = 0, n; i < n_nodes; i++) {
        VNPU_GOTO(api->Node_GetNumInputs(nodes[i], &n));
        n_values += n;
    }
    VNPU_GOTO(vnpu_names_init(api, &known, n_in + n_values));
    for (size_t i = 0; i < n_in; i++) {
        const char *input;
        VNPU_GOTO(api->GetValueInfoName(in[i], &input));
        vnpu_names_put(&known, input, 0);
        VNPU_GOTO(put_value_info(api, in[i], 11, b));
    }
    for (size_t i = 0; i < n_out; i++)
        VNPU_GOTO(put_value_info(api, out[i], 12, b));
    for (size_t i = 0; i < n_nodes; i++)
        VNPU_GOTO(put_node(api, nodes[i], i, &known, b));
    put_text(b, 2, name);
done:
    free(in);
    free(out);
    free(nodes);
    vnpu_names_release(&known);
    return st;
}

static OrtStatus *put_opsets(const OrtApi *api, const OrtGraph *graph, struct vnpu_buf *b)
{
    size_t n;
    void *names, *versions = NULL;
    VNPU_TRY(api->Graph_GetNumOperatorSets(graph, &n));
    VNPU_TRY(vnpu_array(api, n, sizeof(char *), &names));
    OrtStatus *st = vnpu_array(api, n, sizeof(int64_t), &versions);
    const char **name = names;
    if (st == NULL) st = api->Graph_GetOperatorSets(graph, name, versions, n);
    for (size_t i = 0; i < n && st == NULL; i++) {
        size_t opset = begin(b, 8);
        put_text(b, 1, name[i]);
        put_int(b, 2, ((const int64_t *)versions)[i]);
        end(b, opset);
    }
    free(names);
    free(versions);
    return st;
}

OrtStatus *vnpu_model_write(const OrtApi *api, const OrtGraph *graph, const OrtNode *fused,
                            const char *name, struct vnpu_buf *out)
{
    int64_t ir;
    size_t start = out->len;
    VNPU_TRY(api->Graph_GetOnnxIRVersion(graph, &ir));
    put_int(out, 1, ir);
    put_text(out, 2, VNPU_NAME);
    VNPU_TRY(put_opsets(api, graph, out));
    size_t g = begin(out, 7);
    VNPU_TRY(put_graph(api, graph, fused, name, out));
    end(out, g);
    if (out->failed) return vnpu_fail(api, "out of memory while writing %s", name);
    if (out->len - start > INT32_MAX)
        return vnpu_fail(
            api, "%s is larger than 2 GiB; refuse some of its operators with refuse_ops", name);
    return NULL;
}
