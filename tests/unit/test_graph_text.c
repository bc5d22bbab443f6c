/* The text form: what is printed reads back to the same, and what is no text form is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text.h"

static struct wml_model *read_model(const char *text)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    if (!wml_model_parse(wml_str(text), &m, &err)) fail_msg("%s\n%s", err.msg, text);
    return m;
}

static const char *const same[] = { /* printed as they stand here, with types, on one line */
    "g () => () { }",
    "g (float x) => (float x) { }",
    "g (float[2,n] x, int64[...] y, string[?] z) => (float[2,n] x) { }",
    "g (seq(float[1]) s, optional(seq(int8)) o, map(int64, string) m, sparse(float[3,4]) p) => (seq(float[1]) s) { }",
    "g (x) => (y) { y = Relu(x) }",
    "g (x) => (y) { [relu1] y = Relu(x) }",
    "g (x) => (y) { [\"a/b:0\"] y = Relu(x) }",
    "g (\"a/b\") => (\"c d\") { \"c d\" = Relu(\"a/b\") }",
    "\"main graph\" (\"1x\") => (y) { y = Neg(\"1x\") }",
    "g (\"\\\"\\\\\\n\\x01\\xff\") => (y) { y = Neg(\"\\\"\\\\\\n\\x01\\xff\") }",
    "g (float[\"a b\",n] x) => (float[\"a b\",n] x) { }",
    "g (float x, seq) => (seq, float) { float = Neg(x) }",
    "g (x) => (y) <float[3] k = {1.0, 2.5, -0.0}> { y = Add(x, k) }",
    "g (x) => (y) <float k = {0.1}> { y = Add(x, k) }",
    "g (x) => (y) <float[0] k = {}> { y = Add(x, k) }",
    "g (x) => (y) <float[4] k = {inf, -inf, nan, 3.4028235e+38}> { y = Add(x, k) }",
    "g (x) => (y) <double[2] k = {0.1, 1e-300}> { y = Add(x, k) }",
    "g (x) => (y) <float16[3] k = {1.0, 0.0999756, inf}, bfloat16 b = {0.100098}> { y = Add(k, b) }",
    "g () => (y) <int64[3] k = {9223372036854775807, -9223372036854775808, 0}> { y = Neg(k) }",
    "g () => (y) <uint64[2] k = {18446744073709551615, 0}> { y = Neg(k) }",
    "g () => (y) <int8[2] a = {-128, 127}, uint8[1] b = {255}, bool[2] c = {1, 0}> { y = F(a, b, c) }",
    "g () => (y) <int4[3] a = {-8, 7, -1}, uint4[3] b = {15, 0, 7}, uint2[5] c = {3, 2, 1, 0, 3}> { y = F(a, b, c) }",
    "g () => (y) <float8e4m3fn[2] a = {0x3c, 0xff}, float4e2m1[3] b = {0x0f, 0x01, 0x02}> { y = F(a, b) }",
    "g () => (y) <complex64[2] k = {1.0, 2.0, 3.0, -4.5}> { y = Neg(k) }",
    "g () => (y) <string[2] k = {\"a\", \"\\\"b\\n\"}> { y = Neg(k) }",
    "g () => (y) <float[3,4] s = sparse(float[2] {1.0, 2.0}, int64[2] {1, 5})> { y = Neg(s) }",
    "g (float[2] x = {1.0, 2.0}) => (y) { y = Neg(x) }",
    "g (float[n] x = float[2] {1.0, 2.0}) => (y) { y = Neg(x) }",
    "g (x) => (y) <float[2,?] h, seq(float) s> { h, s = Neg(x) y = F(h, s) }",
    "g (x) => (y) { y = com.microsoft.FusedMatMul(x, x) }",
    "g (x) => (y) { y = \"my domain\".\"an op\"(x, x) }",
    "g (x) => (y) { y = local.f:variant(x) }",
    "g (x) => (y) { y = Clip(x, \"\", x) }",
    "g (x) => (y) { \"\", y = Split(x) }",
    "g (x) => (x) { Print(x) [p] local.Print(x) }",
    "g (x) => (y) { y = F <i = -1, f = 1.0, e = 1e+30, s = \"text\", l = [1, 2], m = [1.0, 0.5], n = [\"a\", \"\"]> (x) }",
    "g (x) => (y) { y = F <i: ints = [], f: floats = [], s: strings = [], t: tensors = []> (x) }",
    "g (x) => (y) { y = F <f = inf, g = nan, h = -inf> (x) }",
    "g (x) => (y) { y = F <t = float[2] {1.0, 2.0}, u = int64 {3}, l = [float {1.0}, float {2.0}]> (x) }",
    "g (x) => (y) { y = F <t: type_proto = float[2,n], u: type_protos = [seq(float), int64[...]]> (x) }",
    "g (x) => (y) { y = F <s: sparse_tensor = float[9] sparse(float[1] {1.0}, int64[1] {5})> (x) }",
    "g (x) => (y) { y = F <a: float = @alpha, b: ints = @\"be ta\", c: undefined> (x) }",
    ("g (bool c, float x) => (y) { y = If <then_branch = t () => (float a) { a = Neg(x) }, "
    "else_branch = \"e l\" () => (float b) <float k = {1.0}> { b = Add(x, k) }> (c) }"),
    "g (x) => (y) { y = F <l = [a (p) => (p) { }, b (q) => (q) { }]> (x) }",
};

static void print_to(struct wml_model *m, unsigned flags, struct wml_buf *out)
{
    wml_buf_clear(out);
    wml_model_text(m, flags, out);
}

static void round_trip(void **state)
{
    const unsigned flags = WML_TEXT_ONE_LINE | WML_TEXT_TYPES | WML_TEXT_ALL_DATA;
    struct wml_buf out = {0}, long_form = {0};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(same); i++) {
        struct wml_model *m = read_model(same[i]);
        print_to(m, flags, &out);
        assert_string_equal(wml_buf_text(&out), same[i]);
        /* with header and lines */
        print_to(m, flags ^ WML_TEXT_ONE_LINE ^ WML_TEXT_HEADER, &long_form);
        wml_model_free(m);
        m = read_model(wml_buf_text(&long_form));
        print_to(m, flags, &out);
        assert_string_equal(wml_buf_text(&out), same[i]);
        wml_model_free(m);
    }
    wml_buf_release(&out);
    wml_buf_release(&long_form);
}

static const struct { const char *text, *printed; } other[] = { /* ways of writing that are printed otherwise */
    {"g(x)=>(y){y=Relu(x)}", "g (x) => (y) { y = Relu(x) }"},
    {"# a comment\ng (x) => # another\n (y) { y = Relu(x) } # end", "g (x) => (y) { y = Relu(x) }"},
    {"(x) => (y) { y = Relu(x) }", "\"\" (x) => (y) { y = Relu(x) }"},
    {"g (float[] x) => (y) { y = Clip(x,,x) }", "g (float[...] x) => (y) { y = Clip(x, \"\", x) }"},
    {"g (x) => (y) { , y = Split(x) }", "g (x) => (y) { \"\", y = Split(x) }"},
    {"g (x) => (y) { y = F (x) <a: float = 1, b: floats = [1, 2]> }", "g (x) => (y) { y = F <a = 1.0, b = [1.0, 2.0]> (x) }"},
    {"g (x) => (y) { y = F <a = [1, 2.5, 3]> (x) }", "g (x) => (y) { y = F <a = [1.0, 2.5, 3.0]> (x) }"},
    {"g (x) => (y) <FLOAT32[1] k = {1}, bool b = {true}> { y = F(k, b) }",
     "g (x) => (y) <float[1] k = {1.0}, bool b = {1}> { y = F(k, b) }"},
    {"g (x) => (y) <> { y = F <> (x) }", "g (x) => (y) { y = F(x) }"},
    {"g () => (y) <float16[2] k = {0x3c00, 1}, float b = {0x40000000}, double d = {0x3ff0000000000000}> { y = F(k, b, d) }",
     "g () => (y) <float16[2] k = {1.0, 1.0}, float b = {2.0}, double d = {1.0}> { y = F(k, b, d) }"},
    /* not in order */
    {"g (x) => (y) { y = Neg(h) h = Neg(x) }", "g (x) => (y) { h = Neg(x) y = Neg(h) }"},
};

static void other_spellings(void **state)
{
    struct wml_buf out = {0};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(other); i++) {
        struct wml_model *m = read_model(other[i].text);
        print_to(m, WML_TEXT_ONE_LINE, &out);
        assert_string_equal(wml_buf_text(&out), other[i].printed);
        wml_model_free(m);
    }
    wml_buf_release(&out);
}

static const struct { const char *text, *message; } wrong[] = {
    {"", "line 1, column 1: expected '(' before the graph's inputs, found the end of the text"},
    {"g (x", "line 1, column 5: expected ')' after the graph's inputs, found the end of the text"},
    {"g (x) => (y) {\n    y = Relu(x\n}", "line 3, column 1: expected ')' after the inputs, found '}'"},
    {"g (x) => (y) { y = Relu(x) } }", "line 1, column 30: expected the end of the text after the graph, found '}'"},
    {"g (flaot[2] x) => (x) {}", "line 1, column 4: 'flaot' is no type"},
    {"g (float[-2] x) => (x) {}", "line 1, column 10: a size is negative"},
    {"g (float[2 x) => (x) {}", "line 1, column 12: expected ']' after the sizes, found 'x'"},
    {"g () => (k) <float[2] k = {1}> {}", "line 1, column 27: 1 elements are written, the type needs 2"},
    {"g () => (k) <float[n] k = {1}> {}", "line 1, column 27: a constant needs a tensor type whose sizes are all known"},
    {"g () => (k) <float[4294967296,4294967296] k = {1}> {}", "a constant needs a tensor type whose sizes"},
    {"g () => (k) <float[99999999999] k = {}> {}", "line 1, column 37: 0 elements are written, the type needs 99999999999"},
    {"g () => (k) <float[20] k = {...}> {}", "line 1, column 28: the elements were left out when this was printed"},
    {"g () => (k) <int8 k = {128}> {}", "line 1, column 24: the number does not fit type int8"},
    {"g () => (k) <uint8 k = {-1}> {}", "line 1, column 25: the number does not fit type uint8"},
    {"g () => (k) <int64 k = {1.5}> {}", "line 1, column 25: an element of type int64 is a whole number"},
    {"g () => (k) <int64 k = {99999999999999999999}> {}", "line 1, column 25: the number '99999999999999999999' does not fit"},
    {"g () => (k) <float k = {abc}> {}", "line 1, column 25: expected a number, found 'abc'"},
    {"g () => (k) <float16 k = {0x10000}> {}", "line 1, column 27: the number has more than 16 bits"},
    {"g () => (k) <double k = {0x12345678123456781}> {}", "line 1, column 26: the number has more than 64 bits"},
    {"g () => (k) <float8e5m2 k = {1.0}> {}", "line 1, column 30: type float8e5m2 is written by its bits, as 0x3c"},
    {"g () => (y) { y = F <a> () }", "line 1, column 23: expected '=' after the attribute's name, found '>'"},
    {"g () => (y) { y = F <a = []> () }", "an empty list needs a type"},
    {"g () => (y) { y = F <a = @r> () }", "line 1, column 26: a reference needs the attribute's type"},
    {"g () => (y) { y = F <a: bool = 1> () }", "line 1, column 25: 'bool' is no type of attributes"},
    {"g () => (y) { y = F <a: int = 1.5> () }", "line 1, column 31: expected a whole number"},
    {"g () => (y) { y = F <a = [1, \"b\"]> () }", "line 1, column 30: expected a number, found '\"'"},
    {"g () => (y) { y = \"a", "line 1, column 19: the string that starts here has no end"},
    {"g () => (\"\\q\") { }", "line 1, column 12: unknown escape"},
    {"<opset: 3> g () => () { }", "line 1, column 2: 'opset' is no key of the header"},
    {"g (x) => (y) { y = \x01", "line 1, column 20: expected an operator, found byte 0x01"},
    /* linking */
    {"g (x) => (y) { }", "output 0 ('y') is produced by nothing"},
    {"g (x) => (y) { y = Neg(z) }", "reads 'z', which nothing defines"},
    {"g (x, x) => (x) { }", "lists the input 'x' twice"},
    {"g (x) => (y) { [a] y = Neg(x) [b] y = Neg(x) }", "value 'y' is produced by node 'a' and node 'b'"},
    {"g () => (k) <float k = {1}, float k = {2}> { }", "two initializers named 'k'"},
};

static void refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(wrong); i++) {
        struct wml_err err = {0};
        struct wml_model *m = NULL;
        if (wml_model_parse(wml_str(wrong[i].text), &m, &err)) fail_msg("accepted: %s", wrong[i].text);
        assert_null(m);
        assert_int_equal(err.code, WML_E_FORMAT);
        if (!strstr(err.msg, wrong[i].message)) fail_msg("%s\n  said: %s\n  not: %s", wrong[i].text, err.msg, wrong[i].message);
    }
}

/* Every text that ends too early is refused, without reading beyond its end. */
static void cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(same); i++) {
        for (size_t n = 0; n < strlen(same[i]); n++) {
            struct wml_err err = {0};
            struct wml_model *m = NULL;
            char *text = malloc(n + 1); /* so that the sanitizer sees the end */
            if (n) memcpy(text, same[i], n);
            assert_false(wml_model_parse((struct wml_str){text, n}, &m, &err));
            assert_true(err.msg[0]);
            free(text);
        }
    }
}

static void nesting(void **state)
{
    struct wml_buf b = {0};
    struct wml_err err = {0};
    struct wml_model *m = NULL;
    (void)state;
    for (int i = 0; i < 5000; i++) wml_buf_cstr(&b, "g () => () { F <a = ");
    assert_false(wml_model_parse(wml_buf_view(&b), &m, &err));
    assert_non_null(strstr(err.msg, "nested deeper than 100 levels"));
    wml_buf_clear(&b);
    wml_buf_cstr(&b, "g (");
    for (int i = 0; i < 5000; i++) wml_buf_cstr(&b, "seq(");
    assert_false(wml_model_parse(wml_buf_view(&b), &m, &err));
    assert_non_null(strstr(err.msg, "nested deeper than 100 levels"));
    wml_buf_release(&b);
}

static void header(void **state)
{
    struct wml_buf out = {0};
    struct wml_model *m = read_model("g (x) => (y) { y = com.microsoft.Gelu(x) }");
    (void)state;
    print_to(m, WML_TEXT_ONE_LINE | WML_TEXT_HEADER, &out);
    assert_string_equal(wml_buf_text(&out), "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> "
                                            "g (x) => (y) { y = com.microsoft.Gelu(x) }");
    wml_model_free(m);
    m = read_model("<ir_version: 8, producer_name: \"me\", model_version: 3, opset_import: [\"\" : 17]> g () => () { }");
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->model_version, 3);
    assert_true(wml_str_is(m->producer_name, "me"));
    assert_int_equal(wml_model_opset(m, ""), 17);
    wml_model_free(m);
    wml_buf_release(&out);
}

static void lines_and_long_constants(void **state)
{
    struct wml_buf out = {0};
    struct wml_model *m = read_model("g (x) => (y) <int8[17] k = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1}, float c = {1}> "
                                     "{ h = Add(x, k) y = If <then_branch = t () => (a) { a = Neg(h) }> (c) }");
    (void)state;
    print_to(m, 0, &out);
    assert_string_equal(wml_buf_text(&out), "g (x) => (y) <int8[17] k = {...},\n"
                                            "    float c = {1.0}> {\n"
                                            "    h = Add(x, k)\n"
                                            "    y = If <then_branch = t () => (a) {\n"
                                            "        a = Neg(h)\n"
                                            "    }> (c)\n"
                                            "}\n");
    wml_buf_clear(&out);
    wml_node_text(m->graph->last, &out);
    assert_string_equal(wml_buf_text(&out), "y = If <then_branch = t () => (a) { a = Neg(h) }> (c)");
    wml_model_free(m);
    wml_buf_release(&out);
}

static void linked(void **state)
{
    struct wml_model *m = read_model("g (x) => (y) { h = Neg(x) y = If <then_branch = t () => (a) { a = Add(h, h) }> (x) }");
    struct wml_value *h = wml_graph_find(m->graph, WML_STR("h"));
    (void)state;
    assert_int_equal(h->n_uses, 2); /* captured */
    assert_ptr_equal(h->uses->node->graph->outer, m->graph);
    assert_int_equal(m->graph->n_nodes, 2);
    wml_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(other_spellings), cmocka_unit_test(refused),
        cmocka_unit_test(cut_anywhere), cmocka_unit_test(nesting), cmocka_unit_test(header),
        cmocka_unit_test(lines_and_long_constants), cmocka_unit_test(linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
