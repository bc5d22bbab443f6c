/* winml run: one inference from texts or arrays. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/run.h"

struct run_args {
    struct wml_common_args common;
    struct wml_opt_str model, file, text, task, tokenizer, output;
    struct wml_opt_list input, param;
    struct wml_target_args target;
    struct wml_opt_flag schema, overwrite;
};

#define ARGS struct run_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "ONNX model, or a folder with one"),
    WML_OPT_STR(0, "task", task, "TASK", 0, NULL, "what the model is for; without one it takes and gives arrays"),
    WML_OPT_STR('t', "text", text, "TEXT", 0, NULL, "the task's only text"),
    WML_OPT_LIST('I', "input", input, "NAME=VALUE", 0, "an input by its name: a text, or JSON"),
    WML_OPT_STR('f', "file", file, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "without a task: .npz or .npy with the model's inputs"),
    WML_OPT_LIST('P', "param", param, "KEY=VALUE", 0, "a parameter of the task"),
    WML_OPT_STR(0, "tokenizer", tokenizer, "DIR", WML_OPT_PATH, NULL, "folder or file of the model's tokenizer (default: beside the model)"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_FLAG(0, "schema", schema, WML_OPT_SWITCH, NULL, "print the inputs and parameters, and run nothing"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "write the result to this file as well"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace an existing output"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

/* NAME=VALUE rows; a value is taken as it is. */
static bool pairs(const struct wml_opt_list *l, const char *option, struct wml_arena *arena, struct wml_pair **out, struct wml_err *err)
{
    *out = WML_NEW_ARRAY(arena, struct wml_pair, l->v.len + 1);
    for (size_t i = 0; i < l->v.len; i++) {
        struct wml_str s = wml_str(l->v.at[i]);
        size_t equals = wml_str_find(s, '=');
        if (equals == SIZE_MAX || !equals) return wml_fail(err, WML_E_USAGE, "Invalid value for '%s': '%s' is not NAME=VALUE.", option, l->v.at[i]);
        (*out)[i] = (struct wml_pair){wml_arena_cstr(arena, wml_str_sub(s, 0, equals)), l->v.at[i] + equals + 1};
    }
    return true;
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct run_args *a = call->args;
    struct wml_pair *input, *param;
    if (!pairs(&a->input, "--input", call->arena, &input, err) || !pairs(&a->param, "--param", call->arena, &param, err)) return false;
    struct wml_run_args in = {.model = a->model.v, .task = a->task.v, .tokenizer = a->tokenizer.v, .text = a->text.v, .file = a->file.v,
                              .input = input, .n_inputs = a->input.v.len, .param = param, .n_params = a->param.v.len, .schema = a->schema.v,
                              .output = a->output.v, .overwrite = a->overwrite.v, .json = call->json};
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    return wml_flow_run(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_run = {
    .name = "run", .group = "Run", .summary = "Run a model once, on texts or arrays",
    .about = "The model runs in a child process. With a task, inputs are what people have and results what they want: "
             "feature-extraction, sentence-similarity. Without one, inputs and outputs are arrays. --schema lists what can be given.",
    .examples = "winml run -m model.onnx --schema\n"
                "winml run -m minilm.onnx --tokenizer minilm --task sentence-similarity -I text_1=\"A cat.\" -I text_2=\"A kitten.\"\n"
                "winml run -m minilm.onnx --tokenizer minilm --task feature-extraction --text \"A cat.\" -P pooling=mean --format json",
    .opts = opts, .args_size = sizeof(struct run_args), .formats = "text|json", .run = run,
};
