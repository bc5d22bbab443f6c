/* winml quantize: integers and half floats instead of floats, and how much that costs in accuracy. */
#include <stddef.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/shapes.h"
#include "flow/mixed.h"
#include "flow/quantize.h"
#include "text/json.h"

struct quantize_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, config, method, weight_type, activation_type, data, tokenizer, preprocessor, cache, overrides, task, model_id;
    struct wml_opt_list precision, op_types, exclude, shapes, dims;
    struct wml_opt_str block_size, rtn_bits;
    struct wml_opt_flag overwrite, per_channel, symmetric, reduce_range, contrib, accuracy, equalize, rtn_symmetric, gather;
    struct wml_opt_list keep;
    struct wml_opt_flag keep_io;
    struct wml_opt_flag bias_correction, scale_search;
    struct wml_opt_num smooth_quant;
    struct wml_opt_int samples, seed, bins, accuracy_level;
    struct wml_opt_num percentile;
    struct wml_target_args target;
    struct wml_opt_int rank;
    struct wml_opt_flag auto_mixed;
    struct wml_opt_num target_sqnr;
    struct wml_opt_str html;
    struct wml_opt_flag verify_target, float_refused;
    struct wml_opt_num timeout;
};

#define ARGS struct quantize_args
#define INT_TYPES "uint8|int8|uint16|int16"
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH | WML_OPT_EXISTS, NULL, "ONNX model"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "output file (default: beside the model, named after the precision)"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace an existing output"),
    WML_OPT_LIST('p', "precision", precision, "NAME", 0,
                 "auto, int8, int16, w8a16, w16a8, dynamic, fp16, bf16, int4, w4a8, w4a16, w8a32; repeated: one after another"),
    WML_OPT_INT(0, "samples", samples, "N", 0, 1, 1e6, "10", "calibration samples"),
    WML_OPT_STR(0, "method", method, "minmax|moving-average|entropy|percentile|mse|kl", 0, "minmax", "how ranges are found"),
    WML_OPT_STR(0, "calibration-data", data, "PATH", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                ".npz with a leading axis of samples, a folder of .npz files or of pictures, .txt or .jsonl texts (default: seeded random data)"),
    WML_OPT_STR(0, "tokenizer", tokenizer, "PATH", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "folder with the tokenizer.json for texts (default: the model's)"),
    WML_OPT_STR(0, "preprocessor", preprocessor, "PATH", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                "preprocessor_config.json for pictures, or its folder (default: the model's)"),
    WML_OPT_STR(0, "calibration-cache", cache, "FILE", WML_OPT_PATH, NULL, "ranges as ONNX Runtime's JSON: read when it is there, else written"),
    WML_OPT_INT(0, "seed", seed, "N", 0, 0, 1e9, "42", "of random data"),
    WML_OPT_INT(0, "bins", bins, "N", 0, 2, 1e6, NULL, "of histograms (entropy, percentile)"),
    WML_OPT_NUM(0, "percentile", percentile, "P", 0, 50, 100, "99.999", "of the method percentile"),
    WML_OPT_LIST(0, "input-shape", shapes, "NAME=1,3,48,192", 0, "shape of an input in random data; repeatable"),
    WML_OPT_LIST(0, "input-dim", dims, "SYMBOL=N", 0, "size of a named dimension in random data; repeatable"),
    WML_OPT_STR(0, "weight-type", weight_type, INT_TYPES "|int4|uint4", 0, NULL, "type of weights, whatever the precision says"),
    WML_OPT_STR(0, "activation-type", activation_type, INT_TYPES, 0, NULL, "type of activations, whatever the precision says"),
    WML_OPT_FLAG(0, "per-channel", per_channel, 0, "no", "a scale for every output channel of a weight"),
    WML_OPT_FLAG(0, "symmetric", symmetric, 0, NULL, "zero points in the middle, weights and activations (default: weights of signed types)"),
    WML_OPT_FLAG(0, "reduce-range", reduce_range, 0, "no", "weights of 7 bits, for CPUs whose 8-bit sums overflow"),
    WML_OPT_FLAG(0, "equalize", equalize, 0, "no", "balance the channels of layers that follow one another (static)"),
    WML_OPT_FLAG(0, "bias-correction", bias_correction, 0, "no", "take the mean error of every channel out by its bias (static)"),
    WML_OPT_NUM(0, "smooth-quant", smooth_quant, "ALPHA", 0, 0, 1, "0", "move outliers of activations into weights behind norms, 0.5 is usual (static)"),
    WML_OPT_FLAG(0, "scale-search", scale_search, 0, "no", "clip constants and activations where that errs least (static)"),
    WML_OPT_STR(0, "overrides", overrides, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: types and ranges of tensors, nodes, operators"),
    WML_OPT_LIST(0, "op-type", op_types, "NAME", 0, "quantise these operators only; repeatable"),
    WML_OPT_LIST(0, "exclude", exclude, "NODE", 0, "leave these nodes alone, * and ? allowed; repeatable"),
    WML_OPT_FLAG(0, "contrib-qdq", contrib, 0, "no", "16- and 4-bit Q/DQ of com.microsoft instead of opset 21"),
    WML_OPT_FLAG(0, "keep-io-types", keep_io, 0, "yes", "inputs and outputs stay float (fp16, bf16)"),
    WML_OPT_LIST(0, "keep-op", keep, "NAME", 0, "operators that stay float (fp16, bf16); repeatable"),
    WML_OPT_STR(0, "block-size", block_size, "16|32|64|128|256", 0, "128", "elements that share a scale (int4, w4a8, w4a16, w8a32)"),
    WML_OPT_FLAG(0, "rtn-symmetric", rtn_symmetric, 0, "yes", "the same precisions: no zero points"),
    WML_OPT_INT(0, "accuracy-level", accuracy_level, "N", 0, 0, 4, NULL,
                "the same: what to compute in, 1 float32, 2 float16, 3 bfloat16, 4 int8 (default: the precision's, else the runtime's)"),
    WML_OPT_FLAG(0, "gather", gather, 0, "no", "the same: tables of Gather, too"),
    WML_OPT_STR(0, "rtn-bits", rtn_bits, "4|8", WML_OPT_HIDDEN, NULL, "of a build config; the precision says it here"),
    WML_OPT_FLAG(0, "accuracy", accuracy, 0, NULL, "run source and result and compare (default: models up to 2 GiB that run within 3 s)"),
    WML_OPT_FLAG(0, "auto-mixed", auto_mixed, WML_OPT_SWITCH, "no", "raise tensors from 8 to 16 bits, the worst first, until the outputs reach 20 dB"),
    WML_OPT_NUM(0, "target-sqnr", target_sqnr, "DB", 0, -100, 200, NULL, "the same with another goal"),
    WML_OPT_INT(0, "rank", rank, "N", 0, 1, 1e6, NULL, "show the N tensors that lose most; JSON has all"),
    WML_OPT_STR(0, "report", html, "FILE", WML_OPT_PATH, NULL, "HTML report, one self-contained file, with the ranking of tensors"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_FLAG(0, "verify-target", verify_target, 0, "yes", "load the result on the target and count the nodes that it takes"),
    WML_OPT_FLAG(0, "float-refused", float_refused, 0, "yes", "leave nodes float that the target refuses as integers (static)"),
    WML_OPT_NUM(0, "timeout", timeout, "SECONDS", 0, 0, 1e9, "600", "limit for loading on the target; 0: none"),
    WML_OPT_STR(0, "task", task, "TASK", 0, NULL, "chooses the data of the Python tool; here data come by --calibration-data"),
    WML_OPT_STR(0, "model-id", model_id, "ID", 0, NULL, "the same"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "build config, JSON; its section quant is read"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

/* Options of the section, under the names that build configs have for them. */
static bool read_config(const struct wml_call *call, const char *path, struct wml_err *err)
{
    static const char *const key[][2] = {{"samples", "samples"}, {"calibration_samples", "samples"}, {"calibration_method", "method"},
                                         {"weight_type", "weight-type"}, {"activation_type", "activation-type"},
                                         {"per_channel", "per-channel"}, {"symmetric", "symmetric"}, {"reduce_range", "reduce-range"},
                                         {"task", "task"}, {"model_id", "model-id"}, {"seed", "seed"},
                                         {"rtn_bits", "rtn-bits"}, {"rtn_block_size", "block-size"},
                                         {"rtn_symmetric", "rtn-symmetric"}, {"rtn_accuracy_level", "accuracy-level"}};
    struct wml_json_doc *doc = NULL;
    if (!wml_json_load(path, &doc, err)) return false;
    const struct wml_json_val *quant = wml_json_get(wml_json_root(doc), "quant");
    bool ok = wml_json_is_object(quant) || wml_json_is_null(quant) || wml_fail(err, WML_E_USAGE, "%s: 'quant' must be an object", path);
    for (size_t i = 0; ok && i < WML_COUNT(key); i++) {
        const struct wml_json_val *v = wml_json_get(quant, key[i][0]);
        struct wml_buf text = {0};
        bool known;
        if (wml_json_is_null(v)) continue;
        if (wml_json_is_string(v)) wml_buf_str(&text, wml_json_str(v));
        else wml_json_print(v, &text);
        struct wml_str value = wml_arena_str(call->arena, wml_buf_view(&text));
        ok = wml_opt_set(call->command->opts, call->args, wml_str(key[i][1]), value, WML_FROM_CONFIG, call->arena, &known, err) ||
             wml_wrap(err, "%s: quant.%s", path, key[i][0]);
        wml_buf_release(&text);
    }
    wml_json_free(doc);
    return ok;
}

static struct wml_patterns patterns(const struct wml_opt_list *list, struct wml_arena *arena)
{
    struct wml_str *at = WML_NEW_ARRAY(arena, struct wml_str, list->v.len + 1);
    for (size_t i = 0; i < list->v.len; i++) at[i] = wml_str(list->v.at[i]);
    return (struct wml_patterns){at, list->v.len};
}

static enum wml_dtype type_of(const struct wml_opt_str *o)
{
    return o->v ? wml_dtype_parse(wml_str(o->v)) : WML_UNDEFINED;
}

static unsigned number_of(const struct wml_opt_str *o)
{
    uint64_t v = 0;
    return o->v && wml_parse_u64(wml_str(o->v), &v) ? (unsigned)v : 0;
}

static struct wml_quant_opts quant_opts(const struct quantize_args *a, struct wml_arena *arena)
{
    enum wml_symmetry s = !a->symmetric.set ? WML_SYMMETRY_DEFAULT : a->symmetric.v ? WML_SYMMETRY_ON : WML_SYMMETRY_OFF;
    return (struct wml_quant_opts){
        .weight = type_of(&a->weight_type), .activation = type_of(&a->activation_type), .per_channel = a->per_channel.v,
        .symmetric_weight = s, .symmetric_activation = s, .reduce_range = a->reduce_range.v, .contrib = a->contrib.v, .equalize = a->equalize.v,
        .bias_correction = a->bias_correction.v, .scale_search = a->scale_search.v, .smooth = a->smooth_quant.v,
        .op_types = patterns(&a->op_types, arena), .exclude = patterns(&a->exclude, arena),
        .keep = patterns(&a->keep, arena), .convert_io = !a->keep_io.v,
        .bits = number_of(&a->rtn_bits), .block_size = number_of(&a->block_size), .asymmetric = !a->rtn_symmetric.v, .gather = a->gather.v,
        .accuracy_level = (int)a->accuracy_level.v};
}

static void find_typed(const struct wml_call *call, struct wml_quantize_args *in)
{
    size_t n = 0;
    while (wml_quantize_options[n]) n++;
    const char **typed = WML_NEW_ARRAY(call->arena, const char *, n);
    for (size_t i = 0; i < n; i++)
        if (wml_opt_is_typed(call->command->opts, call->args, wml_quantize_options[i])) typed[in->n_typed++] = wml_quantize_options[i];
    in->typed = typed;
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct quantize_args *a = call->args;
    struct wml_cmd_shapes shapes;
    if (a->config.v && !read_config(call, a->config.v, err)) return false;
    struct wml_quantize_args in = {
        .model = a->model.v, .output = a->output.v, .overwrite = a->overwrite.v, .precision = a->precision.v.at,
        .n_precisions = a->precision.v.len, .quant = quant_opts(a, call->arena), .overrides = a->overrides.v,
        .has_target = a->target.ep.v || a->target.device.v, .method = a->scale_search.v && !wml_opt_is_typed(opts, a, "method") ? "mse" : a->method.v,
        .range = {.bins = (unsigned)a->bins.v, .percentile = a->percentile.v}, .samples = (size_t)a->samples.v, .seed = (uint64_t)a->seed.v,
        .data = a->data.v, .tokenizer = a->tokenizer.v, .preprocessor = a->preprocessor.v, .cache = a->cache.v,
        .mixed = a->auto_mixed.v || a->target_sqnr.set, .goal_db = a->target_sqnr.set ? a->target_sqnr.v : WML_MIXED_GOAL_DB,
        .verify_target = a->verify_target.v, .float_refused = a->float_refused.v, .timeout_ms = (uint64_t)(a->timeout.v * 1000),
        .rank = (size_t)a->rank.v, .html = a->html.v,
        .accuracy = !a->accuracy.set ? WML_VERIFY_AUTO : a->accuracy.v ? WML_VERIFY_ON : WML_VERIFY_OFF};
    find_typed(call, &in);
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    if (!wml_cmd_shapes_parse(&a->shapes, &a->dims, call->arena, &shapes, err)) return false;
    in.shape = shapes.shape;
    in.n_shapes = shapes.n_shapes;
    in.dim = shapes.dim;
    in.n_dims = shapes.n_dims;
    if (a->task.v && !in.data)
        wml_log(call->cx, WML_LOG_WARN, "--task: no data set is fetched; random data are used. Give real inputs with --calibration-data");
    return wml_flow_quantize(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_quantize = {
    .name = "quantize", .group = "Build", .summary = "Make a float ONNX model one of integers or half floats",
    .about = "Static quantisation runs the model on samples for the ranges of its values, then puts QuantizeLinear and "
             "DequantizeLinear where ONNX Runtime's quantizer would, with the same numbers. Weights are converted while the file is "
             "written. The result is compared with the float model before it appears under its name.",
    .examples = "winml quantize -m model.onnx -p w8a16 --calibration-data samples.npz\n"
                "winml quantize -m model.onnx -p int8 --per-channel --ep qnn -o ints.onnx\n"
                "winml quantize -m model.onnx -p fp16 -o half.onnx",
    .opts = opts, .args_size = sizeof(struct quantize_args), .formats = "text|json", .run = run,
};
