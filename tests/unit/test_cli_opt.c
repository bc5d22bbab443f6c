/* The option parser: spellings, values, the documented messages, sources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "cli/near.h"

struct test_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, old;
    struct wml_target_args target;
    struct wml_opt_int runs;
    struct wml_opt_num rate;
    struct wml_opt_flag verify, overwrite, all;
    struct wml_opt_list shapes;
};

#define ARGS struct test_args
static const struct wml_opt rows[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "model"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "output"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_INT('n', "iterations", runs, "N", 0, 1, 1000, "100", "runs"),
    WML_OPT_NUM(0, "rate", rate, "X", 0, 0, 1e18, NULL, "rate"),
    WML_OPT_FLAG(0, "verify", verify, 0, "yes", "verify"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "overwrite"),
    WML_OPT_FLAG('a', "all", all, WML_OPT_SWITCH, NULL, "all"),
    WML_OPT_LIST(0, "input-shape", shapes, "NAME=1,3", 0, "shapes"),
    WML_OPT_STR(0, "old", old, "X", WML_OPT_IGNORED, NULL, "old"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

struct fixture {
    struct test_args args;
    struct wml_arena arena;
    struct wml_parse parse;
    struct wml_err err;
};

/* The words of one line, separated by blanks. */
static bool parse(struct fixture *f, const char *line)
{
    *f = (struct fixture){0};
    char *argv[32];
    int argc = 0;
    struct wml_str rest = wml_str(line), word;
    while (wml_str_split(&rest, ' ', &word))
        if (word.len) argv[argc++] = wml_arena_cstr(&f->arena, word);
    return wml_opt_parse(rows, &f->args, argc, argv, &f->arena, &f->parse, &f->err);
}

static void release(struct fixture *f)
{
    WML_VEC_RELEASE(&f->parse.ignored);
    wml_opt_release(rows, &f->args);
    wml_arena_release(&f->arena);
}

static void test_spellings(void **state)
{
    (void)state;
    struct fixture f;
    assert_true(parse(&f, "-vvdNPU --model=a=b.onnx --no-verify --iterations 7 -an=9 --input-shape x=1 "
                          "--execution-provider qnn --input-shape=y=2 --format json --old 3"));
    assert_string_equal(f.args.model.v, "a=b.onnx");
    assert_int_equal(f.args.common.verbose.v, 2);
    assert_string_equal(f.args.target.device.v, "npu");
    assert_string_equal(f.args.target.ep.v, "qnn");
    assert_int_equal(f.args.runs.v, 9);
    assert_int_equal(f.args.runs.from, WML_FROM_COMMAND_LINE);
    assert_false(f.args.verify.v);
    assert_true(f.args.all.v);
    assert_false(f.args.overwrite.v);
    assert_int_equal(f.args.overwrite.from, WML_FROM_DEFAULT);
    assert_int_equal(f.args.shapes.v.len, 2);
    assert_string_equal(f.args.shapes.v.at[1], "y=2");
    assert_int_equal(f.parse.ignored.len, 1);
    assert_string_equal(f.parse.ignored.at[0], "--old");
    release(&f);
    assert_true(parse(&f, "-m x -d gpu:1"));
    assert_string_equal(f.args.target.device.v, "gpu:1");
    release(&f);
    assert_true(parse(&f, "-m - -m ~/x --rate 2.5e-1"));
    assert_true(f.args.model.v[0] != '~');
    release(&f);
}

static void test_messages(void **state)
{
    (void)state;
    static const struct { const char *line, *message; } cases[] = {
        {"", "Missing option '-m' / '--model'."},
        {"-m", "Option '-m' requires an argument."},
        {"--model", "Option '--model' requires an argument."},
        {"-m --all", "Option '-m' requires an argument."},
        {"-m x --foo", "No such option '--foo'."},
        {"-m x -z", "No such option '-z'."},
        {"-m x -az", "No such option '-z'."},
        {"-m x --iteration 3", "No such option '--iteration'. Did you mean '--iterations'?"},
        {"-m x --ver", "No such option '--ver'. (Did you mean one of: '--verify', '--verbose'?)"},
        {"-m x -d tpu", "Invalid value for '-d' / '--device': 'tpu' is not one of 'auto', 'npu', 'gpu', 'cpu'."},
        {"-m x -o /no/such/file", "Invalid value for '-o' / '--output': Path '/no/such/file' does not exist."},
        {"-m x -n 0", "Invalid value for '-n' / '--iterations': 0 is not in the range 1<=x<=1000."},
        {"-m x --rate -1e-3x", "Invalid value for '--rate': '-1e-3x' is not a valid number."},
        {"-m x -n many", "Invalid value for '-n' / '--iterations': 'many' is not a valid integer."},
        {"-m x --rate -1", "Invalid value for '--rate': -1 is not in the range x>=0."},
        {"-m x --rate nan", "Invalid value for '--rate': 'nan' is not a valid number."},
        {"-m x y", "Got unexpected extra argument (y)"},
        {"-m x y -- -z", "Got unexpected extra arguments (y -z)"},
        {"-m x --all=1", "Option '--all' does not take a value."},
        {"-m x --no-all", "No such option '--no-all'. Did you mean '--all'?"},
    };
    for (size_t i = 0; i < WML_COUNT(cases); i++) {
        struct fixture f;
        assert_false(parse(&f, cases[i].line));
        assert_int_equal(f.err.code, WML_E_USAGE);
        assert_string_equal(f.err.msg, cases[i].message);
        release(&f);
    }
}

static void test_help_first(void **state)
{
    (void)state;
    struct fixture f;
    assert_true(parse(&f, "-h --nonsense"));
    assert_true(f.parse.help);
    release(&f);
    assert_true(parse(&f, "-vh"));
    assert_true(f.parse.help);
    release(&f);
    assert_false(parse(&f, "--nonsense -h"));
    release(&f);
}

static void test_sources(void **state)
{
    (void)state;
    struct fixture f;
    bool known;
    assert_true(parse(&f, "-m x --iterations 5 --input-shape a=1"));
#define SET(name, value, from) \
    wml_opt_set(rows, &f.args, WML_STR(name), WML_STR(value), from, &f.arena, &known, &f.err)
    assert_true(SET("iterations", "9", WML_FROM_CONFIG));
    assert_true(known);
    assert_int_equal(f.args.runs.v, 5);
    assert_true(SET("no_such", "9", WML_FROM_CONFIG));
    assert_false(known);
    assert_true(SET("verify", "false", WML_FROM_CONFIG));
    assert_false(f.args.verify.v);
    assert_true(SET("input_shape", "b=1", WML_FROM_CONFIG));
    assert_int_equal(f.args.shapes.v.len, 1);
    assert_true(SET("ep_options", "a=1", WML_FROM_CONFIG));
    assert_true(SET("ep_options", "b=1", WML_FROM_CONFIG));
    assert_int_equal(f.args.target.ep_options.v.len, 2);
    assert_false(SET("verify", "perhaps", WML_FROM_CONFIG));
    assert_string_equal(f.err.msg, "Invalid value for '--verify': 'perhaps' is not yes or no.");
    assert_false(SET("rate", "x", WML_FROM_ENV));
#undef SET
    release(&f);
}

static void test_pairs(void **state)
{
    (void)state;
    struct fixture f;
    struct wml_pairs pairs;
    assert_true(parse(&f, "-m x --ep-options a=1 --ep-options b= --ep-options a=2=3"));
    assert_true(wml_parse_pairs(&f.args.target.ep_options, "--ep-options", &f.arena, &pairs, &f.err));
    assert_int_equal(pairs.len, 2);
    assert_true(wml_str_is(pairs.key[0], "a"));
    assert_true(wml_str_is(pairs.value[0], "2=3"));
    assert_true(wml_str_is(pairs.value[1], ""));
    release(&f);
    assert_true(parse(&f, "-m x --ep-options =1"));
    assert_false(wml_parse_pairs(&f.args.target.ep_options, "--ep-options", &f.arena, &pairs, &f.err));
    assert_string_equal(f.err.msg, "Invalid value for '--ep-options': '=1' is not KEY=VALUE.");
    release(&f);
}

/* Values computed with Python's difflib.SequenceMatcher(None, a, b).ratio(). */
static void test_ratio(void **state)
{
    (void)state;
    static const struct { const char *a, *b; double ratio; } cases[] = {
        {"exprt", "export", 0.909091}, {"perf", "pref", 0.75}, {"optimise", "optimize", 0.875},
        {"", "", 1}, {"abc", "xyz", 0}, {"inspct", "inspect", 0.923077}, {"sys", "say", 0.666667},
    };
    for (size_t i = 0; i < WML_COUNT(cases); i++)
        assert_float_equal(wml_word_ratio(wml_str(cases[i].a), wml_str(cases[i].b)), cases[i].ratio, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings), cmocka_unit_test(test_messages), cmocka_unit_test(test_help_first),
        cmocka_unit_test(test_sources),   cmocka_unit_test(test_pairs),    cmocka_unit_test(test_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
