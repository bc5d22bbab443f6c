/* Values shown while a model runs: what is seen, when, and that the model is as it was. */
#include "ort_fixture.h"

#include <string.h>

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
    const struct wml_observer observer = {&seen, see};
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
    const struct wml_observer observer = {&seen, see};
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
        cmocka_unit_test(test_live_bytes),
    };
    return cmocka_run_group_tests_name("flow watch", tests, NULL, NULL);
}
