/* winml optimize: a smaller graph that gives the same answers. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "cmd/shapes.h"
#include "flow/optimize.h"
#include "text/json.h"
#include "text/words.h"

struct optimize_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, config, weights, data;
    struct wml_target_args target;
    struct wml_opt_list shapes, dims;
    struct wml_opt_flag overwrite, verify, verify_target, list, check, list_rewrites;
    struct wml_opt_num timeout;
#define PASS(id, name) struct wml_opt_flag on_##id, off_##id;
#include "passes/passes.def"
#undef PASS
#define LATER(id, name) struct wml_opt_flag later_on_##id, later_off_##id;
#include "cmd/optimize_later.def"
#undef LATER
};

#define ARGS struct optimize_args
#define HIDDEN_SWITCH (WML_OPT_SWITCH | WML_OPT_HIDDEN)
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "ONNX model"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "output file (default: <model>_opt.onnx beside it)"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace an existing output"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_LIST(0, "input-shape", shapes, "NAME=1,3,48,192", 0, "fix the shape of an input; repeatable"),
    WML_OPT_LIST(0, "input-dim", dims, "SYMBOL=N", 0, "fix a named dimension; repeatable"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: capability names to true or false"),
    WML_OPT_FLAG(0, "verify", verify, 0, NULL, "compare before and after on the CPU (default: models up to 64 MB)"),
    WML_OPT_STR(0, "input-data", data, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                "inputs to verify with: .npz, or a folder of .npy (default: seeded random ones)"),
    WML_OPT_FLAG(0, "verify-target", verify_target, 0, "yes", "load the result on the target and show where nodes run"),
    WML_OPT_STR(0, "weights", weights, "copy|reference", 0, "copy", "reference: the output points into the source's files"),
    WML_OPT_NUM(0, "timeout", timeout, "SECONDS", 0, 0, 1e9, "600", "limit for loading on the target; 0: none"),
    WML_OPT_FLAG('l', "list-capabilities", list, WML_OPT_SWITCH, NULL, "list what --enable-NAME and --disable-NAME take"),
    WML_OPT_FLAG(0, "check-optim", check, WML_OPT_SWITCH, NULL, "say what would be done, write nothing"),
    WML_OPT_FLAG(0, "list-rewrites", list_rewrites, HIDDEN_SWITCH, NULL, "as --list-capabilities"),
#define PASS(id, name)                                                                                                 \
    WML_OPT_FLAG(0, "enable-" name, on_##id, HIDDEN_SWITCH, NULL, "enable " name),                                     \
        WML_OPT_FLAG(0, "disable-" name, off_##id, HIDDEN_SWITCH, NULL, "disable " name),
#include "passes/passes.def"
#undef PASS
#define LATER(id, name)                                                                                                \
    WML_OPT_FLAG(0, "enable-" name, later_on_##id, HIDDEN_SWITCH, NULL, "not available in this version"),              \
        WML_OPT_FLAG(0, "disable-" name, later_off_##id, HIDDEN_SWITCH, NULL, "not available in this version"),
#include "cmd/optimize_later.def"
#undef LATER
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static const char *const later_name[] = {
#define LATER(id, name) name,
#include "cmd/optimize_later.def"
#undef LATER
};

static bool is_later(struct wml_str name)
{
    for (size_t i = 0; i < WML_COUNT(later_name); i++)
        if (wml_str_is(name, later_name[i])) return true;
    return false;
}

/* name: true|false, flat; names with dashes or underscores. A build config gives its section `optim`. */
static bool read_config(const char *path, enum wml_pass_choice *choice, struct wml_arena *arena,
                        struct wml_optimize_args *in, struct wml_later *later, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *value;
    if (!wml_json_load(path, &doc, err)) return false;
    const struct wml_json_val *root = wml_json_root(doc), *optim = wml_json_get(root, "optim");
    if (wml_json_is_object(optim)) root = optim;
    bool ok = wml_json_is_object(root) || wml_fail(err, WML_E_USAGE, "%s: the root must be an object of capabilities", path);
    while (ok && wml_json_next(root, &it, &key, &value)) {
        char *name = wml_arena_cstr(arena, key);
        for (size_t k = 0; k < key.len; k++)
            if (name[k] == '_') name[k] = '-';
        size_t i = wml_pass_find(wml_str(name));
        if (!wml_json_is_bool(value)) ok = wml_fail(err, WML_E_USAGE, "%s: '%s' must be true or false", path, name);
        else if (i != SIZE_MAX) choice[i] = wml_json_bool(value, false) ? WML_PASS_ON : WML_PASS_OFF;
        else if (is_later(wml_str(name))) {
            if (wml_json_bool(value, false)) later[in->n_later++] = (struct wml_later){name, true};
        } else {
            const char *near = wml_similar(wml_str(name), later_name, WML_COUNT(later_name));
            ok = wml_fail(err, WML_E_USAGE, "%s: no capability is called '%s'", path, name);
            wml_hint(err, near ? "did you mean '%s'?" : "`winml optimize --list-capabilities` lists them%s", near ? near : "");
        }
    }
    wml_json_free(doc);
    return ok;
}

static void typed_choices(const struct optimize_args *a, enum wml_pass_choice *choice, struct wml_optimize_args *in,
                          struct wml_later *later)
{
    size_t i = 0;
#define PASS(id, name)                                                                                                 \
    if (a->on_##id.v) choice[i] = WML_PASS_ON;                                                                         \
    if (a->off_##id.v) choice[i] = WML_PASS_OFF;                                                                       \
    i++;
#include "passes/passes.def"
#undef PASS
#define LATER(id, name)                                                                                                \
    if (a->later_on_##id.v) later[in->n_later++] = (struct wml_later){name, true};
#include "cmd/optimize_later.def"
#undef LATER
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct optimize_args *a = call->args;
    struct wml_cmd_shapes shapes;
    enum wml_pass_choice *choice = WML_NEW_ARRAY(call->arena, enum wml_pass_choice, wml_n_passes);
    struct wml_later *later = WML_NEW_ARRAY(call->arena, struct wml_later, 2 * WML_COUNT(later_name) + 1);
    struct wml_optimize_args in = {
        .model = a->model.v, .output = a->output.v, .overwrite = a->overwrite.v, .dry_run = a->check.v,
        .reference_weights = strcmp(a->weights.v, "reference") == 0, .verify_target = a->verify_target.v,
        .verify_data = a->data.v,
        .verify = a->data.v ? WML_VERIFY_ON : !a->verify.set ? WML_VERIFY_AUTO : a->verify.v ? WML_VERIFY_ON : WML_VERIFY_OFF,
        .has_target = a->target.ep.v || a->target.device.v, .choice = choice, .later = later,
        .timeout_ms = (uint64_t)(a->timeout.v * 1000)};
    if (a->list.v || a->list_rewrites.v) {
        wml_flow_capabilities(call->report, a->common.verbose.v > 0);
        return true;
    }
    if (!in.model) return wml_fail(err, WML_E_USAGE, "Missing option '-m' / '--model'.");
    if (a->config.v && !read_config(a->config.v, choice, call->arena, &in, later, err)) return false;
    typed_choices(a, choice, &in, later);
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    if (!wml_cmd_shapes_parse(&a->shapes, &a->dims, call->arena, &shapes, err)) return false;
    in.shape = shapes.shape;
    in.n_shapes = shapes.n_shapes;
    in.dim = shapes.dim;
    in.n_dims = shapes.n_dims;
    return wml_flow_optimize(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_optimize = {
    .name = "optimize", .group = "Build", .summary = "Make an ONNX model's graph smaller, with the same answers",
    .about = "Works on the graph itself; ONNX Runtime on the CPU answers questions about types and constants and "
             "verifies the result. The target EP never takes part in saving: it is only asked, in a child process, "
             "where the nodes of the result would run. Capabilities are switched by --enable-NAME and --disable-NAME "
             "(see --list-capabilities).",
    .examples = "winml optimize -m model.onnx -o small.onnx\n"
                "winml optimize -m model.onnx --input-shape x=1,3,224,224 --ep qnn --device npu\n"
                "winml optimize -m model.onnx --check-optim -f json",
    .opts = opts, .args_size = sizeof(struct optimize_args), .formats = "text|json", .run = run,
};
