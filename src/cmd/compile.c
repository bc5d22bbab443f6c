/* winml compile: an ONNX model to an EPContext model for one execution provider. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/flow.h"

struct compile_args {
    struct wml_common_args common;
    struct wml_opt_list model;
    struct wml_opt_str output, output_dir, compiler, config, sdk;
    struct wml_target_args target;
    struct wml_opt_flag overwrite, validate, embed, isolate, cache, list;
    struct wml_opt_num timeout, min_cosine;
};

#define ARGS struct compile_args
static const struct wml_opt opts[] = {
    WML_OPT_LIST('m', "model", model, "FILE", WML_OPT_PATH | WML_OPT_EXISTS,
                 "ONNX model; repeat it for several models that share one context"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL,
                "output file (default: <model>_<provider>_ctx.onnx beside the model)"),
    WML_OPT_STR(0, "output-dir", output_dir, "DIR", WML_OPT_PATH, NULL, "folder of the outputs"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace existing outputs"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_FLAG(0, "embed", embed, 0, "no", "put the context into the model instead of a file beside it"),
    WML_OPT_FLAG(0, "validate", validate, 0, "yes",
                 "run the result once and compare it with the CPU result of the source"),
    WML_OPT_NUM(0, "min-cosine", min_cosine, "X", 0, -1, 1, "0.9", "validation fails below this cosine"),
    WML_OPT_STR(0, "compiler", compiler, "ort|ort_session|qairt", 0, "ort", "back end"),
    WML_OPT_FLAG(0, "list", list, WML_OPT_SWITCH, NULL, "list the back ends for the target"),
    WML_OPT_NUM(0, "timeout", timeout, "SECONDS", 0, 0, 1e9, "3600", "limit for the compiler; 0: none"),
    WML_OPT_FLAG(0, "isolate", isolate, 0, "yes", "run the compiler in a child process"),
    WML_OPT_FLAG(0, "use-cache", cache, 0, "yes", "reuse an earlier result of the same compilation"),
    WML_OPT_STR(0, "qnn-sdk-root", sdk, "DIR", WML_OPT_IGNORED, NULL, "for the back end qairt"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                "build config; its section `compile` is read"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool list_back_ends(const struct wml_call *call, const struct wml_target_spec *spec, struct wml_err *err)
{
    static const char *const name[] = {"ort", "ort_session", "qairt"};
    static const char *const about[] = {"ONNX Runtime's compile API with the EP's compiler",
                                        "a session that writes its contexts", "the vendor's SDK: not available in this version"};
    const struct wml_ep *ep = NULL;
    struct wml_item *root = wml_report_root(call->report);
    if (!wml_target_check(spec, &ep, err)) return false;
    struct wml_item *list = wml_item_array(root, "compilers", NULL);
    bool qnn = ep && ep->provider_token && strcmp(ep->provider_token, "qnn") == 0;
    for (size_t i = 0; i < (qnn ? 3u : 2u); i++) {
        wml_item_cstr(list, NULL, NULL, name[i]);
        wml_item_cstr(root, NULL, name[i], about[i]);
    }
    return true;
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct compile_args *a = call->args;
    struct wml_compile_args in = {
        .model = a->model.v.at, .n_models = a->model.v.len, .output = a->output.v,
        .output_dir = a->output_dir.v, .compiler = a->compiler.v, .overwrite = a->overwrite.v,
        .embed = a->embed.v, .validate = a->validate.v, .isolate = a->isolate.v, .cache = a->cache.v,
        .min_cosine = a->min_cosine.v, .min_cosine_typed = a->min_cosine.from != WML_FROM_DEFAULT, .timeout_ms = (uint64_t)(a->timeout.v * 1000)};
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    if (a->list.v) return list_back_ends(call, &in.target, err);
    if (!in.n_models) return wml_fail(err, WML_E_USAGE, "Missing option '-m' / '--model'.");
    return wml_flow_compile(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_compile = {
    .name = "compile", .group = "Build", .summary = "Compile an ONNX model for an NPU or GPU (EPContext)",
    .about = "The EP's compiler runs in a child process: if it crashes or hangs, the command says so, keeps a "
             "result that was finished, and leaves nothing half-written. Offline targets are named by EP "
             "options, so a Linux machine can compile for a Snapdragon laptop.",
    .examples = "winml compile -m model.onnx --ep qnn --device npu\n"
                "winml compile -m model.onnx --ep qnn --device npu --ep-options soc_model=60 --ep-options htp_arch=73\n"
                "winml compile -m a.onnx -m b.onnx --ep qnn --device npu --output-dir out",
    .opts = opts, .args_size = sizeof(struct compile_args), .formats = "text|json", .run = run,
};
