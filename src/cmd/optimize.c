/* winml optimize: a smaller graph that gives the same answers. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "cmd/shapes.h"
#include "flow/optimize.h"
#include "opset/opset.h"
#include "text/json.h"
#include "text/words.h"
#include "text/yaml.h"

struct optimize_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, config, weights, data, diff, ort_level;
    struct wml_target_args target;
    struct wml_opt_list shapes, dims;
    struct wml_opt_flag overwrite, verify, verify_target, list, check, list_rewrites, explain, reference, allow_unsafe;
    struct wml_opt_num timeout, clamp_min, clamp_max;
    struct wml_opt_int opset;
#define PASS(id, name) struct wml_opt_flag on_##id, off_##id;
#include "passes/passes.def"
#undef PASS
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
    WML_OPT_INT(0, "opset", opset, "N", 0, WML_OPSET_FIRST, WML_OPSET_LAST, NULL, "convert to this opset of ONNX first (11 to 25)"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON or YAML: capability names to true or false, opset: N"),
    WML_OPT_FLAG(0, "verify", verify, 0, NULL, "compare before and after on the CPU (default: up to 1 GiB that runs within 3 s)"),
    WML_OPT_STR(0, "input-data", data, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                "inputs to verify with: .npz, or a folder of .npy (default: seeded random ones)"),
    WML_OPT_FLAG(0, "verify-target", verify_target, 0, "yes", "load the result on the target and show where nodes run"),
    WML_OPT_STR(0, "weights", weights, "copy|reference", 0, "copy", "reference: the output points into the source's files"),
    WML_OPT_NUM(0, "timeout", timeout, "SECONDS", 0, 0, 1e9, "600", "limit for loading on the target; 0: none"),
    WML_OPT_FLAG('l', "list-capabilities", list, WML_OPT_SWITCH, NULL, "list what --enable-NAME and --disable-NAME take"),
    WML_OPT_FLAG(0, "check-optim", check, WML_OPT_SWITCH, NULL, "say what each capability would do, write nothing"),
    WML_OPT_FLAG(0, "list-rewrites", list_rewrites, WML_OPT_SWITCH, NULL, "list the pattern rewrites among them"),
    WML_OPT_NUM(0, "clamp-min", clamp_min, "N", 0, -1e300, 0, "-1000", "where clamp-constant-values puts what is below; switches it on"),
    WML_OPT_NUM(0, "clamp-max", clamp_max, "N", 0, 1, 1e300, "1000", "where clamp-constant-values puts what is above; switches it on"),
    WML_OPT_FLAG(0, "explain", explain, WML_OPT_SWITCH, NULL, "list what each pass did to which node, and what it left alone"),
    WML_OPT_STR(0, "diff", diff, "FILE.html", WML_OPT_PATH, NULL, "write before and after side by side"),
    WML_OPT_FLAG(0, "reference-defaults", reference, WML_OPT_SWITCH, NULL, "only what the Python tool does without flags"),
    WML_OPT_STR(0, "ort-level", ort_level, "basic|extended", 0, NULL, "ONNX Runtime's own optimiser at this level, and nothing else"),
    WML_OPT_FLAG(0, "allow-unsafe", allow_unsafe, WML_OPT_SWITCH, NULL, "make operators too that the target is not known to have"),
#define PASS(id, name)                                                                                                 \
    WML_OPT_FLAG(0, "enable-" name, on_##id, HIDDEN_SWITCH, NULL, "enable " name),                                     \
        WML_OPT_FLAG(0, "disable-" name, off_##id, HIDDEN_SWITCH, NULL, "disable " name),
#include "passes/passes.def"
#undef PASS
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static const char *similar_pass(struct wml_str name, struct wml_arena *arena)
{
    const char **names = WML_NEW_ARRAY(arena, const char *, wml_n_passes);
    for (size_t i = 0; i < wml_n_passes; i++) names[i] = wml_passes[i]->name;
    return wml_similar(name, names, wml_n_passes);
}

/* Without dashes and underscores, in small letters. */
static const char *squashed(struct wml_str name, struct wml_arena *arena)
{
    char *out = wml_arena_cstr(arena, name), *to = out;
    for (const char *c = out; *c; c++)
        if (*c != '-' && *c != '_') *to++ = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    *to = 0;
    return out;
}

/* Names of passes with `name` in them, those that begin with it first, as options; how many. */
static size_t names_with(struct wml_str name, const char *front, struct wml_arena *arena, struct wml_buf *out)
{
    enum { SHOWN = 4 };
    const char *part = squashed(name, arena);
    size_t n = 0;
    for (size_t i = 0; i < 2 * wml_n_passes; i++) {
        const char *pass = wml_passes[i % wml_n_passes]->name, *whole = squashed(wml_str(pass), arena);
        bool begins = wml_str_starts(wml_str(whole), part);
        if (strcmp(whole, part) == 0) {
            wml_buf_clear(out);
            wml_buf_fmt(out, "'%s%s'", front, pass);
            return 1;
        }
        if (!wml_str_has(wml_str(whole), part) || begins != (i < wml_n_passes)) continue;
        if (n < SHOWN) wml_buf_fmt(out, "%s'%s%s'", n ? ", " : "", front, pass);
        n++;
    }
    if (n > SHOWN) wml_buf_cstr(out, ", ...");
    return n;
}

/* --enable-NAME and --disable-NAME that do not exist. */
static void unknown_switch(struct wml_str typed, struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct wml_buf names = {0};
    const char *front = wml_str_starts(typed, "--enable-") ? "--enable-" : wml_str_starts(typed, "--disable-") ? "--disable-" : NULL;
    struct wml_str name = wml_str_sub(typed, front ? strlen(front) : 0, typed.len);
    if (!front) return;
    size_t n = name.len ? names_with(name, front, &arena, &names) : 0;
    const char *near = n ? NULL : similar_pass(name, &arena);
    if (near) wml_hint(err, "did you mean '%s%s'?", front, near);
    else if (n) wml_hint(err, "did you mean %s%s?", n > 1 ? "one of " : "", wml_buf_text(&names));
    else wml_hint(err, "`winml optimize --list-capabilities` lists them");
    wml_buf_release(&names);
    wml_arena_release(&arena);
}

/* One entry: a capability switched, or the opset. */
static bool read_entry(const char *path, struct wml_str key, const struct wml_json_val *value, enum wml_pass_choice *choice,
                       int64_t *opset, struct wml_arena *arena, struct wml_err *err)
{
    size_t i = wml_pass_find(key);
    if (wml_str_is(key, "opset")) {
        *opset = wml_json_int(value, 0);
        return (*opset >= WML_OPSET_FIRST && *opset <= WML_OPSET_LAST) ||
               wml_fail(err, WML_E_USAGE, "%s: 'opset' must be a whole number from %d to %d", path, WML_OPSET_FIRST, WML_OPSET_LAST);
    }
    if (i == SIZE_MAX) {
        const char *near = similar_pass(key, arena);
        wml_fail(err, WML_E_USAGE, "%s: no capability is called '%.*s'", path, WML_ARG(key));
        return wml_hint(err, near ? "did you mean '%s'?" : "`winml optimize --list-capabilities` lists them%s", near ? near : "");
    }
    if (!wml_json_is_bool(value)) return wml_fail(err, WML_E_USAGE, "%s: '%.*s' must be true or false", path, WML_ARG(key));
    choice[i] = wml_json_bool(value, false) ? WML_PASS_ON : WML_PASS_OFF;
    return true;
}

/* name: true|false, flat; names with dashes or underscores; opset: N. A build config gives its section `optim`. */
static bool read_config(const char *path, enum wml_pass_choice *choice, int64_t *opset, struct wml_arena *arena, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *value;
    struct wml_str file = wml_str(path);
    bool yaml = wml_str_ends(file, ".yaml") || wml_str_ends(file, ".yml");
    if (!yaml && !wml_str_ends(file, ".json")) {
        wml_fail(err, WML_E_FORMAT, "%s: neither .json nor .yaml", path);
        return wml_hint(err, "a config maps capability names to true or false");
    }
    if (!(yaml ? wml_yaml_load(path, &doc, err) : wml_json_load(path, &doc, err))) return false;
    const struct wml_json_val *root = wml_json_root(doc), *optim = wml_json_get(root, "optim");
    if (wml_json_is_object(optim)) root = optim;
    bool ok = wml_json_is_object(root) || wml_fail(err, WML_E_FORMAT, "%s: the root must be an object of capabilities", path);
    while (ok && wml_json_next(root, &it, &key, &value)) ok = read_entry(path, key, value, choice, opset, arena, err);
    wml_json_free(doc);
    return ok;
}

static bool typed_choices(const struct optimize_args *a, enum wml_pass_choice *choice, struct wml_err *err)
{
    size_t i = 0, both = SIZE_MAX;
#define PASS(id, name)                                                                                                 \
    if (a->on_##id.v && a->off_##id.v) both = i;                                                                       \
    if (a->on_##id.v) choice[i] = WML_PASS_ON;                                                                         \
    if (a->off_##id.v) choice[i] = WML_PASS_OFF;                                                                       \
    i++;
#include "passes/passes.def"
#undef PASS
    if (both == SIZE_MAX) return true;
    return wml_fail(err, WML_E_USAGE, "--enable-%s and --disable-%s contradict each other", wml_passes[both]->name, wml_passes[both]->name);
}

/* The Python tool's defaults, or ORT's optimiser alone: what is beyond them is off. */
static void narrow_choices(enum wml_pass_choice *choice, bool ort_only)
{
    static const char *const plumbing[] = {"unique-node-names", "opset-imports", "constant-nodes", "shape-inference", "dead-code-elimination"};
    for (size_t i = 0; i < wml_n_passes; i++) {
        bool keep = !ort_only && wml_passes[i]->reference_on;
        for (size_t k = 0; k < WML_COUNT(plumbing); k++) keep = keep || strcmp(wml_passes[i]->name, plumbing[k]) == 0;
        if (strcmp(wml_passes[i]->name, "ort-graph-optimization") == 0) keep = true;
        if (!keep) choice[i] = WML_PASS_OFF;
    }
}

/* Target and shapes. */
static bool aim(const struct optimize_args *a, struct wml_optimize_args *in, const struct wml_call *call, struct wml_err *err)
{
    struct wml_cmd_shapes shapes;
    if (!wml_cmd_target(&a->target, call->arena, &in->target, err)) return false;
    if (!wml_cmd_shapes_parse(&a->shapes, &a->dims, call->arena, &shapes, err)) return false;
    in->shape = shapes.shape;
    in->n_shapes = shapes.n_shapes;
    in->dim = shapes.dim;
    in->n_dims = shapes.n_dims;
    return true;
}

/* Every capability by itself, whatever was switched. */
static bool check_optim(const struct optimize_args *a, struct wml_optimize_args *in, const struct wml_call *call, struct wml_err *err)
{
    enum wml_pass_choice *typed = WML_NEW_ARRAY(call->arena, enum wml_pass_choice, wml_n_passes);
    if (!typed_choices(a, typed, err)) return false;
    bool any = a->config.v || a->output.v || a->diff.v || a->reference.v || a->ort_level.v;
    for (size_t i = 0; i < wml_n_passes; i++) any = any || typed[i] != WML_PASS_DEFAULT;
    if (any) wml_log(call->cx, WML_LOG_WARN, "--check-optim looks at every capability by itself: outputs, configs and switches are ignored");
    if (a->opset.set) in->opset = a->opset.v;
    return aim(a, in, call, err) && wml_flow_check_optim(in, call->cx, call->report, err);
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct optimize_args *a = call->args;
    enum wml_pass_choice *choice = WML_NEW_ARRAY(call->arena, enum wml_pass_choice, wml_n_passes);
    struct wml_optimize_args in = {
        .model = a->model.v, .output = a->output.v, .overwrite = a->overwrite.v,
        .reference_weights = strcmp(a->weights.v, "reference") == 0, .verify_target = a->verify_target.v,
        .verify_data = a->data.v,
        .verify = a->data.v ? WML_VERIFY_ON : !a->verify.set ? WML_VERIFY_AUTO : a->verify.v ? WML_VERIFY_ON : WML_VERIFY_OFF,
        .has_target = a->target.ep.v || a->target.device.v, .choice = choice, .allow_unsafe = a->allow_unsafe.v,
        .explain = a->explain.v, .verbose = a->common.verbose.v > 0, .diff = a->diff.v,
        .ort_level = !a->ort_level.v ? WML_ORT_LEVEL_LEAN : strcmp(a->ort_level.v, "basic") == 0 ? WML_ORT_LEVEL_BASIC
                                                                                                   : WML_ORT_LEVEL_EXTENDED,
        .clamp = a->clamp_min.from != WML_FROM_DEFAULT || a->clamp_max.from != WML_FROM_DEFAULT, .clamp_min = a->clamp_min.v, .clamp_max = a->clamp_max.v,
        .timeout_ms = (uint64_t)(a->timeout.v * 1000)};
    if (a->list.v || a->list_rewrites.v) {
        wml_flow_capabilities(call->report, a->common.verbose.v > 0, !a->list.v);
        return true;
    }
    if (!in.model) return wml_fail(err, WML_E_USAGE, "Missing option '-m' / '--model'.");
    if (a->check.v) return check_optim(a, &in, call, err);
    if (a->reference.v || a->ort_level.v) narrow_choices(choice, a->ort_level.v != NULL);
    if (a->config.v && !read_config(a->config.v, choice, &in.opset, call->arena, err)) return false;
    if (in.clamp) choice[wml_pass_find(WML_STR("clamp-constant-values"))] = WML_PASS_ON;
    if (!typed_choices(a, choice, err)) return false;
    if (a->opset.set) in.opset = a->opset.v;
    return aim(a, &in, call, err) && wml_flow_optimize(&in, call->cx, call->report, err);
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
    .opts = opts, .args_size = sizeof(struct optimize_args), .formats = "text|json", .run = run, .unknown = unknown_switch,
};
