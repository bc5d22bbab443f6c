/* quant/overrides.h - what a user asks for single tensors, nodes and operators, against the options of the whole model.
 *
 * A JSON object. Members with arrays name tensors, as ONNX Runtime's TensorQuantOverrides do:
 *     "conv1_out": [{"quant_type": "QUInt16", "rmin": -1, "rmax": 1}]
 *     "w": [{"axis": 0, "quant_type": "QInt8"}]                    one object, or one per channel
 * with the keys quant_type, axis, scale + zero_point, symmetric, reduce_range, rmin, rmax and convert (quant_type,
 * recv_nodes: [names], scale + zero_point, symmetric, rmin, rmax). Beyond ORT's form:
 *     "tensors": {"*_mask": {...}}     the same, where names may be glob patterns and one object needs no array
 *     "nodes": {"head.*": {...}}, "op_types": {"Softmax": {...}}
 *         exclude: true; activation_type, activation_symmetric (of outputs); weight_type, weight_symmetric, per_channel,
 *         reduce_range (of constant weights)
 *     "add_qtype_converts": false      no conversions are added around tensors of another type
 * The first match counts: exact names, then patterns, in the order of the file; tensors before nodes before operators. */
#ifndef WML_QUANT_OVERRIDES_H
#define WML_QUANT_OVERRIDES_H

#include "base/dtype.h"
#include "base/vec.h"

enum { WML_UNSET = -1 }; /* of symmetric, reduced, per_channel; else 0 or 1 */

struct wml_override { /* of a tensor, or of one of its channels */
    enum wml_dtype type; /* WML_UNDEFINED: unset */
    int symmetric, reduced;
    bool has_axis, has_scale, has_low, has_high;
    int64_t axis;
    double scale;
    int32_t zero;
    double low, high;
};

struct wml_tensor_override {
    struct wml_str pattern;
    WML_VEC(struct wml_override) channel; /* one: of the whole tensor, or of every channel */
    bool converts; /* readers get another type than the producer gives */
    struct wml_override convert;
    bool some; /* only the readers named here; else all */
    WML_VEC(struct wml_str) reader;
};

struct wml_node_override {
    struct wml_str pattern;
    bool exclude;
    enum wml_dtype activation, weight;
    int activation_symmetric, weight_symmetric, per_channel, reduced;
};

struct wml_quant_overrides {
    struct wml_arena arena;
    WML_VEC(struct wml_tensor_override) tensor;
    WML_VEC(struct wml_node_override) node, op;
    bool no_converts;
};

/* NULL with *err set: WML_E_USAGE, naming member and key. */
struct wml_quant_overrides *wml_quant_overrides_load(const char *path, struct wml_err *err);
struct wml_quant_overrides *wml_quant_overrides_parse(struct wml_str json, struct wml_err *err);
void wml_quant_overrides_free(struct wml_quant_overrides *o);

/* NULL: nothing is asked. o may be NULL. */
const struct wml_tensor_override *wml_overrides_of_tensor(const struct wml_quant_overrides *o, struct wml_str name);
const struct wml_node_override *wml_overrides_of_node(const struct wml_quant_overrides *o, struct wml_str name, struct wml_str op_type);

/* An override with nothing set. */
struct wml_override wml_override_none(void);
/* "QUInt8", "uint8", "UINT8", "QuantType.QUInt8"; WML_UNDEFINED when it is none. */
enum wml_dtype wml_qtype_parse(struct wml_str name);

#endif
