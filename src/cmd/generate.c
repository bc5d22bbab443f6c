/* winml generate: text from a GenAI bundle, as it comes; without a prompt, on a terminal, a chat. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/genai.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "text/words.h"

enum { PROMPT_MAX = 16 << 20 };

struct generate_args {
    struct wml_common_args common;
    struct wml_opt_str model, prompt, prompt_file, system, config;
    struct wml_target_args target;
    struct wml_opt_flag apply_template, compile;
    struct wml_opt_int max_new_tokens, top_k, seed;
    struct wml_opt_num temperature, top_p, repetition_penalty, compile_timeout, generation_timeout;
};

#define ARGS struct generate_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "DIR", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "GenAI bundle: the folder with genai_config.json"),
    WML_OPT_STR(0, "prompt", prompt, "TEXT", 0, NULL, "what is asked (default: standard input; on a terminal a chat)"),
    WML_OPT_STR(0, "prompt-file", prompt_file, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "the prompt, UTF-8, as it is"),
    WML_OPT_STR(0, "system", system, "TEXT", 0, NULL, "what the model is told before"),
    WML_OPT_FLAG(0, "apply-template", apply_template, 0, "yes", "ask in the form of the model's chats"),
    WML_OPT_INT(0, "max-new-tokens", max_new_tokens, "N", 0, 1, 1e7, "512", "tokens of an answer at most"),
    WML_OPT_NUM(0, "temperature", temperature, "T", 0, 0, 100, "0", "above 0: tokens are drawn, the more freely the higher"),
    WML_OPT_NUM(0, "top-p", top_p, "P", 0, 0, 1, "1", "draw among the likeliest tokens that together have this probability"),
    WML_OPT_INT(0, "top-k", top_k, "N", 0, 0, 1e6, "0", "draw among so many; 0: all"),
    WML_OPT_NUM(0, "repetition-penalty", repetition_penalty, "X", 0, 0.1, 10, "1", "above 1: what was said becomes less likely"),
    WML_OPT_INT(0, "seed", seed, "N", 0, 0, 1e9, NULL, "of the draws (default: another one each time)"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_bundle_target),
    WML_OPT_FLAG(0, "compile", compile, 0, "no", "compile the stages for the target first, into _compiled/ of the bundle"),
    WML_OPT_NUM(0, "compile-timeout", compile_timeout, "SECONDS", 0, 0, 1e9, "300", "limit for each stage; 0: none"),
    WML_OPT_NUM(0, "generation-timeout", generation_timeout, "SECONDS", 0, 0, 1e9, "0", "limit for loading and generating; 0: none"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: options of this command"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

struct output {
    const struct wml_call *call;
    bool ends_line; /* the last text ended one */
    bool any;
};

static void show(void *arg, struct wml_str text)
{
    struct output *o = arg;
    if (!text.len) return;
    if (!o->any) wml_end_progress(o->call->cx);
    o->any = true;
    o->ends_line = text.ptr[text.len - 1] == '\n';
    wml_term_write(1, text);
}

static void end_line(struct output *o)
{
    if (o->any && !o->ends_line) wml_term_write(1, WML_STR("\n"));
    o->any = false;
}

static bool ask(void *arg, struct wml_buf *question)
{
    struct output *o = arg;
    do {
        wml_buf_clear(question);
        wml_term_write(2, WML_STR("> "));
        if (!wml_stdin_line(question, PROMPT_MAX, o->call->cx->cancel)) return false;
    } while (!wml_str_trim(wml_buf_view(question)).len);
    return !wml_str_is(wml_str_trim(wml_buf_view(question)), "/exit") && !wml_str_is(wml_str_trim(wml_buf_view(question)), "/bye");
}

static void answered(void *arg, const char *trouble)
{
    struct output *o = arg;
    end_line(o);
    if (trouble) wml_log(o->call->cx, WML_LOG_WARN, "%s; the question is forgotten", trouble);
}

static bool read_stdin(const struct wml_call *call, struct wml_str *out, struct wml_err *err)
{
    struct wml_buf text = {0};
    bool ok = wml_stdin_read(&text, PROMPT_MAX, err);
    if (ok && !wml_str_trim(wml_buf_view(&text)).len) {
        wml_fail(err, WML_E_USAGE, "there is no prompt");
        ok = wml_hint(err, "give --prompt TEXT, or a text on standard input");
    }
    if (ok && !wml_utf8_valid(wml_buf_view(&text))) ok = wml_fail(err, WML_E_FORMAT, "the prompt on standard input is not UTF-8");
    if (ok) *out = wml_arena_str(call->arena, wml_buf_view(&text));
    wml_buf_release(&text);
    return ok;
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct generate_args *a = call->args;
    struct output o = {.call = call};
    if (a->config.v && !wml_cli_config(call, a->config.v, NULL, err)) return false;
    struct wml_genai_args in = {
        .bundle = a->model.v, .prompt = wml_str(a->prompt.v), .system = wml_str(a->system.v), .apply_template = a->apply_template.v,
        .max_new_tokens = (size_t)a->max_new_tokens.v, .iterations = 1, .compile = a->compile.v, .compile_timeout_s = a->compile_timeout.v,
        .generation_timeout_s = a->generation_timeout.v,
        .search = {.sample = a->temperature.v > 0, .temperature = a->temperature.v, .top_p = a->top_p.v, .top_k = a->top_k.v,
                   .repetition_penalty = a->repetition_penalty.v, .seed = a->seed.set ? a->seed.v : -1},
        .arg = &o};
    if (a->prompt.v && a->prompt_file.v) return wml_fail(err, WML_E_USAGE, "--prompt and --prompt-file cannot be combined");
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    if (a->prompt_file.v && !wml_cmd_text_file(a->prompt_file.v, call->arena, &in.prompt, err)) return false;
    bool given = a->prompt.v || a->prompt_file.v, talks = !given && !call->json && wml_term_is(0);
    if (!given && !talks && !read_stdin(call, &in.prompt, err)) return false;
    if (!call->json) {
        in.on_text = show;
        in.answered = answered;
    }
    if (talks) {
        in.ask = ask;
        if (!a->common.quiet.v) wml_term_write(2, WML_STR("/exit ends the chat\n"));
    }
    bool ok = wml_flow_generate(&in, call->cx, call->report, err);
    end_line(&o);
    return ok;
}

const struct wml_command wml_command_generate = {
    .name = "generate", .group = "Run", .summary = "Generate text with a GenAI bundle; without a prompt, chat with it",
    .about = "The bundle is loaded by a child process, so that a driver that crashes ends with a message. Without --temperature "
             "the likeliest token is taken, and the same prompt gives the same text.",
    .examples = "winml generate -m bundle --prompt \"What is the capital of France?\"\n"
                "winml generate -m bundle --ep qnn --device npu --compile --temperature 0.7\n"
                "winml generate -m bundle --system \"Answer in one sentence.\" -f json",
    .opts = opts, .args_size = sizeof(struct generate_args), .formats = "text|json", .run = run,
};
