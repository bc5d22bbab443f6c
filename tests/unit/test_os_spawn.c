/* Child processes. This program is its own child: with a role as first argument it plays that role. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include "base/num.h"
#include "os/file.h"
#include "os/map.h"
#include "os/path.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "os/thread.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static char program[1024], dir[512];

/* --- roles of the child --- */

static intptr_t channel;

static void say(const char *text)
{
    wml_channel_write(channel, wml_str(text));
    wml_channel_write(channel, WML_STR("\n"));
}

static int role_echo(int argc, char **argv)
{
    struct wml_buf input = {0}, env = {0};
    struct wml_err err = {0};
    for (int i = 2; i < argc; i++) say(argv[i]);
    if (!wml_stdin_read(&input, 1 << 30, &err)) return 9;
    char text[64];
    snprintf(text, sizeof text, "input %zu %02x", input.len, input.len ? (unsigned char)input.ptr[input.len - 1] : 0);
    say(text);
    wml_env("WML_TEST", &env);
    say(wml_buf_text(&env));
    say(wml_env_is_set("WINML_CHANNEL") ? "channel told" : "channel hidden");
    say(wml_file_exists("marker") ? "in folder" : "elsewhere");
    printf("to stdout\n");
    fflush(stdout);
    fprintf(stderr, "to stderr\n");
    wml_buf_release(&input);
    wml_buf_release(&env);
    return 3;
}

static int role_flood(int argc, char **argv)
{
    bool endless = argc > 2 && strcmp(argv[2], "endless") == 0;
    char line[1001];
    memset(line, 'f', sizeof line);
    line[1000] = '\n';
    for (int i = 0; endless || i < 20000; i++) fwrite(line, 1, sizeof line, i & 1 ? stderr : stdout);
    fflush(stdout);
    fprintf(stderr, "END");
    return 0;
}

/* Says a word, then waits; with "mute" all pipes are closed first. */
static int role_hang(int argc, char **argv)
{
    char pid[32];
    snprintf(pid, sizeof pid, "pid %d", wml_pid());
    say(pid);
    if (argc > 2 && strcmp(argv[2], "mute") == 0) {
        fclose(stdin);
        fclose(stdout);
        fclose(stderr);
#ifndef _WIN32
        close((int)channel);
#endif
    }
    wml_sleep_ms(60000);
    return 0;
}

static int role_slow(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 4; i++) {
        say("step");
        wml_sleep_ms(150);
    }
    return 0;
}

/* Says what it hears, line by line. */
static int role_talk(int argc, char **argv)
{
    struct wml_buf line = {0};
    (void)argc, (void)argv;
    while (wml_stdin_line(&line, 1000, NULL)) {
        say(wml_buf_text(&line));
        wml_buf_clear(&line);
    }
    say("no more");
    wml_buf_release(&line);
    return 0;
}

static int role_beat(int argc, char **argv)
{
    struct wml_err err = {0};
    for (int i = 0; argc > 2 && i < 1500; i++) {
        wml_file_append(argv[2], WML_STR("x"), &err);
        if (i == 3) say("beating");
        wml_sleep_ms(20);
    }
    return 0;
}

static uint64_t pass_on(void *arg, struct wml_str line)
{
    (void)arg;
    char text[100];
    snprintf(text, sizeof text, "%.*s", WML_ARG(line));
    say(text);
    return 0;
}

/* Starts a child of its own and passes its words on. */
static int role_nest(int argc, char **argv)
{
    const char *args[] = {program, "beat", argc > 2 ? argv[2] : "", NULL};
    struct wml_spawn s = {.program = program, .argv = args, .channel = true};
    struct wml_child_hooks hooks = {.on_line = pass_on};
    struct wml_child_result r = {0};
    struct wml_err err = {0};
    wml_child_run(&s, &hooks, &r, &err);
    wml_child_result_release(&r);
    return 0;
}

static void write_mark(void)
{
    struct wml_err err = {0};
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(dir), WML_STR("atexit"));
    wml_file_write(wml_buf_text(&path), WML_STR("ran"), &err);
}

static int role_exit(int argc, char **argv)
{
    (void)argc, (void)argv;
    atexit(write_mark);
    printf("buffered");
    wml_exit_now(7);
}

static int role_crash(int argc, char **argv)
{
    (void)argc, (void)argv;
    fprintf(stderr, "last words");
#ifdef _WIN32
    RaiseException(EXCEPTION_ACCESS_VIOLATION, EXCEPTION_NONCONTINUABLE, 0, NULL);
#else
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
#endif
    return 0;
}

#ifndef _WIN32
/* Leaves a process behind that has our pipes; "away": in a session of its own. */
static int role_orphan(int argc, char **argv)
{
    if (fork() == 0) {
        if (argc > 3 && strcmp(argv[3], "away") == 0) {
            setsid();
            wml_sleep_ms(3000);
        } else role_beat(argc, argv);
        _exit(0);
    }
    wml_sleep_ms(200);
    return 0;
}

static int role_interrupt(int argc, char **argv)
{
    struct wml_err err = {0};
    struct wml_out o = {0};
    char pid[32];
    const atomic_bool *flag = wml_interrupt_watch();
    if (argc < 3 || !wml_out_open(&o, argv[2], &err)) return 9;
    snprintf(pid, sizeof pid, "%d", wml_pid());
    say(pid);
    while (!atomic_load(flag)) wml_sleep_ms(5);
    kill(getpid(), SIGINT); /* the same one, passed on by a wrapper */
    wml_sleep_ms(250);
    say(pid);
    wml_sleep_ms(20000);
    return 0;
}

static int role_fds(int argc, char **argv)
{
    struct wml_dir_list l = {0};
    struct wml_err err = {0};
    char text[32];
    (void)argc, (void)argv;
    if (!wml_dir_list("/proc/self/fd", &l, &err)) return 9;
    snprintf(text, sizeof text, "%zu", l.v.len);
    say(text);
    wml_dir_list_release(&l);
    return 0;
}
#endif

static const struct {
    const char *name;
    int (*play)(int argc, char **argv);
} roles[] = {
    {"echo", role_echo}, {"flood", role_flood}, {"hang", role_hang}, {"slow", role_slow}, {"talk", role_talk},
    {"beat", role_beat}, {"nest", role_nest},   {"exit", role_exit}, {"crash", role_crash},
#ifndef _WIN32
    {"orphan", role_orphan}, {"interrupt", role_interrupt}, {"fds", role_fds},
#endif
};

/* --- the tests --- */

struct heard {
    struct wml_buf lines; /* each with its newline */
    uint64_t answer;      /* what on_line returns */
    int signal;           /* sent to the pid in a line */
    struct wml_child_result r;
    struct wml_err err;
};

static uint64_t on_line(void *arg, struct wml_str line)
{
    struct heard *h = arg;
    wml_buf_str(&h->lines, line);
    wml_buf_char(&h->lines, '\n');
#ifndef _WIN32
    int64_t pid = 0;
    if (h->signal && wml_parse_i64(line, &pid)) kill((pid_t)pid, h->signal);
#endif
    return h->answer;
}

static bool run(struct heard *h, const char *const *argv, struct wml_spawn s, uint64_t timeout_ms, const atomic_bool *cancel)
{
    struct wml_child_hooks hooks = {.arg = h, .on_line = on_line, .timeout_ms = timeout_ms, .cancel = cancel};
    s.program = program;
    s.argv = argv;
    s.channel = true;
    wml_buf_clear(&h->lines);
    return wml_child_run(&s, &hooks, &h->r, &h->err);
}

static void done(struct heard *h)
{
    wml_buf_release(&h->lines);
    wml_child_result_release(&h->r);
}

static const char *in(const char *name)
{
    static char text[4][2048];
    static unsigned turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof text[turn], "%s/%s", dir, name);
    return text[turn];
}

static void test_echo(void **state)
{
    (void)state;
    struct heard h = {0};
    struct wml_err err = {0};
    static const char *const env[] = {"WML_TEST=t\xc3\xa9st=1", "WINML_OTHER=", NULL};
    const char *argv[] = {program, "echo", "a b", "", "q\"uo\\\"te", "back\\", "back slash\\", "\xe6\xa8\xa1", "*", "%PATH%", "'", NULL};
    char *input = malloc(5 << 20);
    memset(input, 'i', 5 << 20);
    input[(5 << 20) - 1] = (char)0xee;
    assert_true(wml_file_write(in("marker"), WML_STR("x"), &err));
    bool ok = run(&h, argv, (struct wml_spawn){.input = {input, 5 << 20}, .env = env, .dir = dir}, 60000, NULL);
    if (!ok) fail_msg("%s", h.err.msg);
    assert_string_equal(wml_buf_text(&h.lines),
                        "a b\n\nq\"uo\\\"te\nback\\\nback slash\\\n\xe6\xa8\xa1\n*\n%PATH%\n'\n"
                        "input 5242880 ee\nt\xc3\xa9st=1\nchannel hidden\nin folder\n");
    assert_int_equal(h.r.how, WML_CHILD_EXIT);
    assert_int_equal(h.r.status, 3);
    assert_non_null(strstr(wml_buf_text(&h.r.output), "to stdout"));
    assert_non_null(strstr(wml_buf_text(&h.r.output), "to stderr"));
    assert_true(h.r.wall_ms > 0 && h.r.peak_rss > 100000);
    struct wml_buf how = {0};
    wml_child_describe(&h.r, &how);
    assert_string_equal(wml_buf_text(&how), "exit status 3");
    wml_buf_release(&how);
    free(input);
    done(&h);
}

static void test_input_ignored(void **state)
{
    (void)state;
    struct heard h = {0};
    char *input = calloc(1, 1 << 20);
    const char *argv[] = {program, "slow", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){.input = {input, 1 << 20}}, 60000, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 0);
    free(input);
    done(&h);
}

/* The next line is given when the last one came back; then nothing for a while, then the end. */
static bool answer(void *arg, struct wml_buf *out)
{
    struct heard *h = arg;
    static const char *const said[] = {"first\n", "first\nsecond one\n", "first\nsecond one\n\nlast\n"};
    static const char *const next[] = {"second one\n", "\nlast\n"};
    for (size_t i = 0; i < WML_COUNT(next); i++)
        if (strcmp(wml_buf_text(&h->lines), said[i]) == 0 && h->signal == (int)i) {
            wml_buf_cstr(out, next[i]);
            h->signal++;
        }
    return strcmp(wml_buf_text(&h->lines), said[2]) != 0;
}

static void test_talk(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *argv[] = {program, "talk", NULL};
    struct wml_spawn s = {.program = program, .argv = argv, .channel = true, .input = WML_STR("first\n")};
    struct wml_child_hooks hooks = {.arg = &h, .on_line = on_line, .more = answer, .timeout_ms = 20000};
    h.signal = 0;
    assert_true(wml_child_run(&s, &hooks, &h.r, &h.err));
    assert_string_equal(wml_buf_text(&h.lines), "first\nsecond one\n\nlast\nno more\n");
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 0);
    done(&h);
}

static void count_quiet(void *arg, uint64_t ms)
{
    struct heard *h = arg;
    char text[32];
    snprintf(text, sizeof text, "%s", ms >= 300 ? "quiet" : "too early");
    wml_buf_cstr(&h->lines, text);
}

static void test_quiet(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *hang[] = {program, "hang", NULL}, *slow[] = {program, "slow", NULL};
    const atomic_bool never = false;
    struct wml_spawn s = {.program = program, .argv = slow, .channel = true};
    struct wml_child_hooks hooks = {.arg = &h, .on_line = on_line, .cancel = &never, .on_quiet = count_quiet, .quiet_ms = 400, .timeout_ms = 1700};
    assert_true(wml_child_run(&s, &hooks, &h.r, &h.err));
    assert_string_equal(wml_buf_text(&h.lines), "step\nstep\nstep\nstep\n");
    wml_buf_clear(&h.lines);
    wml_child_result_release(&h.r);
    s.argv = hang;
    assert_true(wml_child_run(&s, &hooks, &h.r, &h.err));
    assert_true(wml_str_ends(wml_buf_view(&h.lines), "\nquietquiet") || wml_str_ends(wml_buf_view(&h.lines), "\nquietquietquiet") ||
                wml_str_ends(wml_buf_view(&h.lines), "\nquietquietquietquiet"));
    done(&h);
}

static void test_flood(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *argv[] = {program, "flood", NULL}, *endless[] = {program, "flood", "endless", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){0}, 60000, NULL));
    assert_int_equal(h.r.output.len, 65536);
    assert_true(h.r.how == WML_CHILD_EXIT && wml_str_ends(wml_buf_view(&h.r.output), "END"));
    wml_child_result_release(&h.r);
    assert_true(run(&h, argv, (struct wml_spawn){.keep_output = 5}, 60000, NULL));
    assert_string_equal(wml_buf_text(&h.r.output), "f\nEND");
    wml_child_result_release(&h.r);
    assert_true(run(&h, endless, (struct wml_spawn){0}, 500, NULL));
    assert_true(h.r.how == WML_CHILD_TIMEOUT && h.r.wall_ms > 450 && h.r.wall_ms < 10000);
    done(&h);
}

static void test_timeout(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *argv[] = {program, "hang", NULL}, *mute[] = {program, "hang", "mute", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){0}, 1500, NULL));
    assert_true(h.r.how == WML_CHILD_TIMEOUT && h.r.wall_ms >= 1500 && h.r.wall_ms < 10000);
    assert_true(wml_str_starts(wml_buf_view(&h.lines), "pid "));
    wml_child_result_release(&h.r);
    assert_true(run(&h, mute, (struct wml_spawn){0}, 1500, NULL));
    assert_true(h.r.how == WML_CHILD_TIMEOUT && h.r.wall_ms >= 1500 && h.r.wall_ms < 10000);
    done(&h);
}

/* Every line gives the child more time: together more than the first limit. */
static void test_more_time(void **state)
{
    (void)state;
    struct heard h = {.answer = 5000};
    const char *argv[] = {program, "slow", NULL}, *hang[] = {program, "hang", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){0}, 4000, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 0);
    wml_child_result_release(&h.r);
    h.answer = 300;
    assert_true(run(&h, hang, (struct wml_spawn){0}, 0, NULL));
    assert_true(h.r.how == WML_CHILD_TIMEOUT && h.r.wall_ms < 10000);
    done(&h);
}

static void set_later(void *arg)
{
    wml_sleep_ms(300);
    atomic_store((atomic_bool *)arg, true);
}

static void test_cancel(void **state)
{
    (void)state;
    struct heard h = {0};
    atomic_bool cancel = false;
    struct wml_thread *t = NULL;
    const char *argv[] = {program, "hang", NULL};
    assert_true(wml_thread_start(&t, set_later, &cancel, &h.err));
    assert_true(run(&h, argv, (struct wml_spawn){0}, 0, &cancel));
    assert_true(h.r.how == WML_CHILD_CANCEL && h.r.wall_ms < 10000);
    wml_thread_join(t);
    done(&h);
}

static void test_crash(void **state)
{
    (void)state;
    struct heard h = {0};
    struct wml_buf how = {0};
    const char *argv[] = {program, "crash", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){0}, 60000, NULL));
    assert_int_equal(h.r.how, WML_CHILD_SIGNAL);
    wml_child_describe(&h.r, &how);
#ifdef _WIN32
    assert_string_equal(wml_buf_text(&how), "exception 0xC0000005 (access violation)");
#else
    assert_string_equal(wml_buf_text(&how), "SIGABRT");
#endif
    assert_non_null(strstr(wml_buf_text(&h.r.output), "last words"));
    wml_buf_release(&how);
    done(&h);
}

static void test_exit_now(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *argv[] = {program, "exit", NULL};
    assert_true(run(&h, argv, (struct wml_spawn){.dir = dir}, 60000, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 7);
    assert_string_equal(wml_buf_text(&h.r.output), "buffered");
    assert_false(wml_file_exists(in("atexit")));
    done(&h);
}

static void test_not_there(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_child_result r = {0};
    struct wml_child_hooks hooks = {0};
    const char *argv[] = {"x", NULL}, *self[] = {program, "echo", NULL};
    char absent[2048];
    snprintf(absent, sizeof absent, "%s", in("no such program"));
    assert_false(wml_child_run(&(struct wml_spawn){.program = absent, .argv = argv}, &hooks, &r, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "no such program"));
    wml_child_result_release(&r);
    assert_false(wml_child_run(&(struct wml_spawn){.program = program, .argv = self, .dir = absent}, &hooks, &r, &err));
    wml_child_result_release(&r);
}

static void is_still(const char *path)
{
    wml_sleep_ms(300);
    uint64_t size = wml_file_info(path).size;
    wml_sleep_ms(400);
    assert_true(size > 0);
    assert_int_equal(wml_file_info(path).size, size);
}

/* When the parent is killed its child goes too, although it has a group of its own. */
static void test_parent_death(void **state)
{
    (void)state;
    struct heard h = {.answer = 100};
    const char *argv[] = {program, "nest", in("beat.nest"), NULL};
    assert_true(run(&h, argv, (struct wml_spawn){0}, 30000, NULL));
    assert_int_equal(h.r.how, WML_CHILD_TIMEOUT);
    assert_string_equal(wml_buf_text(&h.lines), "beating\n");
    is_still(in("beat.nest"));
    done(&h);
}

#ifndef _WIN32
static void test_orphans(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *near[] = {program, "orphan", in("beat.orphan"), NULL}, *away[] = {program, "orphan", "", "away", NULL};
    assert_true(run(&h, near, (struct wml_spawn){0}, 0, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 0 && h.r.wall_ms < 5000);
    is_still(in("beat.orphan"));
    wml_child_result_release(&h.r);
    assert_true(run(&h, away, (struct wml_spawn){0}, 0, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 0);
    assert_true(h.r.wall_ms < 2500); /* not the three seconds that it holds our pipes */
    done(&h);
}

static void test_interrupt(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        struct heard h = {.signal = signals[i]};
        const char *argv[] = {program, "interrupt", in("interrupted"), NULL};
        struct wml_dir_list before = {0}, after = {0};
        assert_true(wml_dir_list(dir, &before, &h.err));
        assert_true(run(&h, argv, (struct wml_spawn){0}, 15000, NULL));
        assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 128 + signals[i]);
        assert_true(wml_dir_list(dir, &after, &h.err));
        assert_int_equal(before.v.len, after.v.len);
        wml_dir_list_release(&before);
        wml_dir_list_release(&after);
        done(&h);
    }
}

static size_t open_fds(void)
{
    struct wml_dir_list l = {0};
    struct wml_err err = {0};
    assert_true(wml_dir_list("/proc/self/fd", &l, &err));
    size_t n = l.v.len;
    wml_dir_list_release(&l);
    return n;
}

static void test_descriptors(void **state)
{
    (void)state;
    struct heard h = {0};
    struct wml_out o = {0};
    struct wml_map_file m = {0};
    struct wml_err err = {0};
    struct wml_buf alone = {0};
    const char *argv[] = {program, "fds", NULL};
    size_t ours = open_fds();
    assert_true(run(&h, argv, (struct wml_spawn){0}, 30000, NULL));
    wml_buf_str(&alone, wml_buf_view(&h.lines));
    wml_child_result_release(&h.r);
    assert_int_equal(open_fds(), ours);
    assert_true(wml_out_open(&o, in("leak"), &err) && wml_map_open(program, &m, &err));
    assert_true(run(&h, argv, (struct wml_spawn){0}, 30000, NULL));
    assert_string_equal(wml_buf_text(&h.lines), wml_buf_text(&alone));
    wml_out_release(&o);
    wml_map_close(&m);
    assert_int_equal(open_fds(), ours);
    wml_buf_release(&alone);
    done(&h);
}

/* Whoever started us may ignore SIGCHLD. */
static void test_sigchld_ignored(void **state)
{
    (void)state;
    struct heard h = {0};
    const char *argv[] = {program, "exit", NULL};
    signal(SIGCHLD, SIG_IGN);
    assert_true(run(&h, argv, (struct wml_spawn){0}, 30000, NULL));
    assert_true(h.r.how == WML_CHILD_EXIT && h.r.status == 7);
    done(&h);
}
#endif

int main(int argc, char **argv)
{
    struct wml_buf b = {0}, temp = {0};
    struct wml_err err = {0};
    argv = wml_args_utf8(&argc, argv);
    wml_stdio_prepare();
    if (!wml_path_program(&b)) return 1;
    snprintf(program, sizeof program, "%s", wml_buf_text(&b));
    wml_buf_release(&b);
    if (argc > 1 && wml_channel_open(&channel)) {
        for (size_t i = 0; i < WML_COUNT(roles); i++)
            if (strcmp(argv[1], roles[i].name) == 0) return roles[i].play(argc, argv);
        return 99;
    }
    if (!wml_dir_temp(NULL, "wml spawn-", &temp, &err)) return 1;
    snprintf(dir, sizeof dir, "%s", wml_buf_text(&temp));
    wml_buf_release(&temp);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),      cmocka_unit_test(test_input_ignored), cmocka_unit_test(test_talk), cmocka_unit_test(test_quiet), cmocka_unit_test(test_flood),
        cmocka_unit_test(test_timeout),   cmocka_unit_test(test_more_time),     cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_crash),     cmocka_unit_test(test_exit_now),      cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_parent_death),
#ifndef _WIN32
        cmocka_unit_test(test_orphans),   cmocka_unit_test(test_interrupt),     cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_sigchld_ignored),
#endif
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    wml_dir_remove(dir);
    return failed;
}
