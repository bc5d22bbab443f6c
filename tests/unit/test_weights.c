/* Checkpoints as sets of tensors: real shards of PyTorch, safetensors by hand, owners, damage at every byte. What the
 * formats hold is judged in tests/parity/test_weights.py; under the sanitizers this is a memory test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/magic.h"
#include "base/rng.h"
#include "os/file.h"
#include "weights/weights.h"

#define SHARDED WML_TEST_DATA "/weights/sharded"

/* Header and data: the length before them is put here. */
static struct wml_buf file_of(const char *header, const char *data, size_t n_data)
{
    struct wml_buf b = {0};
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) wml_buf_char(&b, (char)(n >> (8 * i) & 0xff));
    wml_buf_cstr(&b, header);
    wml_buf_add(&b, data, n_data);
    return b;
}

static struct wml_span span_of(const struct wml_buf *b)
{
    return (struct wml_span){(const unsigned char *)b->ptr, b->len};
}

static const char header[] = "{\"late\": {\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[5,9]},"
                             "\"odd\": {\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5]},"
                             "\"first\": {\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}";
static const char data[] = "\1\0\0\x80?\1\0\xfe\xff";

static void test_by_name(void **state)
{
    (void)state;
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    struct wml_buf b = file_of(header, data, 9);
    if (!wml_weights_parse(span_of(&b), &w, &err)) fail_msg("%s", err.msg);
    assert_int_equal(wml_weights_len(w), 3);
    assert_int_equal(wml_weights_bytes(w), 9);
    assert_int_equal(wml_weights_n_files(w), 0);
    assert_string_equal(wml_weights_format(w), "safetensors");
    static const char *const order[] = {"first", "odd", "late"};
    for (size_t i = 0; i < 3; i++) assert_true(wml_str_is(wml_weights_at(w, i)->name, order[i]));
    const struct wml_weight *odd = wml_weights_find(w, WML_STR("odd")), *late = wml_weights_find(w, WML_STR("late"));
    assert_true(odd->rank == 0 && odd->dtype == WML_F32 && odd->bytes.ptr == (const unsigned char *)b.ptr + 8 + strlen(header) + 1);
    assert_true(wml_dtype_load(WML_F32, odd->bytes.ptr, 0) == 1);
    assert_true(late->rank == 1 && late->dims[0] == 2 && wml_dtype_load(WML_I16, late->bytes.ptr, 1) == -2);
    assert_null(wml_weights_find(w, WML_STR("od")));
    assert_null(wml_weights_use(w, WML_STR("oddly")));
    assert_false(odd->used);
    assert_ptr_equal(wml_weights_use(w, WML_STR("odd")), odd);
    assert_true(odd->used && !late->used);
    wml_weights_close(w);
    wml_weights_close(NULL);
    wml_buf_release(&b);
}

static void test_shards_and_owners(void **state)
{
    (void)state;
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    if (!wml_weights_open(SHARDED, &w, &err)) fail_msg("%s", err.msg);
    assert_int_equal(wml_weights_n_files(w), 3);
    assert_int_equal(wml_weights_bytes(w), 82568);
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        const struct wml_span s = wml_weights_at(w, i)->bytes;
        size_t in = 0;
        for (size_t f = 0; f < 3; f++) {
            const struct wml_map_file *m = &wml_weights_file(w, f)->map;
            assert_true(m->file > 0);
            in += s.ptr >= m->bytes.ptr && s.ptr + s.len <= m->bytes.ptr + m->bytes.len;
        }
        assert_int_equal(in, 1); /* nothing was copied */
    }
    const struct wml_weight *t = wml_weights_find(w, WML_STR("classifier.bias"));
    assert_true(wml_str_ends(wml_weights_file(w, 2)->path, "pytorch_model-00003-of-00003.bin"));
    assert_true(t->rank == 1 && t->dtype == WML_F32 && t->bytes.len == 4 * (size_t)t->dims[0]);
    double before = wml_dtype_load(WML_F32, t->bytes.ptr, 0);
    assert_ptr_equal(wml_weights_hold(w), w);
    wml_weights_close(w);
    assert_true(wml_dtype_load(WML_F32, t->bytes.ptr, 0) == before); /* still mapped: one owner is left */
    wml_weights_close(w);
}

/* A block of exactly this size: the sanitizer sees one byte too far. */
static bool try_bytes(const void *bytes, size_t n)
{
    unsigned char *copy = malloc(n ? n : 1);
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    unsigned sum = 0;
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    bool ok = wml_weights_parse((struct wml_span){copy, n}, &w, &err);
    assert_true(ok ? w != NULL : !w && err.code && err.msg[0]);
    for (size_t i = 0; ok && i < wml_weights_len(w); i++) {
        const struct wml_span s = wml_weights_at(w, i)->bytes;
        for (size_t k = 0; k < s.len; k++) sum += s.ptr[k];
    }
    assert_true(sum < UINT32_MAX);
    wml_weights_close(w);
    free(copy);
    return ok;
}

static void damage(const struct wml_buf *whole, size_t step, int flips)
{
    struct wml_rng rng = {7};
    char *copy = malloc(whole->len);
    assert_non_null(copy);
    assert_true(try_bytes(whole->ptr, whole->len));
    for (size_t n = 0; n < whole->len; n += step) assert_false(try_bytes(whole->ptr, n));
    for (int i = 0; i < flips; i++) {
        memcpy(copy, whole->ptr, whole->len);
        for (uint64_t k = wml_rng_u64(&rng) % 3 + 1; k > 0; k--) copy[wml_rng_u64(&rng) % whole->len] = (char)wml_rng_u64(&rng);
        try_bytes(copy, whole->len);
    }
    free(copy);
}

static void test_damage(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_buf b = file_of(header, data, 9), shard = {0};
    damage(&b, 1, 20000);
    assert_true(wml_file_read(SHARDED "/pytorch_model-00003-of-00003.bin", 0, &shard, &err));
    damage(&shard, 37, 2000);
    wml_buf_release(&shard);
    wml_buf_release(&b);
}

/* PyTorch's old format begins as a pickle does, and so does a header of 640 bytes. */
static void test_header_like_a_pickle(void **state)
{
    (void)state;
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    char text[641];
    memset(text, ' ', 640);
    memcpy(text, header, strlen(header));
    text[640] = '\0';
    struct wml_buf b = file_of(text, data, 9);
    assert_true(wml_str_is(wml_str(wml_magic(span_of(&b))->what), "safetensors weights"));
    if (!wml_weights_parse(span_of(&b), &w, &err)) fail_msg("%s", err.msg);
    assert_int_equal(wml_weights_len(w), 3);
    wml_weights_close(w);
    wml_buf_release(&b);
}

/* Magic number, version, facts; then what is told. */
#define OLD(pickle) "\x80\x02\x8a\x0al\xfc\x9c" "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}." "\x80\x02" pickle
#define STORAGE(n) "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0k" "X\3\0\0\0cpu" n "NtQ"
#define TENSOR(n, offset, size, stride) "}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(n) offset size stride "\x89NtRs."
#define KEYS "\x80\x02](X\1\0\0\0ke."

static void test_pickles(void **state)
{
    (void)state;
    static const struct row {
        const char *text;
        size_t n;
        const char *want; /* part of the message; NULL: it reads */
    } rows[] = {
#define ROW(text, want) {text, sizeof(text) - 1, want}
        ROW(OLD(TENSOR("K\2", "K\0", "K\2\x85", "K\1\x85")) KEYS "\2\0\0\0\0\0\0\0" "abcdefgh", NULL),
        ROW(OLD(TENSOR("K\2", "K\0", "K\2\x85", "K\1\x85")) KEYS "\3\0\0\0\0\0\0\0" "abcdefgh", "3 elements where 2 are expected"),
        ROW(OLD(TENSOR("K\2", "K\0", "K\2\x85", "K\1\x85")) KEYS "\2\0\0\0\0\0\0\0" "abcdefg", "need 8 bytes, 7 left"),
        ROW(OLD(TENSOR("K\2", "K\0", "K\2\x85", "K\1\x85")) "\x80\x02].", "storage 'k' is not in the file"),
        ROW(OLD(TENSOR("K\2", "K\1", "K\2\x85", "K\1\x85")) KEYS "\2\0\0\0\0\0\0\0" "abcdefgh", "element 3 of a storage of 2"),
        ROW(OLD("cposix\nsystem\nX\2\0\0\0ls\x85R."), "posix.system, which is refused"),
        ROW(OLD("X\2\0\0\0osX\6\0\0\0system\x93."), "os.system, which is refused"),
        ROW(OLD("(ios\nsystem\n."), "os.system, which is refused"),
        ROW(OLD("h\5."), "recalls value 5"),
        ROW(OLD("Nr\xff\xff\xff\xff."), "number 4294967295"),
        ROW(OLD("t."), "a mark that is not there"),
        ROW(OLD("]q\0h\0a."), "the pickle is cut"), /* a list in itself is fine; the keys are missing */
        ROW(OLD("N"), "the pickle is cut"),
        ROW("\x80\x02N.", "torch.save did not write"),
#undef ROW
    };
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        struct wml_weights *w = NULL;
        struct wml_err err = {0};
        bool ok = wml_weights_parse((struct wml_span){(const unsigned char *)rows[i].text, rows[i].n}, &w, &err);
        if (ok != !rows[i].want || (!ok && !strstr(err.msg, rows[i].want))) fail_msg("row %zu: %s", i, ok ? "read" : err.msg);
        if (ok) assert_memory_equal(wml_weights_find(w, WML_STR("w"))->bytes.ptr, "abcdefgh", 8);
        wml_weights_close(w);
    }
}

static void test_other_files(void **state)
{
    (void)state;
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    assert_false(wml_weights_open(WML_TEST_DATA "/npy", &w, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "holds no weights"));
    assert_false(wml_weights_open(WML_TEST_DATA "/npy/stored.npz", &w, &err));
    assert_non_null(strstr(err.msg, "without data.pkl"));
    assert_false(wml_weights_open(WML_TEST_DATA "/npy/empty.npy", &w, &err));
    assert_non_null(strstr(err.msg, "a numpy array, not weights"));
    assert_null(w);
}

static bool has_bias(void *arg, struct wml_str name)
{
    (void)arg;
    return wml_str_ends(name, ".bias");
}

static bool of_three(void *arg, struct wml_str name, size_t rank, int64_t *dims)
{
    (void)arg;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) dims[i] = 3;
    return !wml_str_is(name, "never");
}

static void test_supposed(void **state)
{
    (void)state;
    static const unsigned char zeros[64];
    const int64_t dims[] = {2, -1}, large[] = {5, 7}, absurd[] = {INT64_MAX, INT64_MAX};
    struct wml_weights *w = wml_weights_suppose(&(struct wml_weights_supposer){has_bias, of_three, NULL, WML_F16, {zeros, sizeof zeros}});
    assert_true(wml_weights_would_have(w, WML_STR("a.bias")) && !wml_weights_would_have(w, WML_STR("a.weight")));
    assert_null(wml_weights_find(w, WML_STR("a.bias"))); /* nobody has told its shape */
    const struct wml_weight *t = wml_weights_make(w, WML_STR("a.weight"), 2, dims);
    assert_true(t && t->used && t->rank == 2 && t->dims[0] == 2 && t->dims[1] == 3 && t->bytes.len == 12 && t->bytes.ptr == zeros);
    assert_true(wml_weights_would_have(w, WML_STR("a.weight")) && wml_weights_find(w, WML_STR("a.weight")) == t);
    assert_null(wml_weights_make(w, WML_STR("a.weight"), 2, dims)); /* there already */
    assert_null(wml_weights_make(w, WML_STR("never"), 2, dims));
    assert_null(wml_weights_make(w, WML_STR("large"), 2, large)); /* 70 bytes */
    assert_null(wml_weights_make(w, WML_STR("absurd"), 2, absurd));
    assert_int_equal(wml_weights_len(w), 1);
    wml_weights_close(w);
    struct wml_err err = {0};
    struct wml_buf b = file_of(header, data, 9);
    if (!wml_weights_parse(span_of(&b), &w, &err)) fail_msg("%s", err.msg);
    assert_null(wml_weights_make(w, WML_STR("a"), 0, NULL)); /* what was read stays as it is */
    assert_true(wml_weights_would_have(w, WML_STR("odd")) && !wml_weights_would_have(w, WML_STR("a")));
    wml_weights_close(w);
    wml_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_shards_and_owners),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_header_like_a_pickle),
        cmocka_unit_test(test_pickles),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_supposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
