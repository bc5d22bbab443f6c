/* Values shown while a model runs: what is seen, when, and that the model is as it was. */
#include "ort_fixture.h"

#include <string.h>

#include "flow/oracle.h"
#include "flow/watch.h"
#include "graph/edit.h"
#include "graph/text.h"

struct seen { int64_t slot[8], tag[8]; float first[8]; size_t bytes[8], n; };

static void see(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *v)
{
    struct seen *s = arg;
    assert_true(s->n < 8);
    s->slot[s->n] = slot;
    s->tag[s->n] = 10 * tag[0] + tag[1];
    s->bytes[s->n] = v->bytes;
    if (v->dtype == WML_F32 && v->bytes) memcpy(&s->first[s->n], v->data, sizeof s->first[0]);
    s->n++;
}

static struct wml_model *parse(const char *text)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    ASSERT_OK(wml_model_parse(wml_str(text), &m, &err));
    return m;
}

static struct wml_str text_of(struct wml_model *m, struct wml_buf *b)
{
    wml_buf_clear(b);
    wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_TYPES, b);
    return wml_buf_view(b);
}

/* a is needed once more after b: what is seen of it is what it was, whatever lies in its memory later. */
static void test_values(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    need_ort(&cx);
    struct wml_err err = {0};
    struct wml_model *m = parse("g (float[2] x) => (float[2] y) <float[2] a, float[2] b, float[2] c> {\n"
                                "a = Neg(x)\nb = Relu(a)\nc = Add(b, a)\ny = Abs(c) }");
    struct wml_buf before = {0}, after = {0};
    text_of(m, &before);
    struct wml_value *want[] = {wml_graph_find(m->graph, WML_STR("x")), wml_graph_find(m->graph, WML_STR("a")),
                                wml_graph_find(m->graph, WML_STR("b")), wml_graph_find(m->graph, WML_STR("c")),
                                wml_graph_find(m->graph, WML_STR("y"))};
    struct seen seen = {0};
    const struct wml_observer observer = {.arg = &seen, .see = see};
    struct wml_session *s = NULL;
    ASSERT_OK(wml_flow_watch(&cx, m, want, 5, &observer, 1, &s, &err));
    assert_true(wml_str_eq(text_of(m, &after), wml_buf_view(&before)));

    size_t n_in, n_out;
    const struct wml_io *in = wml_session_inputs(s, &n_in);
    wml_session_outputs(s, &n_out);
    assert_int_equal(n_in, 2);
    assert_int_equal(n_out, 1);
    assert_string_equal(in[0].name, "x");
    const float x[] = {-3, 5};
    const int64_t tag[WML_WATCH_TAG] = {4, 2}, dim[] = {2};
    const struct wml_tensor_view feed[] = {{WML_F32, 1, dim, x, sizeof x, true}, {WML_I64, 1, dim, tag, sizeof tag, true}};
    struct wml_run *r = NULL;
    ASSERT_OK(wml_run_new(s, feed, 2, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    assert_int_equal(seen.n, 5);
    static const float expect[] = {-3, 3, 3, 6, 6};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(seen.slot[i], i); /* in the order of the graph: each where it is made */
        assert_int_equal(seen.tag[i], 42);
        assert_int_equal(seen.bytes[i], sizeof x);
        assert_true(seen.first[i] == expect[i]);
    }
    struct wml_tensor_view y;
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    assert_true(((const float *)y.data)[1] == 5); /* |relu(-5) - 5| */
    wml_run_free(r);
    wml_session_close(s);
    wml_buf_release(&before);
    wml_buf_release(&after);
    wml_model_free(m);
    wml_ort_close(&cx);
}

/* Empty values, and types other than float, are shown as well. */
static void test_kinds(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    need_ort(&cx);
    struct wml_err err = {0};
    struct wml_model *m = parse("g (float[n] x) => (int64[1] y) <float16[n] h, int64[1] y0> {\nh = Cast<to = 10>(x)\ny0 = Shape(h)\ny = Neg(y0) }");
    struct wml_value *want[] = {wml_graph_find(m->graph, WML_STR("h")), wml_graph_find(m->graph, WML_STR("y0"))};
    struct seen seen = {0};
    const struct wml_observer observer = {.arg = &seen, .see = see};
    struct wml_session *s = NULL;
    ASSERT_OK(wml_flow_watch(&cx, m, want, 2, &observer, 1, &s, &err));
    const int64_t tag[WML_WATCH_TAG] = {0}, none[] = {0}, two[] = {2};
    const struct wml_tensor_view feed[] = {{WML_F32, 1, none, "", 0, true}, {WML_I64, 1, two, tag, sizeof tag, true}};
    struct wml_run *r = NULL;
    ASSERT_OK(wml_run_new(s, feed, 2, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.bytes[0], 0);
    assert_int_equal(seen.bytes[1], 8);
    wml_run_free(r);
    wml_session_close(s);
    wml_model_free(m);
    wml_ort_close(&cx);
}

/* What slot and tag say is added to every element. */
static void alter(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *v, void *out)
{
    bool half = v->dtype == WML_F16;
    size_t n = v->bytes / (half ? 2 : 4);
    *(size_t *)arg += 1;
    for (size_t i = 0; i < n; i++) wml_dtype_store((int)v->dtype, out, i, wml_dtype_load((int)v->dtype, v->data, i) + (double)(10 * slot + tag[0]));
}

static struct wml_value *add_alter(struct wml_model *m, const char *op, const char *value, struct wml_node *before, int64_t slot)
{
    struct wml_node *n = wml_node_new(before, WML_OBSERVE_DOMAIN, op);
    wml_node_add_input(n, wml_graph_find(m->graph, wml_str(value)));
    wml_node_add_input(n, wml_graph_find(m->graph, WML_STR("tag")));
    wml_attr_set_int(n, "slot", slot);
    return wml_node_add_output(n, WML_STR("altered"));
}

/* a is read by others as well, and stays as it is for them; b is changed in its own memory. */
static void test_alter(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    need_ort(&cx);
    struct wml_err err = {0};
    struct wml_model *m = parse("g (float[2] x, int64[1] tag) => (float[2] y, float[2] z) <float[2] a, float16[2] b, float[2] c> {\n"
                                "a = Neg(x)\nb = Cast<to = 10>(a)\nc = Cast<to = 1>(b)\ny = Add(c, a)\nz = Neg(a) }");
    struct wml_node *cast = wml_graph_find(m->graph, WML_STR("c"))->def, *add = wml_graph_find(m->graph, WML_STR("y"))->def;
    wml_node_set_input(cast, 0, add_alter(m, WML_ALTER_HALF_OP, "b", cast, 1));
    wml_node_set_input(add, 1, add_alter(m, WML_ALTER_OP, "a", add, 2));
    wml_model_set_opset(m, WML_OBSERVE_DOMAIN, 1);
    size_t calls = 0;
    const struct wml_observer observer = {.arg = &calls, .alter = alter};
    const struct wml_session_opts opts = {.observer = &observer};
    struct wml_session *s = NULL;
    ASSERT_OK(wml_flow_session(&cx, m, NULL, &opts, &s, &err));
    const int64_t tag[] = {3}, one[] = {1}, two[] = {2};
    const float x[] = {-3, 5};
    const struct wml_tensor_view feed[] = {{WML_F32, 1, two, x, sizeof x, true}, {WML_I64, 1, one, tag, sizeof tag, true}};
    struct wml_run *r = NULL;
    ASSERT_OK(wml_run_new(s, feed, 2, &r, &err));
    for (size_t i = 1; i <= 2; i++) { /* a second run finds nothing of the first */
        struct wml_tensor_view y, z;
        ASSERT_OK(wml_run_once(r, &err));
        ASSERT_OK(wml_run_output(r, 0, &y, &err));
        ASSERT_OK(wml_run_output(r, 1, &z, &err));
        assert_int_equal(calls, 2 * i);
        assert_true(((const float *)y.data)[0] == 3 + 13 + 3 + 23 && ((const float *)y.data)[1] == -5 + 13 - 5 + 23);
        assert_true(((const float *)z.data)[0] == -3 && ((const float *)z.data)[1] == 5);
    }
    wml_run_free(r);
    wml_session_close(s);
    wml_model_free(m);
    wml_ort_close(&cx);
}

static void test_live_bytes(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t bytes; } row[] = {
        {"g (float[2] x) => (float[2] y) { y = Neg(x) }", 8},
        {"g (float[2] x) => (float[2] y) <float[2] a, float[2] b> { a = Neg(x) b = Neg(a) y = Neg(b) }", 16},
        /* a lives beside b and c */
        {"g (float[2] x) => (float[2] y) <float[2] a, float[2] b, float[2] c> { a = Neg(x) b = Neg(a) c = Neg(b) y = Add(a, c) }", 24},
        /* 4000 and the sum */
        {"g (float[2] x) => (float y) <int64[1] s = {1000}, float[1000] a> { a = Resize(x, , , s) y = ReduceSum<keepdims = 0>(a) }", 4004},
        {"g (float[n] x) => (float[n] y) { y = Neg(x) }", 0},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_model *m = parse(row[i].text);
        assert_int_equal(wml_flow_live_bytes(m), row[i].bytes);
        wml_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_alter),
        cmocka_unit_test(test_live_bytes),
    };
    return cmocka_run_group_tests_name("flow watch", tests, NULL, NULL);
}
