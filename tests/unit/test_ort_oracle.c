/* Questions to ORT: types of a skeleton's values, values of a constant part, what the optimiser makes. */
#include "ort_fixture.h"

#include "os/file.h"
#include "ort/oracle.h"

static void test_types(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_arena arena = {0};
    struct wml_oracle_type *t = NULL;
    size_t n = 0;
    struct wml_model_source m = {.path = data_path("skeleton")};
    ASSERT_OK(wml_oracle_types(o, &m, &arena, &t, &n, &err));
    wml_ort_close(&cx); /* answers outlive the runtime */
    assert_int_equal(n, 4);
    assert_string_equal(t[0].io.name, "s");
    assert_int_equal(t[0].io.dtype, WML_I64);
    assert_int_equal(t[0].io.rank, 1);
    assert_int_equal(t[0].io.dim[0], 3);
    assert_int_equal(t[1].io.rank, 3);
    assert_int_equal(t[1].io.dim[0], -1);
    assert_string_equal(t[1].io.symbol[0], "N");
    assert_int_equal(t[1].io.dim[1], 4);
    assert_int_equal(t[2].io.kind, WML_IO_SEQUENCE);
    assert_int_equal(t[3].io.dtype, WML_F16);
    wml_arena_release(&arena);
}

static void test_eval(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_oracle_values v;
    struct wml_model_source m = {.path = data_path("constant")};
    ASSERT_OK(wml_oracle_eval(o, &m, &v, &err));
    assert_int_equal(v.v.len, 2);
    assert_int_equal(v.v.at[0].bytes, 24);
    for (size_t i = 0; i < 6; i++) assert_true(((const float *)v.v.at[0].data)[i] == 2 * (float)i);
    assert_int_equal(v.v.at[1].dtype, WML_I64);
    assert_int_equal(((const int64_t *)v.v.at[1].data)[0], 2);
    assert_int_equal(((const int64_t *)v.v.at[1].data)[1], 3);
    wml_oracle_values_release(&v);
    wml_oracle_values_release(&v); /* and again */
    m.path = data_path("static");
    assert_false(wml_oracle_eval(o, &m, &v, &err));
    ASSERT_HAS(err.msg, "\"x\"");
    m.path = data_path("cut");
    assert_false(wml_oracle_eval(o, &m, &v, &err));
    assert_int_equal(err.code, WML_E_LOAD);
    wml_ort_close(&cx);
}

static size_t count_nodes(struct wml_ort *o, const char *path)
{
    struct wml_err err = {0};
    struct wml_session *s = NULL;
    const struct wml_placed *p = NULL;
    size_t n = 0, nodes = 0;
    struct wml_model_source m = {.path = path};
    ASSERT_OK(wml_session_open(o, &m, &(struct wml_session_opts){.record_placement = true}, &s, &err));
    ASSERT_OK(wml_session_placement(s, &p, &n, &err));
    for (size_t i = 0; i < n; i++) nodes += p[i].n_nodes;
    wml_session_close(s);
    return nodes;
}

static void test_optimise(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_buf dir = {0}, out = {0};
    ASSERT_OK(wml_dir_temp(NULL, "winml-oracle-", &dir, &err));
    wml_buf_fmt(&out, "%s/o.onnx", wml_buf_text(&dir));
    struct wml_model_source m = {.path = data_path("constant")};
    assert_int_equal(count_nodes(o, m.path), 2);
    ASSERT_OK(wml_oracle_optimise(o, &m, WML_LEVEL_BASIC, NULL, wml_buf_text(&out), &err));
    assert_int_equal(count_nodes(o, wml_buf_text(&out)), 0); /* all of it was constant */
    ASSERT_OK(wml_oracle_optimise(o, &m, WML_LEVEL_BASIC, "ConstantFolding", wml_buf_text(&out), &err));
    assert_int_equal(count_nodes(o, wml_buf_text(&out)), 2);
    struct wml_buf text = {0}; /* weights stay where they are: 24 bytes of weights/all.bin */
    m.path = data_path("external");
    ASSERT_OK(wml_oracle_optimise(o, &m, WML_LEVEL_ALL, NULL, wml_buf_text(&out), &err));
    ASSERT_OK(wml_file_read(wml_buf_text(&out), 0, &text, &err));
    assert_true(wml_str_has(wml_buf_view(&text), "weights/all.bin"));
    wml_buf_release(&text);
    m.path = data_path("optimiser_trap"); /* ORT's failure is reported, nothing is written */
    wml_file_remove(wml_buf_text(&out));
    assert_false(wml_oracle_optimise(o, &m, WML_LEVEL_BASIC, NULL, wml_buf_text(&out), &err));
    ASSERT_HAS(err.msg, "level basic");
    assert_false(wml_file_exists(wml_buf_text(&out)));
    wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    wml_buf_release(&out);
    wml_ort_close(&cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_eval),
        cmocka_unit_test(test_optimise),
    };
    return cmocka_run_group_tests_name("ort oracle", tests, NULL, NULL);
}
