/* Detailed tracing of QNN: the traced run also left a log and the graph's schematic; the vendor's qnn-profile-viewer
 * joins both into an analysis of every operator. What is missing leaves the basic trace and a reason. */
#include "flow/perf/internal.h"

#include <math.h>

#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "os/spawn.h"
#include "os/sys.h"

enum { VIEWER_MS = 300000 };
static const uint64_t MAX_ANALYSIS = UINT64_C(1) << 30;

#if defined(_WIN32)
static const char *const parent[] = {"C:/Qualcomm/AIStack/QAIRT", "C:/Qualcomm/AIStack/QNN"};
static const char viewer_name[] = "qnn-profile-viewer.exe", reader_name[] = "QnnHtpOptraceProfilingReader.dll";
#if defined(__aarch64__)
static const char *const target[] = {"aarch64-windows-msvc", "arm64x-windows-msvc"};
#else
static const char *const target[] = {"x86_64-windows-msvc"};
#endif
#else
static const char *const parent[] = {"/opt/qcom/aistack/qairt", "/opt/qcom/aistack/qnn"};
static const char viewer_name[] = "qnn-profile-viewer", reader_name[] = "libQnnHtpOptraceProfilingReader.so";
#if defined(__aarch64__)
static const char *const target[] = {"aarch64-oe-linux-gcc11.2", "aarch64-oe-linux-gcc9.3", "aarch64-ubuntu-gcc9.4"};
#else
static const char *const target[] = {"x86_64-linux-clang"};
#endif
#endif

static bool try_sdk(struct wml_perf_run *r, struct wml_str root)
{
    for (size_t i = 0; i < WML_COUNT(target); i++) {
        const char *viewer = wml_arena_fmt(&r->arena, "%.*s/bin/%s/%s", WML_ARG(root), target[i], viewer_name).ptr;
        if (!wml_file_exists(viewer)) continue;
        r->trace.viewer = viewer;
        r->trace.viewer_libs = wml_arena_fmt(&r->arena, "%.*s/lib/%s", WML_ARG(root), target[i]).ptr;
        return true;
    }
    return false;
}

/* The newest SDK of an install folder: names are versions. */
static bool try_parent(struct wml_perf_run *r, const char *folder)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    bool found = false;
    if (!wml_dir_list(folder, &list, &ignored)) return false;
    for (size_t i = list.v.len; i-- > 0 && !found;)
        found = list.v.at[i].is_dir && try_sdk(r, wml_arena_fmt(&r->arena, "%s/%.*s", folder, WML_ARG(list.v.at[i].name)));
    wml_dir_list_release(&list);
    return found;
}

bool wml_perf_find_viewer(struct wml_perf_run *r)
{
    static const char *const variable[] = {"QNN_SDK_ROOT", "QAIRT_SDK_ROOT"};
    struct wml_buf root = {0};
    bool found = false;
    for (size_t i = 0; i < WML_COUNT(variable) && !found; i++) {
        wml_buf_clear(&root);
        if (wml_env(variable[i], &root) && root.len) found = try_sdk(r, wml_buf_view(&root));
    }
    for (size_t i = 0; i < WML_COUNT(parent) && !found; i++) found = try_parent(r, parent[i]);
    wml_buf_release(&root);
    return found;
}

static void fall_back(struct wml_perf_run *r, const char *reason, struct wml_str why)
{
    r->trace.fallback = reason;
    wml_perf_warn(r, wml_arena_fmt(&r->arena, "no detailed trace (%s): %.*s; the basic trace is taken", reason, WML_ARG(why)));
}

/* Files "*_schematic.bin" of a folder: the number, and the last one's path. */
static size_t find_schematic(struct wml_perf_run *r, struct wml_str folder, const char **path)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    size_t n = 0;
    if (!wml_dir_list(wml_arena_cstr(&r->arena, folder), &list, &ignored)) return 0;
    for (size_t i = 0; i < list.v.len; i++) {
        if (!wml_str_ends(list.v.at[i].name, "_schematic.bin")) continue;
        *path = wml_arena_fmt(&r->arena, "%.*s/%.*s", WML_ARG(folder), WML_ARG(list.v.at[i].name)).ptr;
        n++;
    }
    wml_dir_list_release(&list);
    return n;
}

/* A compiled model was made elsewhere: its schematic lies beside it, named after its only partition. */
static size_t find_beside_model(struct wml_perf_run *r, const char **path)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    struct wml_err ignored = {0};
    size_t n_main = 0;
    struct wml_str partition = WML_NO_STR, folder = wml_path_dir(wml_str(r->running));
    if (!wml_onnx_load(r->running, &m, &ignored)) return 0;
    wml_epctx_find(m, &contexts);
    for (size_t i = 0; i < contexts.v.len; i++) {
        if (!contexts.v.at[i].main) continue;
        n_main++;
        partition = contexts.v.at[i].partition;
    }
    if (n_main == 1 && partition.len) {
        *path = wml_arena_fmt(&r->arena, "%.*s/%.*s_schematic.bin", WML_ARG(folder.len ? folder : WML_STR(".")), WML_ARG(partition)).ptr;
        n_main = wml_file_exists(*path);
    } else if (n_main == 1) {
        n_main = 0;
    }
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    return n_main;
}

static const char settings[] =
    "{\"features\":{\"qhas_json\":true,\"qhas_schema\":true,\"htp_json\":true,\"runtrace\":true,\"memory_info\":true,"
    "\"traceback\":true,\"enable_input_output_flow_events\":true,\"enable_sequencer_flow_events\":true}}\n";

/* output: the viewer's; its analysis is beside it. */
static bool run_viewer(struct wml_perf_run *r, const char *log, const char *schematic, const char *stem)
{
    struct wml_err err = {0};
    struct wml_child_result result = {0};
    struct wml_buf libs = {0};
    const char *config = wml_arena_fmt(&r->arena, "%s_config.json", stem).ptr, *output = wml_arena_fmt(&r->arena, "%s.json", stem).ptr;
    const char *reader = wml_arena_fmt(&r->arena, "%s/%s", r->trace.viewer_libs, reader_name).ptr;
    const char *const argv[] = {r->trace.viewer, "--input_log", log, "--output", output, "--reader",
                                wml_file_exists(reader) ? reader : "QnnHtpOptraceProfilingReader", "--schematic", schematic,
                                "--config", config, NULL};
    bool listed = wml_env("LD_LIBRARY_PATH", &libs) && libs.len; /* Windows looks beside the program and in PATH */
    const char *const env[] = {wml_arena_fmt(&r->arena, "LD_LIBRARY_PATH=%s%s%s", r->trace.viewer_libs, listed ? ":" : "", listed ? wml_buf_text(&libs) : "").ptr, NULL};
    struct wml_spawn s = {.program = r->trace.viewer, .argv = argv, .env = env, .dir = r->trace.folder};
    struct wml_child_hooks hooks = {.cancel = r->cx->cancel, .timeout_ms = VIEWER_MS};
    wml_note_progress(r->cx, "Analysing", NULL, 0, 0, NULL);
    bool ok = wml_file_write(config, wml_str(settings), &err) && wml_child_run(&s, &hooks, &result, &err);
    if (ok && (result.how != WML_CHILD_EXIT || result.status != 0)) {
        struct wml_buf how = {0};
        struct wml_str said = wml_str_trim(wml_buf_view(&result.output));
        size_t line = wml_str_rfind(said, '\n');
        wml_child_describe(&result, &how);
        ok = wml_fail(&err, WML_E_CHILD, "%s ended with %s%s%.*s", r->trace.viewer, wml_buf_text(&how), said.len ? ": " : "",
                      WML_ARG(wml_str_sub(said, line == SIZE_MAX ? 0 : line + 1, said.len)));
        wml_buf_release(&how);
    }
    if (!ok) fall_back(r, "viewer_failed", wml_str(err.msg));
    wml_child_result_release(&result);
    wml_buf_release(&libs);
    return ok;
}

/* The analysis' rows in place of the EP's basic ones. */
static void take_rows(struct wml_perf_run *r, struct wml_trace *own, const char *ep)
{
    struct wml_trace *t = &r->trace.rows;
    size_t kept = 0;
    double rest = 0;
    for (size_t i = 0; i < t->row.len; i++) {
        if (wml_str_is(t->row.at[i].ep, ep)) {
            WML_VEC_RELEASE(&t->row.at[i].sample_us);
            continue;
        }
        rest += t->row.at[i].duration_us;
        t->row.at[kept++] = t->row.at[i];
    }
    t->row.len = kept;
    for (size_t i = 0; i < own->row.len; i++) {
        struct wml_trace_row row = own->row.at[i];
        struct wml_trace_htp *htp = WML_NEW(&t->arena, struct wml_trace_htp);
        *htp = *row.htp;
        row.htp = htp;
        row.name = wml_arena_str(&t->arena, row.name);
        row.op_type = wml_arena_str(&t->arena, row.op_type);
        row.ep = wml_arena_str(&t->arena, row.ep);
        WML_PUSH(&t->row, row);
    }
    own->row.len = 0; /* the samples moved */
    memcpy(t->qhas, own->qhas, sizeof t->qhas);
    t->has_qhas = true;
    t->total_us = own->total_us + rest;
}

static void read_analysis(struct wml_perf_run *r, const char *path, const char *ep)
{
    struct wml_trace own = {0};
    struct wml_buf text = {0};
    struct wml_err err = {0};
    if (!wml_file_info(path).size) {
        fall_back(r, "qhas_output_missing", wml_arena_fmt(&r->arena, "%s ran well and wrote no %s", r->trace.viewer, path));
    } else if (!wml_file_read(path, MAX_ANALYSIS, &text, &err) || !wml_trace_qhas(wml_buf_view(&text), ep, &own, &err)) {
        fall_back(r, "qhas_parse_failed", wml_arena_fmt(&r->arena, "%s: %s", path, err.msg));
    } else {
        take_rows(r, &own, ep);
        r->trace.qhas = path;
    }
    wml_trace_release(&own);
    wml_buf_release(&text);
}

void wml_perf_detail(struct wml_perf_run *r, const char *csv, size_t partitions, const char *ep)
{
    const char *stem = wml_arena_fmt(&r->arena, "%.*s", WML_ARG(wml_str_sub(wml_str(csv), 0, strlen(csv) - 4))).ptr, *schematic = NULL;
    const char *log = wml_arena_fmt(&r->arena, "%s_qnn.log", stem).ptr;
    size_t n = find_schematic(r, wml_str(r->trace.folder), &schematic);
    if (!n && r->compiled) n = find_beside_model(r, &schematic);
    if (n > 1 || partitions > 1) {
        fall_back(r, "multiple_partitions", wml_arena_fmt(&r->arena, "the viewer takes a graph in one part, this one has %zu", WML_MAX(n, partitions)));
    } else if (!wml_file_info(log).size) {
        fall_back(r, "qnn_log_missing", wml_arena_fmt(&r->arena, "%s was not written", log));
    } else if (!n) {
        fall_back(r, "schematic_missing", r->compiled ? WML_STR("there is no <partition>_schematic.bin beside the compiled model; trace the model it was made from")
                                                      : WML_STR("the EP left no <partition>_schematic.bin"));
    } else {
        const char *output = wml_arena_fmt(&r->arena, "%s_qhas_output", stem).ptr;
        r->trace.schematic = schematic;
        if (run_viewer(r, log, schematic, output))
            read_analysis(r, wml_arena_fmt(&r->arena, "%s_qnn_htp_analysis_summary.json", output).ptr, ep);
    }
}
