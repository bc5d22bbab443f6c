/* graph/parts.h - the rarer messages of onnx.proto, kept so that every file survives a round trip. */
#ifndef WML_GRAPH_PARTS_H
#define WML_GRAPH_PARTS_H

#include "graph/model.h"

struct wml_unknown { /* one field nobody knows: tag and body as they stand in the file */
    struct wml_unknown *next;
    struct wml_unknown *last; /* valid in the first of the chain */
    struct wml_span bytes;
};

struct wml_segment { /* TensorProto.Segment */
    struct wml_msg msg;
    int64_t begin, end;
};

struct wml_annotation { /* quantisation annotation */
    struct wml_msg msg;
    struct wml_str tensor_name;
    struct wml_entries param;
    struct wml_value *value; /* linked */
};

struct wml_training {
    struct wml_msg msg;
    struct wml_graph *initialization, *algorithm;
    struct wml_entries initialization_binding, update_binding;
};

struct wml_function {
    struct wml_msg msg;
    struct wml_str name, domain, overload, doc;
    WML_VEC(struct wml_str) input, output; /* file face of body.inputs, body.outputs */
    WML_VEC(struct wml_str) attribute;     /* names without a default */
    WML_VEC(struct wml_attr *) attr;       /* with a default */
    struct wml_opsets opset;
    struct wml_entries metadata;
    struct wml_graph body; /* its node and value_info lists are the function's */
};

/* Devices (IR 11). */
struct wml_device_config {
    struct wml_msg msg;
    struct wml_str name;
    int32_t num_devices;
    WML_VEC(struct wml_str) device;
};

struct wml_device_use { /* NodeDeviceConfigurationProto */
    struct wml_msg msg;
    struct wml_str configuration_id;
    WML_VEC(struct wml_sharding) sharding;
    int32_t pipeline_stage;
};

struct wml_sharding { /* ShardingSpecProto */
    struct wml_msg msg;
    struct wml_str tensor_name;
    WML_VEC(int64_t) device;
    WML_VEC(struct wml_device_group) group;
    WML_VEC(struct wml_sharded_dim) dim;
};

struct wml_device_group { /* IntIntListEntryProto */
    struct wml_msg msg;
    int64_t key;
    WML_VEC(int64_t) value;
};

struct wml_sharded_dim {
    struct wml_msg msg;
    int64_t axis;
    WML_VEC(struct wml_simple_shard) simple;
};

struct wml_simple_shard {
    struct wml_msg msg;
    int64_t dim_value;
    struct wml_str dim_param;
    int64_t num_shards;
};

#endif
