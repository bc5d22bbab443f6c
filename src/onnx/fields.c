/* onnx/fields.c - every message of onnx.proto (IR 14) as rows: number, kind, place in the struct.
 * Field numbers appear nowhere else, but for the has-bits of numbers in src/graph. */
#include "onnx/pb.h"

#include "graph/attr.h"
#include "graph/parts.h"
#include "graph/tensor.h"
#include "graph/type.h"

/* F: number or string. M: message, or a list of them. P: packed list kept as bytes, w the width of an
 * element. `id` is the field's name in onnx.proto, T and m the struct and its member. */
#define ROW(k, num, id, T, m) .name = id, .number = num, .kind = WML_PB_##k, .offset = offsetof(struct T, m)
#define F(k, num, id, T, m) {ROW(k, num, id, T, m)}
#define M(k, num, id, T, m, to) {ROW(k, num, id, T, m), .sub = &to}
#define P(num, id, T, m, w) {ROW(SPAN, num, id, T, m), .width = w}
#define ONE_OF_F(k, num, id, T, m) {ROW(k, num, id, T, m), .one_of = true}
#define ONE_OF_M(num, id, T, m, to) {ROW(MSG, num, id, T, m), .sub = &to, .one_of = true}
#define MESSAGE(T, rows) {.size = sizeof(struct T), .field = rows, .n_fields = WML_COUNT(rows)}

/* Messages that contain each other. */
static const struct wml_pb_message type_message, graph_message;

static const struct wml_pb_field entry_field[] = {
    F(STR, 1, "key", wml_entry, key),
    F(STR, 2, "value", wml_entry, value),
};
static const struct wml_pb_message entry_message = MESSAGE(wml_entry, entry_field);

static const struct wml_pb_field opset_field[] = {
    F(STR, 1, "domain", wml_opset, domain),
    F(I64, 2, "version", wml_opset, version),
};
static const struct wml_pb_message opset_message = MESSAGE(wml_opset, opset_field);

/* Types. */
static const struct wml_pb_field dim_field[] = {
    ONE_OF_F(I64, 1, "dim_value", wml_dim, value),
    ONE_OF_F(STR, 2, "dim_param", wml_dim, param),
    F(STR, 3, "denotation", wml_dim, denotation),
};
static const struct wml_pb_message dim_message = MESSAGE(wml_dim, dim_field);

static const struct wml_pb_field shape_field[] = {
    M(MSGV, 1, "dim", wml_shape, dim, dim_message),
};
static const struct wml_pb_message shape_message = MESSAGE(wml_shape, shape_field);

static const struct wml_pb_field tensor_type_field[] = {
    F(I32, 1, "elem_type", wml_tensor_type, elem),
    M(MSG, 2, "shape", wml_tensor_type, shape, shape_message),
};
static const struct wml_pb_message tensor_type_message =
    MESSAGE(wml_tensor_type, tensor_type_field);

static const struct wml_pb_field elem_type_field[] = {
    M(MSG, 1, "elem_type", wml_elem_type, elem, type_message),
};
static const struct wml_pb_message elem_type_message = MESSAGE(wml_elem_type, elem_type_field);

static const struct wml_pb_field map_type_field[] = {
    F(I32, 1, "key_type", wml_map_type, key),
    M(MSG, 2, "value_type", wml_map_type, value, type_message),
};
static const struct wml_pb_message map_type_message = MESSAGE(wml_map_type, map_type_field);

static const struct wml_pb_field opaque_field[] = {
    F(STR, 1, "domain", wml_opaque_type, domain),
    F(STR, 2, "name", wml_opaque_type, name),
};
static const struct wml_pb_message opaque_message = MESSAGE(wml_opaque_type, opaque_field);

static const struct wml_pb_field type_field[] = {
    ONE_OF_M(1, "tensor_type", wml_type, tensor, tensor_type_message),
    ONE_OF_M(4, "sequence_type", wml_type, sequence, elem_type_message),
    ONE_OF_M(5, "map_type", wml_type, map, map_type_message),
    F(STR, 6, "denotation", wml_type, denotation),
    ONE_OF_M(7, "opaque_type", wml_type, opaque, opaque_message),
    ONE_OF_M(8, "sparse_tensor_type", wml_type, sparse, tensor_type_message),
    ONE_OF_M(9, "optional_type", wml_type, optional, elem_type_message),
};
static const struct wml_pb_message type_message = MESSAGE(wml_type, type_field);

static const struct wml_pb_field value_info_field[] = {
    F(STR, 1, "name", wml_value_info, name),
    M(MSG, 2, "type", wml_value_info, type, type_message),
    F(STR, 3, "doc_string", wml_value_info, doc),
    M(MSGV, 4, "metadata_props", wml_value_info, metadata, entry_message),
};
static const struct wml_pb_message value_info_message = MESSAGE(wml_value_info, value_info_field);

/* Tensors. */
static const struct wml_pb_field segment_field[] = {
    F(I64, 1, "begin", wml_segment, begin),
    F(I64, 2, "end", wml_segment, end),
};
static const struct wml_pb_message segment_message = MESSAGE(wml_segment, segment_field);

static const struct wml_pb_field tensor_field[] = {
    F(I64S, 1, "dims", wml_tensor, dims),
    F(I32, 2, "data_type", wml_tensor, dtype),
    M(MSG, 3, "segment", wml_tensor, segment, segment_message),
    P(4, "float_data", wml_tensor, float_data, 4),
    P(5, "int32_data", wml_tensor, int32_data, 0),
    F(STRS, 6, "string_data", wml_tensor, string_data),
    P(7, "int64_data", wml_tensor, int64_data, 0),
    F(STR, 8, "name", wml_tensor, name),
    F(RAW, 9, "raw_data", wml_tensor, raw),
    P(10, "double_data", wml_tensor, double_data, 8),
    P(11, "uint64_data", wml_tensor, uint64_data, 0),
    F(STR, 12, "doc_string", wml_tensor, doc),
    M(MSGV, 13, "external_data", wml_tensor, external, entry_message),
    F(I32, 14, "data_location", wml_tensor, location),
    M(MSGV, 16, "metadata_props", wml_tensor, metadata, entry_message),
};
const struct wml_pb_message wml_pb_tensor = MESSAGE(wml_tensor, tensor_field);

static const struct wml_pb_field sparse_field[] = {
    M(MSG, 1, "values", wml_sparse_tensor, values, wml_pb_tensor),
    M(MSG, 2, "indices", wml_sparse_tensor, indices, wml_pb_tensor),
    F(I64S, 3, "dims", wml_sparse_tensor, dims),
};
static const struct wml_pb_message sparse_message = MESSAGE(wml_sparse_tensor, sparse_field);

/* Nodes. */
static const struct wml_pb_field attr_field[] = {
    F(STR, 1, "name", wml_attr, name),
    F(F32, 2, "f", wml_attr, f),
    F(I64, 3, "i", wml_attr, i),
    F(STR, 4, "s", wml_attr, s),
    M(MSG, 5, "t", wml_attr, t, wml_pb_tensor),
    M(MSG, 6, "g", wml_attr, g, graph_message),
    F(F32S, 7, "floats", wml_attr, floats),
    F(I64S, 8, "ints", wml_attr, ints),
    F(STRS, 9, "strings", wml_attr, strings),
    M(MSGS, 10, "tensors", wml_attr, tensors, wml_pb_tensor),
    M(MSGS, 11, "graphs", wml_attr, graphs, graph_message),
    F(STR, 13, "doc_string", wml_attr, doc),
    M(MSG, 14, "tp", wml_attr, tp, type_message),
    M(MSGS, 15, "type_protos", wml_attr, types, type_message),
    F(I32, 20, "type", wml_attr, type),
    F(STR, 21, "ref_attr_name", wml_attr, ref),
    M(MSG, 22, "sparse_tensor", wml_attr, sparse, sparse_message),
    M(MSGS, 23, "sparse_tensors", wml_attr, sparses, sparse_message),
};
static const struct wml_pb_message attr_message = MESSAGE(wml_attr, attr_field);

static const struct wml_pb_field shard_field[] = {
    ONE_OF_F(I64, 1, "dim_value", wml_simple_shard, dim_value),
    ONE_OF_F(STR, 2, "dim_param", wml_simple_shard, dim_param),
    F(I64, 3, "num_shards", wml_simple_shard, num_shards),
};
static const struct wml_pb_message shard_message = MESSAGE(wml_simple_shard, shard_field);

static const struct wml_pb_field sharded_dim_field[] = {
    F(I64, 1, "axis", wml_sharded_dim, axis),
    M(MSGV, 2, "simple_sharding", wml_sharded_dim, simple, shard_message),
};
static const struct wml_pb_message sharded_dim_message =
    MESSAGE(wml_sharded_dim, sharded_dim_field);

static const struct wml_pb_field group_field[] = {
    F(I64, 1, "key", wml_device_group, key),
    F(I64S, 2, "value", wml_device_group, value),
};
static const struct wml_pb_message group_message = MESSAGE(wml_device_group, group_field);

static const struct wml_pb_field sharding_field[] = {
    F(STR, 1, "tensor_name", wml_sharding, tensor_name),
    F(I64S, 2, "device", wml_sharding, device),
    M(MSGV, 3, "index_to_device_group_map", wml_sharding, group, group_message),
    M(MSGV, 4, "sharded_dim", wml_sharding, dim, sharded_dim_message),
};
static const struct wml_pb_message sharding_message = MESSAGE(wml_sharding, sharding_field);

static const struct wml_pb_field device_use_field[] = {
    F(STR, 1, "configuration_id", wml_device_use, configuration_id),
    M(MSGV, 2, "sharding_spec", wml_device_use, sharding, sharding_message),
    F(I32, 3, "pipeline_stage", wml_device_use, pipeline_stage),
};
static const struct wml_pb_message device_use_message = MESSAGE(wml_device_use, device_use_field);

static const struct wml_pb_field node_field[] = {
    F(STRS, 1, "input", wml_node, input),
    F(STRS, 2, "output", wml_node, output),
    F(STR, 3, "name", wml_node, name),
    F(STR, 4, "op_type", wml_node, op_type),
    M(MSGS, 5, "attribute", wml_node, attr, attr_message),
    F(STR, 6, "doc_string", wml_node, doc),
    F(STR, 7, "domain", wml_node, domain),
    F(STR, 8, "overload", wml_node, overload),
    M(MSGV, 9, "metadata_props", wml_node, metadata, entry_message),
    M(MSGS, 10, "device_configurations", wml_node, device, device_use_message),
};
static const struct wml_pb_message node_message = MESSAGE(wml_node, node_field);

/* Graphs. */
static const struct wml_pb_field annotation_field[] = {
    F(STR, 1, "tensor_name", wml_annotation, tensor_name),
    M(MSGV, 2, "quant_parameter_tensor_names", wml_annotation, param, entry_message),
};
static const struct wml_pb_message annotation_message = MESSAGE(wml_annotation, annotation_field);

static const struct wml_pb_field graph_field[] = {
    M(MSGS, 1, "node", wml_graph, node, node_message),
    F(STR, 2, "name", wml_graph, name),
    M(MSGS, 5, "initializer", wml_graph, initializer, wml_pb_tensor),
    F(STR, 10, "doc_string", wml_graph, doc),
    M(MSGS, 11, "input", wml_graph, input, value_info_message),
    M(MSGS, 12, "output", wml_graph, output, value_info_message),
    M(MSGS, 13, "value_info", wml_graph, value_info, value_info_message),
    M(MSGS, 14, "quantization_annotation", wml_graph, annotation, annotation_message),
    M(MSGS, 15, "sparse_initializer", wml_graph, sparse_initializer, sparse_message),
    M(MSGV, 16, "metadata_props", wml_graph, metadata, entry_message),
};
static const struct wml_pb_message graph_message = MESSAGE(wml_graph, graph_field);

/* Models. */
static const struct wml_pb_field training_field[] = {
    M(MSG, 1, "initialization", wml_training, initialization, graph_message),
    M(MSG, 2, "algorithm", wml_training, algorithm, graph_message),
    M(MSGV, 3, "initialization_binding", wml_training, initialization_binding, entry_message),
    M(MSGV, 4, "update_binding", wml_training, update_binding, entry_message),
};
static const struct wml_pb_message training_message = MESSAGE(wml_training, training_field);

static const struct wml_pb_field function_field[] = {
    F(STR, 1, "name", wml_function, name),
    F(STRS, 4, "input", wml_function, input),
    F(STRS, 5, "output", wml_function, output),
    F(STRS, 6, "attribute", wml_function, attribute),
    M(MSGS, 7, "node", wml_function, body.node, node_message),
    F(STR, 8, "doc_string", wml_function, doc),
    M(MSGV, 9, "opset_import", wml_function, opset, opset_message),
    F(STR, 10, "domain", wml_function, domain),
    M(MSGS, 11, "attribute_proto", wml_function, attr, attr_message),
    M(MSGS, 12, "value_info", wml_function, body.value_info, value_info_message),
    F(STR, 13, "overload", wml_function, overload),
    M(MSGV, 14, "metadata_props", wml_function, metadata, entry_message),
};
static const struct wml_pb_message function_message = MESSAGE(wml_function, function_field);

static const struct wml_pb_field device_config_field[] = {
    F(STR, 1, "name", wml_device_config, name),
    F(I32, 2, "num_devices", wml_device_config, num_devices),
    F(STRS, 3, "device", wml_device_config, device),
};
static const struct wml_pb_message device_config_message =
    MESSAGE(wml_device_config, device_config_field);

static const struct wml_pb_field model_field[] = {
    F(I64, 1, "ir_version", wml_model, ir_version),
    F(STR, 2, "producer_name", wml_model, producer_name),
    F(STR, 3, "producer_version", wml_model, producer_version),
    F(STR, 4, "domain", wml_model, domain),
    F(I64, 5, "model_version", wml_model, model_version),
    F(STR, 6, "doc_string", wml_model, doc),
    M(MSG, 7, "graph", wml_model, graph, graph_message),
    M(MSGV, 8, "opset_import", wml_model, opset, opset_message),
    M(MSGV, 14, "metadata_props", wml_model, metadata, entry_message),
    M(MSGS, 20, "training_info", wml_model, training, training_message),
    M(MSGS, 25, "functions", wml_model, function, function_message),
    M(MSGS, 26, "configuration", wml_model, device, device_config_message),
};
const struct wml_pb_message wml_pb_model = MESSAGE(wml_model, model_field);
