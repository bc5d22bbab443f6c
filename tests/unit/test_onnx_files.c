/* Models to files and back: byte for byte where nothing changed, weights beside or by reference where asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

#define OK(call) do { struct wml_err err = {0}; if (!(call)) fail_msg("%s: %s", #call, err.msg); } while (0)

struct fixture { struct wml_buf dir; };

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct wml_err err = {0};
    *state = f;
    return wml_dir_temp(NULL, "winml test \xc3\xa9 ", &f->dir, &err) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    wml_dir_remove(wml_buf_text(&f->dir));
    wml_buf_release(&f->dir);
    free(f);
    return 0;
}

static const char *in_dir(struct fixture *f, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", wml_buf_text(&f->dir), name);
    return path;
}

static bool same_bytes(const char *a, const char *b)
{
    struct wml_buf x = {0}, y = {0};
    struct wml_err err = {0};
    bool same = wml_file_read(a, 0, &x, &err) && wml_file_read(b, 0, &y, &err) && x.len == y.len && memcmp(x.ptr, y.ptr, x.len) == 0;
    wml_buf_release(&x);
    wml_buf_release(&y);
    return same;
}

static void test_untouched(void **state)
{
    struct wml_dir_list list = {0};
    struct wml_onnx_save_opts keep = {.external = WML_EXTERNAL_KEEP};
    char out[512], in[512];
    size_t same = 0, loaded = 0;
    OK(wml_dir_list(WML_TEST_DATA "/bugs", &list, &err));
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_model *m = NULL;
        struct wml_err err = {0};
        struct wml_str name = list.v.at[i].name;
        if (!wml_str_ends(name, ".onnx") || wml_str_starts(name, "external")) continue;
        snprintf(in, sizeof in, "%s/bugs/%.*s", WML_TEST_DATA, WML_ARG(name));
        if (!wml_onnx_load(in, &m, &err)) continue;
        loaded++;
        OK(wml_onnx_save(m, in_dir(*state, "o.onnx", out), &keep, NULL, &err));
        bool is_same = same_bytes(in, out);
        /* These two are not written as a canonical encoder would. */
        bool odd = wml_str_is(name, "unsorted.onnx") || wml_str_is(name, "b70_ok_graph_in_two_pieces.onnx");
        if (!is_same && !odd) fail_msg("%s came out different", in);
        same += is_same;
        wml_model_free(m);
    }
    assert_true(loaded > 40 && same >= loaded - 2);
    wml_dir_list_release(&list);
}

/* y = x w with w of n rows of 64 floats. */
static struct wml_model *make(size_t rows)
{
    struct wml_model *m = wml_model_new();
    struct wml_err err = {0};
    int64_t xs[] = {1, (int64_t)rows}, ws[] = {(int64_t)rows, 64}, ys[] = {1, 64};
    wml_model_set_opset(m, "", 17);
    struct wml_value *x = wml_graph_add_input(m->graph, WML_STR("x"), wml_type_static(m, WML_F32, 2, xs));
    float *w = malloc(rows * 64 * sizeof *w);
    for (size_t i = 0; i < rows * 64; i++) w[i] = (float)i;
    struct wml_tensor *t = wml_tensor_own(m, WML_F32, 2, ws, w, rows * 64 * sizeof *w, &err);
    assert_non_null(t);
    struct wml_node *n = wml_graph_append(m->graph, "", "MatMul");
    wml_node_add_input(n, x);
    wml_node_add_input(n, wml_graph_add_init(m->graph, WML_STR("w"), t));
    struct wml_value *y = wml_node_add_output(n, WML_STR("y"));
    wml_value_set_type(y, wml_type_static(m, WML_F32, 2, ys));
    wml_graph_add_output(m->graph, y);
    return m;
}

static void check_weights(const char *path, size_t rows)
{
    struct wml_model *m = NULL;
    struct wml_span s;
    OK(wml_onnx_load(path, &m, &err));
    struct wml_value *w = wml_graph_find(m->graph, WML_STR("w"));
    assert_non_null(w);
    OK(wml_tensor_bytes(m, w->init, &s, &err));
    assert_int_equal(s.len, rows * 64 * 4);
    for (size_t i = 0; i < rows * 64; i += 17) {
        float v;
        memcpy(&v, s.ptr + 4 * i, 4);
        assert_true(v == (float)i);
    }
    wml_model_free(m);
}

static void test_external(void **state)
{
    struct wml_model *m = make(1000);
    struct wml_onnx_saved saved = {0};
    char a[512], b[512], data[512];
    struct wml_onnx_save_opts always = {.external = WML_EXTERNAL_ALWAYS}, small = {.limit = 1000}, never = {.external = WML_EXTERNAL_NEVER};
    OK(wml_onnx_save(m, in_dir(*state, "a.onnx", a), &always, &saved, &err));
    assert_string_equal(saved.data_name, "a.onnx.data");
    assert_int_equal(saved.data_bytes, 256000);
    assert_true(wml_file_exists(in_dir(*state, "a.onnx.data", data)));
    check_weights(a, 1000);
    OK(wml_onnx_save(m, in_dir(*state, "b.onnx", b), &small, &saved, &err));
    assert_int_equal(saved.n_external, 1);
    OK(wml_onnx_save(m, b, NULL, &saved, &err));
    assert_int_equal(saved.n_external, 0);
    check_weights(b, 1000);
    wml_model_free(m);
    /* From beside to inside, over its own file, which is still mapped. */
    OK(wml_onnx_load(a, &m, &err));
    OK(wml_onnx_save(m, a, &never, &saved, &err));
    assert_int_equal(saved.n_external, 0);
    check_weights(a, 1000);
    wml_model_free(m);
    wml_file_remove(data);
    check_weights(a, 1000);
}

static void test_reference(void **state)
{
    struct wml_model *m = make(1000);
    struct wml_onnx_save_opts reference = {.weights = WML_WEIGHTS_REFERENCE};
    struct wml_onnx_saved saved = {0};
    char a[512], r[512];
    OK(wml_onnx_save(m, in_dir(*state, "a.onnx", a), NULL, NULL, &err));
    wml_model_free(m);
    OK(wml_onnx_load(a, &m, &err));
    OK(wml_onnx_save(m, in_dir(*state, "r.onnx", r), &reference, &saved, &err));
    assert_int_equal(saved.n_referenced, 1);
    assert_true(wml_file_info(r).size < 1000);
    check_weights(r, 1000);
    wml_model_free(m);
}

static void test_broken_references(void **state)
{
    struct wml_model *m = make(100);
    struct wml_onnx_save_opts always = {.external = WML_EXTERNAL_ALWAYS};
    char a[512], data[512];
    struct wml_span s;
    struct wml_err err = {0};
    OK(wml_onnx_save(m, in_dir(*state, "a.onnx", a), &always, NULL, &err));
    wml_model_free(m);
    OK(wml_file_write(in_dir(*state, "a.onnx.data", data), WML_STR("short"), &err));
    OK(wml_onnx_load(a, &m, &err));
    assert_false(wml_tensor_bytes(m, wml_graph_find(m->graph, WML_STR("w"))->init, &s, &err));
    assert_non_null(strstr(err.msg, "which has 5 bytes"));
    wml_model_free(m);
    wml_file_remove(data);
    OK(wml_onnx_load(a, &m, &err));
    err = (struct wml_err){0};
    assert_false(wml_tensor_bytes(m, wml_graph_find(m->graph, WML_STR("w"))->init, &s, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    wml_model_free(m);
}

static void test_failed_save_leaves_nothing(void **state)
{
    struct wml_model *m = make(10);
    struct wml_err err = {0};
    struct wml_dir_list list = {0};
    char a[512];
    snprintf(a, sizeof a, "%s/none/a.onnx", wml_buf_text(&((struct fixture *)*state)->dir));
    assert_false(wml_onnx_save(m, a, NULL, NULL, &err));
    assert_true(err.msg[0] && err.hint[0]);
    OK(wml_dir_list(wml_buf_text(&((struct fixture *)*state)->dir), &list, &err));
    assert_int_equal(list.v.len, 0);
    wml_dir_list_release(&list);
    wml_model_free(m);
}

/* A skeleton holds no weight: it points into the file that was loaded. */
static void test_skeleton(void **state)
{
    struct wml_model *m = make(1000), *s = NULL;
    struct wml_buf bytes = {0};
    struct wml_str folder;
    char a[512];
    OK(wml_onnx_save(m, in_dir(*state, "a.onnx", a), NULL, NULL, &err));
    wml_model_free(m);
    OK(wml_onnx_load(a, &m, &err));
    OK(wml_onnx_skeleton(m, NULL, &bytes, &folder, &err));
    assert_true(bytes.len < 1000);
    OK(wml_onnx_load_bytes((struct wml_span){(const unsigned char *)bytes.ptr, bytes.len}, wml_buf_text(&((struct fixture *)*state)->dir), &s, &err));
    struct wml_tensor *t = wml_graph_find(s->graph, WML_STR("w"))->init;
    assert_int_equal(t->payload, WML_PAYLOAD_EXTERNAL);
    struct wml_span w;
    OK(wml_tensor_bytes(s, t, &w, &err));
    assert_int_equal(w.len, 256000);
    wml_model_free(s);
    wml_buf_clear(&bytes);
    struct wml_skeleton_opts types = {.types_only = true};
    OK(wml_onnx_skeleton(m, &types, &bytes, &folder, &err));
    OK(wml_onnx_load_bytes((struct wml_span){(const unsigned char *)bytes.ptr, bytes.len}, NULL, &s, &err));
    assert_int_equal(s->graph->inputs.len, 2);
    assert_null(wml_graph_find(s->graph, WML_STR("w"))->init);
    wml_model_free(s);
    /* The model itself did not change. */
    assert_int_equal(m->graph->inputs.len, 1);
    OK(wml_onnx_save(m, a, NULL, NULL, &err));
    check_weights(a, 1000);
    wml_buf_release(&bytes);
    wml_model_free(m);
}

static void test_contexts(void **state)
{
    static const struct { const char *file; enum wml_epctx_state state; const char *error; } row[] = {
        {"b54_embedded.onnx", WML_EPCTX_EMBEDDED, NULL}, {"b54_embedded_incomplete.onnx", WML_EPCTX_INCOMPLETE, "holds no context"},
        {"b54_beside/model.onnx", WML_EPCTX_BESIDE, NULL}, {"b54_beside_missing/model.onnx", WML_EPCTX_MISSING, "is not there"},
        {"b54_beside_escape/model.onnx", WML_EPCTX_ESCAPES, "leaves the model's folder"}};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_model *m = NULL;
        struct wml_epctx_list list = {0};
        struct wml_err bad = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/bugs/%s", WML_TEST_DATA, row[i].file);
        OK(wml_onnx_load(path, &m, &err));
        wml_epctx_find(m, &list);
        assert_int_equal(list.v.len, 2);
        enum wml_epctx_state worst = WML_EPCTX_EMBEDDED;
        for (size_t k = 0; k < list.v.len; k++) worst = WML_MAX(worst, list.v.at[k].state);
        if (row[i].error || row[i].state == WML_EPCTX_EMBEDDED) assert_int_equal(worst, row[i].state);
        else assert_int_equal(list.v.at[0].state, row[i].state);
        assert_int_equal(wml_epctx_check(&list, &bad), row[i].error == NULL);
        if (row[i].error) assert_non_null(strstr(bad.msg, row[i].error));
        wml_epctx_list_release(&list);
        wml_model_free(m);
    }
}

static void test_many_nodes(void **state)
{
    enum { N = 100000 };
    struct wml_model *m = wml_model_new();
    struct wml_buf bytes = {0};
    int64_t dim = 4;
    (void)state;
    wml_model_set_opset(m, "", 17);
    struct wml_value *v = wml_graph_add_input(m->graph, WML_STR("x"), wml_type_static(m, WML_F32, 1, &dim));
    for (int i = 0; i < N; i++) {
        struct wml_node *n = wml_graph_append(m->graph, "", "Relu");
        wml_node_add_input(n, v);
        v = wml_node_add_output(n, WML_STR("v"));
    }
    wml_value_set_type(v, wml_type_static(m, WML_F32, 1, &dim));
    wml_graph_add_output(m->graph, v);
    OK(wml_onnx_encode(m, &bytes, &err));
    wml_model_free(m);
    OK(wml_onnx_load_bytes((struct wml_span){(const unsigned char *)bytes.ptr, bytes.len}, NULL, &m, &err));
    assert_int_equal(m->graph->n_nodes, N);
    wml_model_free(m);
    wml_buf_release(&bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {T(test_untouched), T(test_external), T(test_reference), T(test_broken_references),
                                       T(test_failed_save_leaves_nothing), T(test_skeleton), T(test_contexts), T(test_many_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
