/* Files: output appears whole or not at all, maps outlive a replaced file, odd names, full disks. */
#define _DEFAULT_SOURCE /* symlink, mount */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#ifndef _WIN32
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#endif

#include "os/file.h"
#include "os/map.h"
#include "os/out_sys.h"
#include "os/path.h"
#include "os/sys.h"

static char dir[512];

/* dir/name in a static place; eight at a time are alive. */
static const char *in(const char *name)
{
    static char text[8][2048];
    static unsigned turn;
    turn = (turn + 1) % 8;
    snprintf(text[turn], sizeof text[turn], "%s/%s", dir, name);
    return text[turn];
}

static int set_up(void **state)
{
    struct wml_buf b = {0};
    struct wml_err err = {0};
    (void)state;
    if (!wml_dir_temp(NULL, "wml test \xc3\xa9-", &b, &err)) return -1;
    snprintf(dir, sizeof dir, "%s", wml_buf_text(&b));
    wml_out_forget(dir); /* test_remove_all must leave it */
    wml_buf_release(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return wml_dir_remove(dir) && wml_file_info(dir).kind == WML_FILE_NONE ? 0 : -1;
}

static void put(const char *path, const char *text)
{
    struct wml_err err = {0};
    if (!wml_file_write(path, wml_str(text), &err)) fail_msg("%s", err.msg);
}

static void has(const char *path, const char *text)
{
    struct wml_buf b = {0};
    struct wml_err err = {0};
    if (!wml_file_read(path, 0, &b, &err)) fail_msg("%s", err.msg);
    assert_string_equal(wml_buf_text(&b), text);
    wml_buf_release(&b);
}

static size_t entries(const char *path)
{
    struct wml_dir_list l = {0};
    struct wml_err err = {0};
    assert_true(wml_dir_list(path, &l, &err));
    size_t n = l.v.len;
    wml_dir_list_release(&l);
    return n;
}

static void test_out(void **state)
{
    (void)state;
    struct wml_out o = {0};
    struct wml_err err = {0};
    const char *path = in("out.bin");
    size_t before = entries(dir);
    put(path, "old");
    assert_true(wml_out_open(&o, path, &err));
    assert_true(wml_out_write(&o, "new", 3, &err));
    has(path, "old");
    assert_int_equal(entries(dir), before + 2);
    wml_out_release(&o); /* as if it had failed here */
    has(path, "old");
    assert_int_equal(entries(dir), before + 1);
    assert_true(wml_out_open(&o, path, &err) && wml_out_write(&o, "new", 3, &err) && wml_out_commit(&o, &err));
    has(path, "new");
    wml_out_release(&o);
    wml_out_release(&o);
    has(path, "new");
    assert_int_equal(entries(dir), before + 1);
    assert_true(wml_file_remove(path) && wml_file_remove(path));
}

/* finish, then commit: two files that appear together. */
static void test_out_pair(void **state)
{
    (void)state;
    struct wml_out a = {0}, b = {0};
    struct wml_err err = {0};
    char x[2048];
    snprintf(x, sizeof x, "%s", in("pair.a"));
    const char *y = in("pair.b");
    assert_true(wml_out_open(&a, x, &err) && wml_out_open(&b, y, &err));
    assert_true(wml_out_write(&a, "A", 1, &err) && wml_out_write(&b, "B", 1, &err));
    assert_true(wml_out_finish(&a, &err) && wml_out_finish(&b, &err));
    assert_false(wml_file_exists(x) || wml_file_exists(y));
    assert_true(wml_out_commit(&a, &err) && wml_out_commit(&b, &err));
    has(x, "A");
    has(y, "B");
    wml_out_release(&a);
    wml_out_release(&b);
}

/* Pieces of every size around the gathering limits, padding, and copying, against the same made in memory. */
static void test_out_pieces(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 0, 4096, 262143, 262144, 262145, 1, 1048575, 1048576, 1048577, 7, 3000000, 13};
    struct wml_out o = {0};
    struct wml_buf truth = {0}, b = {0};
    struct wml_err err = {0};
    struct wml_map_file map = {0};
    char *bytes = malloc(3000000);
    for (size_t i = 0; i < 3000000; i++) bytes[i] = (char)(i * 2654435761u >> 13);
    put(in("source"), "0123456789");
    assert_true(wml_map_open(in("source"), &map, &err));
    assert_true(wml_out_open(&o, in("pieces"), &err));
    for (size_t i = 0; i < WML_COUNT(sizes); i++) {
        assert_true(wml_out_write(&o, bytes, sizes[i], &err));
        wml_buf_add(&truth, bytes, sizes[i]);
        assert_true(wml_out_pad(&o, (o.offset + 4095) / 4096 * 4096, &err));
        while (truth.len % 4096) wml_buf_char(&truth, 0);
        assert_true(wml_out_copy(&o, map.file, 2, 5, &err));
        wml_buf_cstr(&truth, "23456");
        assert_int_equal(o.offset, truth.len);
    }
    assert_false(wml_out_copy(&o, map.file, 5, 6, &err)); /* beyond its end */
    assert_int_equal(err.code, WML_E_IO);
    wml_map_close(&map);
    wml_out_release(&o);
    assert_true(wml_out_open(&o, in("pieces"), &err) && wml_out_reserve(&o, 2 * truth.len, &err));
    assert_true(wml_out_write(&o, truth.ptr, truth.len, &err) && wml_out_commit(&o, &err));
    wml_out_release(&o);
    assert_true(wml_file_read(in("pieces"), 0, &b, &err));
    assert_true(wml_str_eq(wml_buf_view(&b), wml_buf_view(&truth)));
    wml_buf_release(&b);
    assert_true(wml_file_copy(in("pieces"), in("pieces copy"), &err));
    assert_true(wml_file_read(in("pieces copy"), 0, &b, &err));
    assert_true(wml_str_eq(wml_buf_view(&b), wml_buf_view(&truth)));
    wml_buf_release(&b);
    wml_buf_release(&truth);
    free(bytes);
}

static void test_out_errors(void **state)
{
    (void)state;
    struct wml_out o = {0};
    struct wml_err err = {0};
    assert_false(wml_out_open(&o, in("no/such/folder.bin"), &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_non_null(strstr(err.hint, "make it first"));
    wml_out_release(&o);
    assert_false(wml_out_open(&o, dir, &err));
    assert_non_null(strstr(err.msg, "folder"));
    wml_out_release(&o);
    struct wml_out zero = {0};
    wml_out_release(&zero);
}

/* The temporary neighbours of a run that was stopped hard. */
static void test_remove_all(void **state)
{
    (void)state;
    struct wml_out o[3] = {0};
    struct wml_err err = {0};
    struct wml_buf stage = {0}, gone = {0}, inner = {0};
    size_t before = entries(dir);
    assert_true(wml_dir_temp(dir, ".stage-", &stage, &err) && wml_dir_temp(dir, ".gone-", &gone, &err));
    assert_true(wml_dir_remove(wml_buf_text(&gone)));
    wml_path_join(&inner, wml_buf_view(&stage), WML_STR("model.onnx"));
    put(wml_buf_text(&inner), "not yet published");
    for (size_t i = 0; i < 3; i++) assert_true(wml_out_open(&o[i], in(i ? "stop.b" : "stop.a"), &err));
    assert_int_equal(entries(dir), before + 4);
    wml_out_remove_all();
    wml_buf_release(&stage);
    wml_buf_release(&gone);
    wml_buf_release(&inner);
    for (size_t i = 0; i < 3; i++) wml_out_release(&o[i]);
    assert_int_equal(entries(dir), before);
}

/* A folder with a file in it, as a killed process leaves it. */
static void leave(const char *parent, const char *name, bool is_file)
{
    struct wml_err err = {0};
    char path[2048];
    int n = snprintf(path, sizeof path, "%s/%s", parent, name);
    if (!is_file) {
        assert_true(wml_dir_make(path, &err));
        snprintf(path + n, sizeof path - (size_t)n, "/model.onnx");
    }
    put(path, "unfinished");
}

static bool is_left(const char *parent, const char *name)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    return wml_file_info(path).kind != WML_FILE_NONE;
}

/* Links, and folders of other machines, which are asked for their age. */
static void leave_more(const char *parent, const char *place, bool *stays, char (*name)[96])
{
#ifndef _WIN32
    char path[2048], target[2048];
    const struct timespec old[2] = {{time(NULL) - 2 * 24 * 60 * 60, 0}, {time(NULL) - 2 * 24 * 60 * 60, 0}};
    snprintf(name[0], sizeof name[0], ".stage-%s-999999999-0123abce", place);
    snprintf(path, sizeof path, "%s/%s", parent, name[0]);
    snprintf(target, sizeof target, "%s", in("killed"));
    assert_int_equal(symlink(target, path), 0);
    snprintf(name[1], sizeof name[1], ".stage-00000000-1-0123abce");
    leave(parent, name[1], false);
    snprintf(path, sizeof path, "%s/%s", parent, name[1]);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    stays[0] = true;
    stays[1] = false;
#else
    (void)parent, (void)place, (void)stays, (void)name;
#endif
}

/* What killed processes left goes when the next private folder or file is made; everything else stays. */
static void test_killed(void **state)
{
    (void)state;
    static const char dead[] = "999999999"; /* no system has so many processes */
    static const struct { const char *before, *place, *pid, *after; bool is_file, stays; } row[] = {
        {".stage-", NULL, dead, "-0123abcd", false, false}, {".stage-", NULL, dead, "-89ef0000", true, false},
        {".stage-", NULL, NULL, "-0123abcd", false, true},  {".stage-", "00000000", dead, "-0123abcd", false, true},
        {".stage-", NULL, dead, "-0123abc", false, true},   {".stage-", NULL, dead, "-0123abcg", false, true},
        {".stage-", NULL, dead, "-0123abcd-", false, true}, {".stage-", NULL, dead, "", false, true},
        {".other-", NULL, dead, "-0123abcd", false, true},  {".stage-", NULL, "0", "-0123abcd", false, true},
        {".stage-", NULL, "1x", "-0123abcd", false, true},  {".stage-", NULL, "-5", "-0123abcd", false, true}};
    enum { ROWS = WML_COUNT(row), MORE = 2 };
    struct wml_buf mine = {0}, file = {0};
    struct wml_err err = {0};
    char place[16], own[16], name[ROWS + MORE][96] = {""};
    bool stays[ROWS + MORE] = {0};
    const char *parent = in("killed");
    assert_true(wml_dir_make(parent, &err) && wml_dir_temp(parent, ".stage-", &mine, &err));
    snprintf(place, sizeof place, "%.8s", wml_path_name(wml_buf_view(&mine)).ptr + strlen(".stage-"));
    snprintf(own, sizeof own, "%d", wml_pid());
    for (int again = 0; again < 2; again++) { /* by the next folder, and by the next file */
        for (size_t i = 0; i < ROWS; i++) {
            snprintf(name[i], sizeof name[i], "%s%s-%s%s", row[i].before, row[i].place ? row[i].place : place, row[i].pid ? row[i].pid : own, row[i].after);
            stays[i] = row[i].stays;
            leave(parent, name[i], row[i].is_file);
        }
        if (!again) leave_more(parent, place, &stays[ROWS], &name[ROWS]);
        if (again) wml_file_temp(parent, ".stage-", &file);
        else assert_true(wml_dir_temp(parent, ".stage-", &file, &err) && wml_dir_remove(wml_buf_text(&file)));
        for (size_t i = 0; i < ROWS + MORE; i++)
            if (name[i][0] && is_left(parent, name[i]) != stays[i]) fail_msg("%s %s", name[i], stays[i] ? "is gone" : "is still there");
    }
    assert_true(wml_dir_exists(wml_buf_text(&mine)) && wml_file_remove(wml_buf_text(&file)) && wml_dir_remove(parent));
    wml_out_forget(wml_buf_text(&mine));
    wml_buf_release(&mine);
    wml_buf_release(&file);
}

/* The same for the neighbours of outputs, each by the next run that writes to that name. */
static void test_killed_neighbour(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_out o = {0};
    char place[16], left[96];
    const char *parent = in("neighbour");
    char path[2048];
    snprintf(path, sizeof path, "%s/r.json", parent);
    assert_true(wml_dir_make(parent, &err) && wml_out_open(&o, path, &err));
    const char *mine = strstr(o.temp, ".r.json.tmp-");
    assert_non_null(mine);
    snprintf(place, sizeof place, "%.8s", mine + strlen(".r.json.tmp-"));
    snprintf(left, sizeof left, ".r.json.tmp-%s-999999999-0123abcd", place);
    leave(parent, left, true);
    wml_out_release(&o);
    snprintf(path, sizeof path, "%s/other.json", parent);
    assert_true(wml_file_write(path, WML_STR("{}"), &err) && is_left(parent, left));
    snprintf(path, sizeof path, "%s/r.json", parent);
    assert_true(wml_file_write(path, WML_STR("{}"), &err) && !is_left(parent, left));
    assert_int_equal(entries(parent), 2);
    assert_true(wml_dir_remove(parent));
}

static void test_map_outlives(void **state)
{
    (void)state;
    struct wml_map_file m = {0}, empty = {0};
    struct wml_err err = {0};
    size_t before = entries(dir);
    put(in("mapped"), "first version");
    assert_true(wml_map_open(in("mapped"), &m, &err));
    put(in("mapped"), "second");
    assert_int_equal(m.bytes.len, 13);
    assert_memory_equal(m.bytes.ptr, "first version", 13);
    has(in("mapped"), "second");
    wml_map_will_read(&m, 0, 13);
    wml_map_will_read(&m, 100, 13);
    wml_map_close(&m);
    wml_map_close(&m);
    assert_int_equal(entries(dir), before + 1); /* the old one left nothing behind */
    put(in("mapped"), "");
    assert_true(wml_map_open(in("mapped"), &empty, &err));
    assert_int_equal(empty.bytes.len, 0);
    wml_map_close(&empty);
    assert_false(wml_map_open(in("not there"), &m, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_false(wml_map_open(dir, &m, &err));
    wml_map_close(&m);
}

static void test_odd_names(void **state)
{
    (void)state;
    static const char *const names[] = {"with space.onnx", "\xe6\xa8\xa1\xe5\x9e\x8b.onnx", "\xf0\x9f\x98\x80", "a'b$c&d;e",
                                        "-", ".hidden", "#hash%20", "trailing.dot.x"};
    struct wml_err err = {0};
    char inner[1024];
    snprintf(inner, sizeof inner, "%s", in("odd \xc3\xbc names"));
    assert_true(wml_dir_make(inner, &err));
    for (size_t i = 0; i < WML_COUNT(names); i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", inner, names[i]);
        put(path, names[i]);
        has(path, names[i]);
    }
    struct wml_dir_list l = {0};
    assert_true(wml_dir_list(inner, &l, &err));
    assert_int_equal(l.v.len, WML_COUNT(names));
    for (size_t i = 0; i < l.v.len; i++) {
        bool known = false;
        for (size_t k = 0; k < WML_COUNT(names); k++) known = known || wml_str_is(l.v.at[i].name, names[k]);
        assert_true(known && !l.v.at[i].is_dir);
        if (i) assert_true(wml_str_cmp(l.v.at[i - 1].name, l.v.at[i].name) < 0);
    }
    wml_dir_list_release(&l);
    char longer[240];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    put(in(longer), "long");
    has(in(longer), "long");
}

static void test_folders(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_dir_list l = {0};
    assert_true(wml_dir_make(in("x/y/z"), &err) && wml_dir_make(in("x/y/z"), &err));
    put(in("x/y/file"), "1");
    assert_false(wml_dir_make(in("x/y/file/below"), &err));
    assert_true(wml_dir_exists(in("x/y")) && !wml_file_exists(in("x/y")) && !wml_dir_exists(in("x/y/file")));
    assert_true(wml_dir_list(in("x/y"), &l, &err));
    assert_int_equal(l.v.len, 2);
    assert_true(wml_str_is(l.v.at[0].name, "file") && !l.v.at[0].is_dir && l.v.at[1].is_dir);
    wml_dir_list_release(&l);
    assert_true(wml_dir_remove(in("x")) && wml_dir_remove(in("x")));
    assert_false(wml_dir_exists(in("x")));
    assert_false(wml_dir_list(in("x"), &l, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    wml_dir_list_release(&l);
}

static void test_read_write(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_buf b = {0};
    const char *path = in("text");
    assert_true(wml_file_append(path, WML_STR("one"), &err) && wml_file_append(path, WML_STR("two"), &err));
    has(path, "onetwo");
    assert_false(wml_file_read(path, 5, &b, &err));
    assert_int_equal(err.code, WML_E_FORMAT);
    wml_buf_release(&b);
    assert_true(wml_file_read(path, 6, &b, &err));
    wml_buf_release(&b);
    assert_false(wml_file_read(dir, 0, &b, &err));
    assert_false(wml_file_read(in("absent"), 0, &b, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "absent"));
    wml_buf_release(&b);
    struct wml_file_info info = wml_file_info(path);
    assert_true(info.kind == WML_FILE_REGULAR && info.size == 6 && info.modified_ns > INT64_C(1700000000000000000));
    assert_true(wml_file_rename(path, in("text 2"), &err) && !wml_file_exists(path));
    put(path, "other");
    assert_false(wml_file_same(path, in("text 2")) || wml_file_same(path, in("nothing")));
    assert_true(wml_file_same(path, path));
    assert_true(wml_file_same(path, in("./text")));
    assert_true(wml_file_rename(path, in("text 2"), &err));
    has(in("text 2"), "other");
}

#ifdef _WIN32
#include <windows.h>

static void test_windows(void **state)
{
    (void)state;
    struct wml_err err = {0};
    size_t before = entries(dir);
    put("NUL", "gone");
    assert_int_equal(wml_file_info("NUL").kind, WML_FILE_OTHER);
    /* A write-protected file is replaced, as on POSIX, and nothing stays beside it. */
    put(in("protected"), "old");
    wchar_t wide[1024];
    assert_true(MultiByteToWideChar(CP_UTF8, 0, in("protected"), -1, wide, 1024) > 0);
    assert_true(SetFileAttributesW(wide, FILE_ATTRIBUTE_READONLY));
    put(in("protected"), "new");
    has(in("protected"), "new");
    assert_int_equal(entries(dir), before + 1);
    /* One that another program holds for itself is not, and the error says so. */
    HANDLE h = CreateFileW(wide, GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    assert_true(h != INVALID_HANDLE_VALUE);
    assert_false(wml_file_write(in("protected"), WML_STR("newer"), &err));
    assert_non_null(strstr(err.hint, "another program"));
    CloseHandle(h);
    has(in("protected"), "new");
    assert_int_equal(entries(dir), before + 1);
}
#else
#include <sys/mount.h>

static void test_devices_and_links(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_out o = {0};
    struct stat before, after;
    assert_int_equal(stat("/dev/null", &before), 0);
    put("/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode) && before.st_ino == after.st_ino);
    put(in("staged"), "model");
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    assert_false(wml_file_rename(in("staged"), in("pipe"), &err));
    assert_non_null(strstr(err.msg, "a device or a pipe"));
    assert_int_equal(lstat(in("pipe"), &after), 0);
    assert_true(S_ISFIFO(after.st_mode));
    struct wml_map_file m = {0};
    assert_false(wml_map_open(in("pipe"), &m, &err)); /* without waiting for a writer */
    put(in("target"), "old");
    assert_int_equal(chmod(in("target"), 0640), 0);
    assert_int_equal(symlink("target", in("link")), 0);
    put(in("link"), "new");
    has(in("target"), "new");
    assert_int_equal(lstat(in("link"), &after), 0);
    assert_true(S_ISLNK(after.st_mode));
    assert_int_equal(stat(in("target"), &after), 0);
    assert_int_equal(after.st_mode & 0777, 0640);
    /* A full device: the small piece fails when it is flushed, the large one at once. */
    assert_true(wml_out_open(&o, "/dev/full", &err) && wml_out_write(&o, "x", 1, &err));
    assert_false(wml_out_commit(&o, &err));
    assert_non_null(strstr(err.msg, "disk space"));
    wml_out_release(&o);
    /* Removing a folder does not follow links out of it. */
    assert_true(wml_dir_make(in("keep"), &err) && wml_dir_make(in("drop"), &err));
    put(in("keep/file"), "1");
    assert_int_equal(symlink(in("keep"), in("drop/link")), 0);
    assert_true(wml_dir_remove(in("drop")));
    has(in("keep/file"), "1");
}

static void test_full_disk(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_out o = {0};
    struct wml_map_file map = {0};
    char small[1024];
    snprintf(small, sizeof small, "%s", in("small"));
    assert_true(wml_dir_make(small, &err));
    if (mount("none", small, "tmpfs", 0, "size=1m") != 0) {
        print_message("no right to mount: not tested here\n");
        skip();
    }
    char *bytes = calloc(1, 2 << 20);
    bool failed = wml_out_open(&o, in("small/o"), &err) && !wml_out_write(&o, bytes, 2 << 20, &err);
    wml_out_release(&o);
    bool said = strstr(err.msg, "disk space") != NULL;
    bool no_room = wml_out_open(&o, in("small/o"), &err) && !wml_out_reserve(&o, 2 << 20, &err);
    said = said && strstr(err.msg, "disk space") != NULL;
    wml_out_release(&o);
    size_t left = entries(small);
    bool made = wml_file_write(in("large"), (struct wml_str){bytes, 2 << 20}, &err) && wml_map_open(in("large"), &map, &err);
    bool copy_failed = wml_out_open(&o, in("small/o"), &err) && !wml_out_copy(&o, map.file, 0, 2 << 20, &err);
    bool copy_said = strstr(err.msg, "disk space") != NULL;
    wml_out_release(&o);
    wml_map_close(&map);
    free(bytes);
    umount(small);
    assert_true(failed && no_room && said && made && copy_failed && copy_said);
    assert_int_equal(left, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out),          cmocka_unit_test(test_out_pair),   cmocka_unit_test(test_out_pieces),
        cmocka_unit_test(test_out_errors),   cmocka_unit_test(test_remove_all), cmocka_unit_test(test_killed), cmocka_unit_test(test_killed_neighbour),
        cmocka_unit_test(test_map_outlives),
        cmocka_unit_test(test_odd_names),    cmocka_unit_test(test_folders),    cmocka_unit_test(test_read_write),
#ifndef _WIN32
        cmocka_unit_test(test_devices_and_links), cmocka_unit_test(test_full_disk),
#else
        cmocka_unit_test(test_windows),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
