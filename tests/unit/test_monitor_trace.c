/* Readers of traces: the QNN CSV with one and several partitions, lost blocks, hostile text; ORT's profile with
 * graphs inside nodes, fused nodes, events of OpenVINO. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "monitor/trace.h"

#define HEAD "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
#define OPEN(cycles) "0,BACKEND," cycles ",CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)\n"
#define NODE(id, cycles) "0,NODE," cycles ",CYCLES,BACKEND,SUB-EVENT," id " (cycles)\n"
#define SHUT(us) "0,BACKEND," us ",US,BACKEND,ROOT,Accelerator (execute) time\n"

static const struct wml_trace_row *find(const struct wml_trace *t, const char *name, size_t partition)
{
    for (size_t i = 0; i < t->row.len; i++)
        if (wml_str_is(t->row.at[i].name, name) && t->row.at[i].partition == partition) return &t->row.at[i];
    fail_msg("no row %s in partition %zu", name, partition);
    return NULL;
}

static struct wml_trace qnn(const char *csv, size_t warmup, size_t runs)
{
    struct wml_trace t = {0};
    struct wml_err err = {0};
    if (!wml_trace_qnn(wml_str(csv), warmup, runs, "QNNExecutionProvider", &t, &err)) fail_msg("%s", err.msg);
    wml_trace_finish(&t);
    return t;
}

static void test_one_partition(void **state)
{
    (void)state;
    struct wml_trace t = qnn(HEAD "0,FINALIZE,22853,US,BACKEND,ROOT,QNN (finalize) time\n"
                             "0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used\n"
                             OPEN("1000") NODE("warm:OpId_9", "900") SHUT("10")
                             OPEN("1000") NODE("/a/Conv_token_1_2:OpId_21", "500") NODE("Input OpId_2", "100") SHUT("100")
                             OPEN("2000") NODE("/a/Conv_token_1_2:OpId_21", "500") NODE("Input OpId_2", "500") SHUT("100")
                             "0,EXECUTE,150,US,BACKEND,ROOT,QNN (execute) time\n", 1, 3);
    assert_true(t.runs == 2 && t.partitions == 1 && t.row.len == 2 && t.hvx_threads == 4 && t.finalize_us == 22853);
    const struct wml_trace_row *conv = find(&t, "/a/Conv", 0), *input = find(&t, "Input", 0);
    assert_true(conv->op_id == 21 && input->op_id == 2 && conv->sample_us.len == 2);
    assert_true(conv->sample_us.at[0] == 50 && conv->sample_us.at[1] == 25 && conv->duration_us == 37.5);
    assert_true(t.accel_cycles == 1500 && t.accel_us == 100 && t.execute_us == 150);
    assert_true(conv->percent == 37.5 && conv == &t.row.at[0]);
    wml_trace_release(&t);
}

/* Ids repeat between partitions and must not be added up. */
#define RUN OPEN("100") NODE("a:OpId_2", "60") SHUT("10") OPEN("100") NODE("b:OpId_2", "30") SHUT("20")

static void test_partitions(void **state)
{
    (void)state;
    const struct { const char *csv; size_t runs, measured, dropped; } row[] = {
        {HEAD RUN RUN RUN, 3, 2, 0},
        {HEAD RUN RUN OPEN("100") NODE("a:OpId_2", "60") SHUT("10"), 3, 1, 1}, /* the last block is lost */
        {HEAD RUN RUN OPEN("100") NODE("a:OpId_2", "60"), 3, 1, 1},             /* it was never closed */
        {HEAD RUN RUN, 3, 1, 0}};                                              /* a whole run is lost */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct wml_trace t = qnn(row[i].csv, 1, row[i].runs);
        assert_int_equal(t.partitions, 2);
        assert_int_equal(t.runs, row[i].measured);
        assert_int_equal(t.dropped, row[i].dropped);
        assert_true(find(&t, "a", 0)->duration_us == 6 && find(&t, "b", 1)->duration_us == 6 && t.accel_us == 30);
        wml_trace_release(&t);
    }
}

static void test_equal_partitions(void **state)
{
    (void)state;
#define SAME OPEN("100") NODE("a:OpId_2", "50") SHUT("10")
    struct wml_trace t = qnn(HEAD SAME SAME SAME SAME SAME SAME, 1, 3);
    assert_true(t.partitions == 2 && t.runs == 2 && t.row.len == 2);
    assert_true(find(&t, "a", 0)->sample_us.len == 2 && find(&t, "a", 1)->sample_us.len == 2);
    wml_trace_release(&t);
}

static void test_totals_only(void **state)
{
    (void)state;
    struct wml_trace t = qnn(HEAD OPEN("1000") SHUT("10") "0,EXECUTE,50,US,BACKEND,ROOT,QNN (execute) time\n", 0, 1);
    assert_true(t.node_rows == 0 && t.row.len == 0 && t.execute_us == 50 && t.partitions == 0);
    wml_trace_release(&t);
}

static void test_broken_csv(void **state)
{
    (void)state;
    const char *const bad[] = {"", "a,b,c\n1,2,3\n", "Message,Time,Unit of Measurement,Event Level\n",
                               HEAD "0,\"BACKEND,1,CYCLES\n", "Message,\"Time\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wml_trace t = {0};
        struct wml_err err = {0};
        assert_false(wml_trace_qnn(wml_str(bad[i]), 0, 1, "e", &t, &err));
        assert_true(err.code != WML_OK && err.msg[0]);
        wml_trace_release(&t);
    }
    struct wml_trace t = qnn(HEAD "short,row\n" NODE("orphan:OpId_1", "5") OPEN("x") OPEN("0") NODE("a:OpId_1", "5")
                             NODE("a:OpId_", "5") NODE("OpId_3", "5") SHUT("10"), 0, 1);
    assert_true(t.row.len == 1 && t.row.at[0].duration_us == 0 && t.dropped == 3);
    wml_trace_release(&t);
}

/* --- ONNX Runtime's profile --- */

#define EVENT(name, ts, dur, args) "{\"cat\":\"Node\",\"tid\":1,\"ph\":\"X\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}}"
#define KERNEL(name, op, ep, ts, dur) EVENT(name "_kernel_time", ts, dur, "\"op_name\":\"" op "\",\"provider\":\"" ep "\"")
#define MODEL_RUN(ts, dur) EVENT("model_run", ts, dur, "")

static struct wml_trace ort(const char *json, size_t warmup, size_t runs)
{
    struct wml_trace t = {0};
    struct wml_err err = {0};
    if (!wml_trace_ort(wml_str(json), warmup, runs, &t, &err)) fail_msg("%s", err.msg);
    wml_trace_finish(&t);
    return t;
}

static void test_ort_runs(void **state)
{
    (void)state;
    struct wml_trace t = ort("[" KERNEL("c", "Conv", "CPUExecutionProvider", 110, 50) "," MODEL_RUN(100, 90) ","
                             KERNEL("c", "Conv", "CPUExecutionProvider", 210, 30) "," KERNEL("r", "Relu", "CPUExecutionProvider", 250, 10) ","
                             MODEL_RUN(200, 90) "," KERNEL("c", "Conv", "CPUExecutionProvider", 310, 10) "," MODEL_RUN(300, 90) ","
                             KERNEL("late", "Conv", "CPUExecutionProvider", 900, 10) "]", 1, 3);
    assert_true(t.runs == 2 && t.row.len == 2 && t.dropped == 1);
    const struct wml_trace_row *c = find(&t, "c", 0), *r = find(&t, "r", 0);
    assert_true(c->duration_us == 20 && c->sample_us.len == 2 && c->sample_us.at[0] == 30 && c->start_us == 10);
    assert_true(r->duration_us == 5 && r->percent == 20 && wml_str_is(r->op_type, "Relu"));
    wml_trace_release(&t);
}

static void test_graphs_inside_nodes(void **state)
{
    (void)state;
    struct wml_trace t = ort("[" MODEL_RUN(0, 1000) "," KERNEL("in", "If", "CPUExecutionProvider", 20, 60) ","
                             KERNEL("deep", "Add", "CPUExecutionProvider", 30, 40) "," KERNEL("if", "If", "CPUExecutionProvider", 10, 100) ","
                             KERNEL("after", "Add", "CPUExecutionProvider", 110, 5) "]", 0, 1);
    assert_true(find(&t, "if", 0)->duration_us == 40 && find(&t, "in", 0)->duration_us == 20 &&
                find(&t, "deep", 0)->duration_us == 40 && find(&t, "after", 0)->duration_us == 5 && t.total_us == 105);
    wml_trace_release(&t);
}

static void test_fused_and_openvino(void **state)
{
    (void)state;
#define OV(name, ts, dur) EVENT("OV::" name, ts, dur, "\"ep\":\"OpenVINOExecutionProvider\",\"ov_status\":\"EXECUTED\"," \
                                "\"ov_node_type\":\"Convolution\",\"parent_ort_event_name\":\"OpenVINOExecutionProvider_1_0_kernel_time\"")
    struct wml_trace t = ort("[" MODEL_RUN(0, 100) "," KERNEL("OpenVINOExecutionProvider_1_0", "OpenVINOExecutionProvider_1", "OpenVINOExecutionProvider", 5, 80) ","
                             OV("conv", 10, 30) "," KERNEL("s", "Softmax", "CPUExecutionProvider", 90, 5) "]", 0, 1);
    assert_true(t.row.len == 2 && t.node_rows == 1 && t.partitions == 1);
    assert_true(wml_str_is(find(&t, "conv", 0)->op_type, "Convolution"));
    wml_trace_release(&t);
    t = ort("[" MODEL_RUN(0, 100) "," KERNEL("ctx", "EPContext", "QNNExecutionProvider", 5, 80) "]", 0, 1);
    assert_true(t.row.len == 1 && t.row.at[0].fused && t.row.at[0].percent == 100);
    wml_trace_release(&t);
}

static void test_broken_profile(void **state)
{
    (void)state;
    const char *const bad[] = {"", "{}", "[", "[{]", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wml_trace t = {0};
        struct wml_err err = {0};
        assert_false(wml_trace_ort(wml_str(bad[i]), 0, 1, &t, &err));
        assert_true(err.code != WML_OK && err.msg[0]);
        wml_trace_release(&t);
    }
    const char *const empty[] = {"[]", "[1,\"x\",null,{\"name\":3}]", "[" MODEL_RUN(0, 10) "]", "[" KERNEL("c", "Conv", "e", 1, 1) "]",
                                 "[" MODEL_RUN(0, 100) "," KERNEL("c", "Conv", "e", 1, -5) "]"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct wml_trace t = ort(empty[i], 0, 1);
        assert_int_equal(t.row.len, 0);
        wml_trace_release(&t);
    }
}

#define TOTALS "\"graph_execute_us\":90,\"inf_per_s\":\"10\",\"timeline_cycles\":1000,\"percent_utilization\":5,\"total_dram_read\":1," \
               "\"total_dram_write\":2,\"total_vtcm_read\":3,\"total_vtcm_write\":4,\"peak_vtcm_alloc\":5,\"qnn_nodes\":6,\"htp_nodes\":7," \
               "\"unique_qnn_ops\":8,\"unique_htp_ops\":9"
#define QHAS(totals, operators) "{\"data\":{\"htp_overall_summary\":{\"data\":[{" totals "}]},\"qnn_op_instances_nodes\":{\"data\":[" operators "]}}}"
#define CONV "{\"qnn_op\":\"/a/Conv_token_3\",\"qnn_op_type\":\"Conv2d\",\"cycles\":250,\"percent_active_cycles\":40,\"dram_read\":0,\"vtcm_read\":0}"

static void test_qhas(void **state)
{
    (void)state;
    struct wml_trace t = {0};
    struct wml_err err = {0};
    assert_true(wml_trace_qhas(WML_STR(QHAS("\"time_us\":100," TOTALS, CONV)), "e", &t, &err));
    assert_true(t.row.len == 1 && t.has_qhas && t.total_us == 100 && t.qhas[2].v == 10);
    const struct wml_trace_row *row = &t.row.at[0];
    assert_true(wml_str_is(row->name, "/a/Conv") && wml_str_is(row->op_type, "Conv2d") && row->duration_us == 25 && row->sample_us.at[0] == 25);
    assert_true(isnan(row->htp->vtcm_hit) && isnan(row->htp->dominant_us) && row->htp->dram_read == 0);
    wml_trace_finish(&t);
    assert_true(t.row.at[0].percent == 40); /* as the EP told it */
    wml_trace_release(&t);
    static const struct { const char *json, *word; } bad[] = {
        {"", "analysis"}, {"[]", "time_us"}, {"{\"data\":7}", "time_us"}, {QHAS(TOTALS, CONV), "time_us"},
        {QHAS("\"time_us\":\"x\"," TOTALS, CONV), "time_us"}, {QHAS("\"time_us\":1," TOTALS, ""), "operators"},
        {QHAS("\"time_us\":1," TOTALS, "7"), "cycles"}, {QHAS("\"time_us\":1," TOTALS, CONV ",{\"qnn_op\":\"a\",\"cycles\":1,"
         "\"percent_active_cycles\":1}"), "qnn_op_type"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct wml_err){0};
        assert_false(wml_trace_qhas(wml_str(bad[i].json), "e", &t, &err));
        assert_true(err.code == WML_E_FORMAT && wml_str_has(wml_str(err.msg), bad[i].word));
        wml_trace_release(&t);
    }
}

static void test_qnn_names(void **state)
{
    (void)state;
    static const struct { const char *from, *to; } row[] = {
        {"", ""}, {"a", "a"}, {"/a/Conv_token_3", "/a/Conv"}, {"/a/Conv_token_3_14", "/a/Conv"}, {"a_token_1_token_2", "a_token_1"},
        {"a_token_", "a_token_"}, {"a_token", "a_token"}, {"token_1", "token_1"}, {"_token_1", ""}, {"a_token_1x", "a_token_1x"}, {"Mul_12", "Mul_12"},
        {"123_4", "123_4"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) assert_true(wml_str_is(wml_qnn_name(wml_str(row[i].from)), row[i].to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_partition),  cmocka_unit_test(test_partitions), cmocka_unit_test(test_equal_partitions),
        cmocka_unit_test(test_totals_only),    cmocka_unit_test(test_broken_csv), cmocka_unit_test(test_ort_runs),
        cmocka_unit_test(test_graphs_inside_nodes), cmocka_unit_test(test_fused_and_openvino), cmocka_unit_test(test_broken_profile), cmocka_unit_test(test_qhas),
        cmocka_unit_test(test_qnn_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
