/* Conversion between operator sets on graphs as text: what comes out, and what is refused with its reason. The answers are
 * compared in tests/parity/test_opset.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "opset/adapt.h"
#include "opset/opset.h"

static struct wml_model *read_model(int64_t opset, const char *text)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    if (!wml_model_parse(wml_str(text), &m, &err)) fail_msg("%s\n%s", err.msg, text);
    wml_model_set_opset(m, "", opset);
    return m;
}

struct row {
    int64_t from, to;
    const char *before, *after; /* after: the graph on one line, or the reason of a refusal */
};

static const struct row made[] = {
    {11, 13, "g (float[1,3] x) => (y) { y = Squeeze <axes = [0]> (x) }", "g (float[1,3] x) => (y) <int64[1] axes = {0}> { y = Squeeze(x, axes) }"},
    {13, 11, "g (float[1,3] x) => (y) <int64[1] a = {0}> { y = Squeeze(x, a) }", "g (float[1,3] x) => (y) { y = Squeeze <axes = [0]> (x) }"},
    {25, 11, "g (x) => (y) { y = Relu(x) }", "g (x) => (y) { y = Relu(x) }"},
    {18, 17, "g (float[2,6] x) => (a, b) { a, b = Split <axis = 1, num_outputs = 2> (x) }", "g (float[2,6] x) => (a, b) { a, b = Split <axis = 1> (x) }"},
    {18, 17, "g (float[3] x) => (a, b) { a, b = Split <num_outputs = 2> (x) }", "g (float[3] x) => (a, b) <int64[2] split = {2, 1}> { a, b = Split(x, split) }"},
    {13, 12, "g (float[2,3] x) => (y) { y = Softmax(x) }", "g (float[2,3] x) => (y) { y = Softmax <axis = 1> (x) }"},
    {13, 12, "g (x) => (y) { y = Softmax(x) }", "g (x) => (y) { y = Softmax <axis = -1> (x) }"},
    {14, 13, "g (float[3] x) => (y) { [n] y = HardSwish(x) }",
     "g (float[3] x) => (y) { [n_HardSigmoid] n_HardSigmoid_1 = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) [n] y = Mul(x, n_HardSigmoid_1) }"},
    {16, 13, "g (x, p) => (y) { y = If <then_branch = t () => (a) { a = ScatterND <reduction = \"none\"> (x, x, x) }> (p) }",
     "g (x, p) => (y) { y = If <then_branch = t () => (a) { a = ScatterND(x, x, x) }> (p) }"},
    {20, 19, "g (float[1,1,2,2] x, w) => (y) { y = GridSample <mode = \"cubic\"> (x, w) }", "g (float[1,1,2,2] x, w) => (y) { y = GridSample <mode = \"bicubic\"> (x, w) }"},
    {17, 13, "g (x) => (y) { y = com.microsoft.Einsum(x) }", "g (x) => (y) { y = com.microsoft.Einsum(x) }"},
    {17, 13, "g (x) => (y) { y = ai.onnx.Trilu(x) }", "the type of 'x' is not known"},
    {13, 11, "g (x) => (y) { [e] y = Einsum <equation = \"ij\"> (x) }", "node 'e' (Einsum, index 0): Einsum came with opset 12"},
    {13, 11, "g (x) => (y) { h = Einsum(x) y = Einsum(h) }", "(and 1 more node)"},
    {14, 13, "g (int8[3] x) => (y) { y = Add(x, x) }", "it has no int8 ('x') below opset 14"},
    {14, 13, "g (seq(float[1]) x) => (y) { y = Identity(x) }", "it has no sequences ('x') below opset 14"},
    {13, 12, "g (x, int64[1] a) => (y) { y = Squeeze(x, a) }", "its axes are computed ('a')"},
    {13, 12, "g (x, int64[1] a = {0}) => (y) { y = Squeeze(x, a) }", "its axes are computed ('a')"},
    {19, 18, "g (x) => (y) { y = Pad <mode = \"wrap\"> (x, x) }", "mode = 'wrap' needs opset 19"},
    {19, 18, "g (x) => (y) { y = AveragePool <dilations = [1, 2]> (x) }", "its dilations needs opset 19"},
    {24, 23, "g (q) => (y) { y = Attention(q, q, q, \"\", \"\", \"\", q) }", "its input 6 needs opset 24"},
    {10, 13, "g (x) => (y) { y = Relu(x) }", "uses opset 10"},
    {13, 26, "g (x) => (y) { y = Relu(x) }", "uses opset 26"},
};

static void test_conversions(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(made); i++) {
        const struct row *t = &made[i];
        struct wml_model *m = read_model(t->from, t->before);
        struct wml_err err = {0};
        struct wml_buf out = {0};
        size_t n_unsure;
        bool ok = wml_opset_convert(m, t->to, &n_unsure, &err);
        wml_model_text(m, WML_TEXT_ONE_LINE, &out);
        if (strncmp(t->after, "g (", 3) == 0) {
            if (!ok) fail_msg("%s: %s", t->before, err.msg);
            assert_string_equal(wml_buf_text(&out), t->after);
            assert_int_equal(wml_model_opset(m, ""), t->to);
        } else {
            assert_false(ok);
            if (!strstr(err.msg, t->after)) fail_msg("%s: %s", t->after, err.msg);
        }
        wml_buf_release(&out);
        wml_model_free(m);
    }
}

/* Two versions up and the whole way down, node by node over every operator with rows: whatever is said, nothing breaks. */
static void test_every_operator(void **state)
{
    (void)state;
    for (size_t i = 0; i < wml_opset_n_rows; i++) {
        for (int64_t from = WML_OPSET_FIRST; from <= WML_OPSET_LAST; from += 7) {
            for (int64_t to = WML_OPSET_FIRST; to <= WML_OPSET_LAST; to += 7) {
                char text[256];
                struct wml_err err = {0};
                size_t n_unsure;
                snprintf(text, sizeof text, "g (float[2,4,3] x, a, b) => (y) <int64[1] k = {1}> { y, z = %s(x, k, a, b) }", wml_opset_rows[i].op);
                struct wml_model *m = read_model(from, text);
                if (!wml_opset_convert(m, to, &n_unsure, &err)) assert_true(err.msg[0] && err.hint[0]);
                wml_model_free(m);
            }
        }
    }
}

static void test_missing_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < wml_opset_n_rows; i++) {
        char text[128];
        struct wml_err err = {0};
        size_t n_unsure;
        int64_t version = wml_opset_rows[i].version;
        for (int64_t to = version - 1; to <= version; to++) {
            snprintf(text, sizeof text, "g () => () { %s() }", wml_opset_rows[i].op);
            struct wml_model *m = read_model(version + version - 1 - to, text);
            wml_opset_convert(m, to, &n_unsure, &err);
            wml_model_free(m);
        }
    }
}

static void test_ir(void **state)
{
    static const struct { int64_t from, to, before, after; } ir[] = {{17, 13, 8, 7}, {13, 21, 7, 10}, {17, 18, 9, 9}, {21, 11, 10, 6}};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(ir); i++) {
        struct wml_model *m = read_model(ir[i].from, "g (x) => (y) { y = Relu(x) }");
        struct wml_err err = {0};
        size_t n_unsure;
        m->ir_version = ir[i].before;
        assert_true(wml_opset_convert(m, ir[i].to, &n_unsure, &err));
        assert_int_equal(m->ir_version, ir[i].after);
        wml_model_free(m);
    }
}

static void test_slots(void **state)
{
    (void)state;
    assert_true(wml_opset_slot("02*>0", false, 0));
    assert_false(wml_opset_slot("02*>0", false, 1));
    assert_true(wml_opset_slot("02*>0", false, 9));
    assert_true(wml_opset_slot("02*>0", true, 0));
    assert_false(wml_opset_slot("02*>0", true, 1));
    assert_false(wml_opset_slot(">0", false, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions), cmocka_unit_test(test_every_operator), cmocka_unit_test(test_missing_inputs),
        cmocka_unit_test(test_ir), cmocka_unit_test(test_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
