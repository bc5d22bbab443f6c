/* The driver with commands of its own: results, failures, formats, flags before and after the command,
 * help, completion, the progress line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/console.h"
#include "cli/program.h"
#include "os/file.h"
#include "os/sys.h"
#include "text/json.h"

struct echo_args {
    struct wml_common_args common;
    struct wml_opt_str fail, config;
    struct wml_opt_int count;
    struct wml_opt_list words;
};

#define ARGS struct echo_args
static const struct wml_opt echo_opts[] = {
    WML_OPT_STR(0, "fail", fail, "usage|load|run|io|half|fallback", 0, NULL, "how to fail"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH, NULL, "config"),
    WML_OPT_INT('n', "count", count, "N", 0, 0, 100, "3", "a number"),
    WML_OPT_LIST('w', "word", words, "WORD", 0, "words"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool echo(const struct wml_call *call, struct wml_err *err)
{
    const struct echo_args *a = call->args;
    const char *f = a->fail.v ? a->fail.v : "";
    if (a->config.v && !wml_cli_config(call, a->config.v, "echo", err)) return false;
    assert_non_null(call->cx->cache_dir);
    assert_non_null(call->cx->log);
    if (strcmp(f, "usage") == 0) return wml_fail(err, WML_E_USAGE, "bad pair");
    if (strcmp(f, "load") == 0) {
        wml_fail(err, WML_E_LOAD, "no load");
        return wml_hint(err, "try another");
    }
    struct wml_item *root = wml_report_root(call->report);
    if (strcmp(f, "run") == 0) return wml_fail(err, WML_E_RUN, "no run");
    if (strcmp(f, "io") == 0) return wml_fail(err, WML_E_IO, "no disk");
    if (strcmp(f, "fallback") == 0) return wml_fail(err, WML_E_FALLBACK, "nodes fell back");
    wml_item_int(root, "count", "Count", a->count.v, WML_SHOW_PLAIN);
    wml_item_int(root, "level", NULL, call->cx->level, WML_SHOW_PLAIN);
    wml_item_bool(root, "native", NULL, call->cx->show_native);
    struct wml_item *words = wml_item_array(root, "words", NULL);
    for (size_t i = 0; i < a->words.v.len; i++) wml_item_cstr(words, NULL, NULL, a->words.v.at[i]);
    if (strcmp(f, "half") == 0) return wml_fail(err, WML_E_TRACE, "no trace");
    return true;
}

static const struct wml_command command_echo = {
    .name = "echo", .group = "Test", .summary = "Say it's [back]", .opts = echo_opts,
    .examples = "prog echo -n 1  # one", .args_size = sizeof(struct echo_args), .formats = "text|json|short",
    .run = echo,
};
static const struct wml_command command_later = {.name = "later", .summary = "not yet"};
static const struct wml_command *const commands[] = {&command_later, &command_echo};
static const struct wml_program program = {"prog", "1.2.3", "tests things", commands, 2, "quantize serve"};

static int run(struct wml_buf *out, const char *line)
{
    char words[512], *argv[32];
    int argc = 0;
    snprintf(words, sizeof words, "prog %s", line);
    for (char *at = words; *at;) {
        argv[argc++] = at;
        while (*at && *at != ' ') at++;
        if (*at) *at++ = '\0';
    }
    argv[argc] = NULL;
    struct wml_ctx cx = {0};
    wml_buf_clear(out);
    int status = wml_cli_run(&program, &cx, argc, argv, out);
    assert_null(cx.log);
    struct wml_json_doc *doc = NULL; /* JSON is compared on one line */
    if (wml_json_parse(wml_buf_view(out), &doc, NULL)) {
        wml_buf_clear(out);
        wml_json_print(wml_json_root(doc), out);
    }
    wml_json_free(doc);
    return status;
}

static void test_results(void **state)
{
    (void)state;
    static const struct { const char *line; int status; const char *out; } cases[] = {
        {"echo", 0, "Count  3\n"},
        {"-v echo -n 5 -f json", 0, "{\"count\":5,\"level\":2,\"native\":true,\"words\":[]}"},
        {"echo -f JSON -vv", 0, "{\"count\":3,\"level\":3,\"native\":true,\"words\":[]}"},
        {"--debug echo -f json -v", 0, "{\"count\":3,\"level\":3,\"native\":true,\"words\":[]}"},
        {"-vv -q echo -f json", 0, "{\"count\":3,\"level\":0,\"native\":false,\"words\":[]}"},
        {"-q echo -f json --fail io", 1,
         "{\"schema_version\":1,\"error\":{\"code\":1,\"kind\":\"runtime\",\"message\":\"no disk\",\"hint\":null}}"},
        {"echo --format json --fail load", 3,
         "{\"schema_version\":1,\"error\":{\"code\":3,\"kind\":\"model_load\",\"message\":\"no load\","
         "\"hint\":\"try another\"}}"},
        {"echo --fail run", 4, ""},
        {"echo --fail fallback", 5, ""},
        {"echo --fail usage", 2, ""},
        {"echo --fail half", 4, "Count  3\n"},
        {"echo --fail half -f json", 4,
         "{\"count\":3,\"level\":1,\"native\":false,\"words\":[],\"error\":{\"code\":4,\"kind\":\"op_trace\","
         "\"message\":\"no trace\",\"hint\":null}}"},
        {"--version", 0, "prog, version 1.2.3\n"},
        {"-v --version", 0, "prog, version 1.2.3\n"},
        {"later", 2, ""},
        {"serve", 2, ""},
        {"eco", 2, ""},
        {"--bogus echo", 2, ""},
        {"echo extra", 2, ""},
        {"echo -f xml", 2, ""},
        {"echo -f table", 0, "Count  3\n"},
        {"echo -f short", 0, "Count  3\n"},
        {"completion tcsh", 2, ""},
        {"completion", 2, ""},
    };
    struct wml_buf out = {0};
    for (size_t i = 0; i < WML_COUNT(cases); i++) {
        int status = run(&out, cases[i].line);
        if (status != cases[i].status) fail_msg("'%s' gave %d", cases[i].line, status);
        assert_string_equal(wml_buf_text(&out), cases[i].out);
    }
    wml_buf_release(&out);
}

/* Every usage error is a JSON document too, whatever was wrong. */
static void test_json_errors(void **state)
{
    (void)state;
    static const struct { const char *line, *message; } cases[] = {
        {"echo -f json --nope", "No such option '--nope'."},
        {"echo --nope --format=json", "No such option '--nope'."},
        {"ecko -fjson", "No such command 'ecko'. Did you mean 'echo'?"},
        {"later -f json", "Command 'later' is not available in this version."},
        {"quantize -f json", "Command 'quantize' is not available in this version."},
        {"echo -f json -n 101", "Invalid value for '-n' / '--count': 101 is not in the range 0<=x<=100."},
        {"echo -f json --fail", "Option '--fail' requires an argument."},
        {"echo -f json -c /no/such.json", NULL},
    };
    struct wml_buf out = {0};
    for (size_t i = 0; i < WML_COUNT(cases); i++) {
        struct wml_json_doc *doc = NULL;
        assert_int_equal(run(&out, cases[i].line), 2);
        assert_true(wml_json_parse(wml_buf_view(&out), &doc, NULL));
        const struct wml_json_val *e = wml_json_get(wml_json_root(doc), "error");
        assert_int_equal(wml_json_get_int(e, "code", 0), 2);
        assert_true(wml_str_is(wml_json_get_str(e, "kind"), "usage"));
        if (cases[i].message)
            assert_string_equal(wml_json_get_str(e, "message").ptr, cases[i].message);
        wml_json_free(doc);
    }
    wml_buf_release(&out);
}

static void test_config(void **state)
{
    (void)state;
    struct wml_buf out = {0}, dir = {0}, line = {0};
    assert_true(wml_dir_temp(NULL, "cli", &dir, NULL));
    wml_buf_fmt(&line, "%s/c.json", wml_buf_text(&dir));
    struct wml_arena arena = {0};
    const char *path = wml_arena_cstr(&arena, wml_buf_view(&line));
    assert_true(wml_file_write(path, WML_STR("{\"echo\": {\"count\": 8, \"word\": [\"a\", \"b\"], \"bogus\": 1}}"), NULL));
    assert_int_equal(run(&out, wml_arena_fmt(&arena, "-q echo -f json -c %s", path).ptr), 0);
    assert_string_equal(wml_buf_text(&out), "{\"count\":8,\"level\":0,\"native\":false,\"words\":[\"a\",\"b\"]}");
    assert_int_equal(run(&out, wml_arena_fmt(&arena, "-q echo -f json -n 4 -w x -c %s", path).ptr), 0);
    assert_string_equal(wml_buf_text(&out), "{\"count\":4,\"level\":0,\"native\":false,\"words\":[\"x\"]}");
    static const char *const bad[] = {"{", "[]", "{\"echo\": []}", "{\"echo\": {\"count\": 1000}}"};
    for (size_t i = 0; i < WML_COUNT(bad); i++) {
        assert_true(wml_file_write(path, wml_str(bad[i]), NULL));
        assert_int_equal(run(&out, wml_arena_fmt(&arena, "-q echo -c %s", path).ptr), 2);
    }
    wml_dir_remove(wml_buf_text(&dir));
    wml_arena_release(&arena);
    wml_buf_release(&out);
    wml_buf_release(&dir);
    wml_buf_release(&line);
}

static void test_outputs(void **state)
{
    (void)state;
    struct wml_buf dir = {0};
    struct wml_arena arena = {0};
    struct wml_err err = {0};
    assert_true(wml_dir_temp(NULL, "cli", &dir, NULL));
#define AT(name) wml_arena_fmt(&arena, "%s/%s", wml_buf_text(&dir), name).ptr
    assert_true(wml_check_output("Output file", NULL, false, NULL, &err));
    assert_true(wml_check_output("Output file", AT("deep/er/new.onnx"), false, NULL, &err));
    assert_true(wml_dir_exists(AT("deep/er")));
    assert_true(wml_file_write(AT("old.onnx"), WML_STR("x"), NULL));
    assert_false(wml_check_output("Output file", AT("old.onnx"), false, NULL, &err));
    assert_int_equal(err.code, WML_E_EXISTS);
    assert_true(wml_str_has(wml_str(err.msg), "old.onnx' already exists. Re-run with --overwrite to replace it."));
    assert_true(wml_check_output("Output file", AT("old.onnx"), true, NULL, &err));
    assert_false(wml_check_output("Output file", AT("deep/../old.onnx"), true, AT("old.onnx"), &err));
    assert_true(wml_str_has(wml_str(err.msg), "is the input itself"));
    assert_false(wml_check_output("Output", AT("deep"), false, NULL, &err));
    assert_true(wml_str_has(wml_str(err.msg), "Output directory '"));
    assert_true(wml_check_output("Output", AT("deep/er"), false, NULL, &err));
    assert_false(wml_check_output("Output file", AT("old.onnx/x.onnx"), false, NULL, &err));
#undef AT
    wml_dir_remove(wml_buf_text(&dir));
    wml_arena_release(&arena);
    wml_buf_release(&dir);
}

static void test_help(void **state)
{
    (void)state;
    struct wml_buf out = {0}, same = {0};
    assert_int_equal(run(&out, "-q"), 0);
    assert_true(wml_str_has(wml_buf_view(&out), "Usage: prog [OPTIONS] COMMAND [ARGS]..."));
    assert_true(wml_str_has(wml_buf_view(&out), "\nTest:\n  echo        Say it's [back]\n"));
    assert_false(wml_str_has(wml_buf_view(&out), "later"));
    assert_false(wml_str_has(wml_buf_view(&out), "--debug"));
    assert_int_equal(run(&out, "echo --help"), 0);
    assert_true(wml_str_has(wml_buf_view(&out), "  -n, --count N           a number [default: 3]\n"));
    assert_true(wml_str_has(wml_buf_view(&out), "  -w, --word WORD         words [repeatable]\n"));
    assert_true(wml_str_has(wml_buf_view(&out), "  -f, --format text|json|short\n"));
    assert_true(wml_str_has(wml_buf_view(&out), "  prog echo -n 1  # one\n"));
    assert_int_equal(run(&same, "help echo"), 0);
    assert_string_equal(wml_buf_text(&out), wml_buf_text(&same));
    struct wml_str rest = wml_buf_view(&out), line;
    while (wml_str_split(&rest, '\n', &line)) assert_true(line.len <= 80);
    wml_buf_release(&out);
    wml_buf_release(&same);
}

static void test_completion(void **state)
{
    (void)state;
    static const char *const shells[] = {"bash", "zsh", "fish", "powershell"};
    struct wml_buf out = {0}, line = {0};
    for (size_t i = 0; i < WML_COUNT(shells); i++) {
        wml_buf_clear(&line);
        wml_buf_fmt(&line, "completion %s", shells[i]);
        assert_int_equal(run(&out, wml_buf_text(&line)), 0);
        assert_true(wml_str_has(wml_buf_view(&out), "count"));
        assert_true(wml_str_has(wml_buf_view(&out), "fallback"));
        assert_false(wml_str_has(wml_buf_view(&out), "later"));
    }
    wml_buf_release(&out);
    wml_buf_release(&line);
}

static void test_colour_rules(void **state)
{
    (void)state;
    static const char *const names[] = {"NO_COLOR", "FORCE_COLOR", "TERM", "CI"};
    static const struct { const char *value[4]; bool terminal, colour; } cases[] = {
        {{NULL, NULL, "xterm", NULL}, true, true},   {{NULL, NULL, "xterm", NULL}, false, false},
        {{"1", NULL, "xterm", NULL}, true, false},   {{"", NULL, "xterm", NULL}, true, true},
        {{NULL, "1", "dumb", "true"}, false, true},  {{"1", "1", "xterm", NULL}, true, false},
        {{NULL, NULL, "dumb", NULL}, true, false},   {{NULL, NULL, "xterm", "true"}, true, false},
        {{NULL, "0", "xterm", NULL}, false, false},
    };
    for (size_t i = 0; i < WML_COUNT(cases); i++) {
        for (size_t k = 0; k < 4; k++) wml_env_set(names[k], cases[i].value[k]);
        if (wml_console_colour(cases[i].terminal) != cases[i].colour) fail_msg("case %zu", i);
    }
    wml_env_set("NO_COLOR", NULL);
}

static void test_progress_line(void **state)
{
    (void)state;
    struct wml_console c = {.stage = "Running", .item = "ocr.onnx", .unit = "runs", .done = 420, .total = 1000,
                            .noted_ns = 3000000000};
    struct wml_buf out = {0};
    wml_console_line(&c, 3000000000, 120, &out);
    assert_string_equal(wml_buf_text(&out), "Running  ━━━━━━━━━━                42%  420/1,000 runs  140 runs/s  "
                                            "4 s left  ocr.onnx");
    wml_buf_clear(&out);
    wml_console_line(&c, 3000000000, 50, &out);
    assert_string_equal(wml_buf_text(&out), "Running  420/1,000 runs  140 runs/s  4 s left");
    wml_buf_clear(&out);
    wml_console_line(&c, 3000000000, 12, &out);
    assert_string_equal(wml_buf_text(&out), "Running");
    wml_buf_clear(&out);
    c = (struct wml_console){.stage = "Compiling", .item = "m.onnx"};
    wml_console_line(&c, 2000000000, 40, &out);
    assert_string_equal(wml_buf_text(&out), "⠋ Compiling  2 s  m.onnx");
    wml_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),      cmocka_unit_test(test_json_errors),
        cmocka_unit_test(test_config),       cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_completion),   cmocka_unit_test(test_colour_rules),
        cmocka_unit_test(test_progress_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
