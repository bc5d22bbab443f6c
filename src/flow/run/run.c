/* One inference: the inputs become arrays, a child runs the model, the arrays become a result. */
#include "flow/run.h"

#include "flow/output.h"
#include "flow/run/internal.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "report/render.h"

void wml_run_put_schema(const struct wml_run_call *c, struct wml_item *root, bool hint)
{
    static const struct wml_column inputs[] = {{.key = "name", .label = "Input"}, {.key = "type", .label = "Type"}, {.key = "required"},
                                               {.key = "description", .label = "Description"}};
    static const struct wml_column params[] = {{.key = "name", .label = "Parameter"}, {.key = "type", .label = "Type"},
                                               {.key = "default", .label = "Default"}, {.key = "description", .label = "Description"}};
    struct wml_buf example = {0};
    wml_buf_fmt(&example, "winml run -m %s", c->args->model);
    if (c->task->name) wml_buf_fmt(&example, " --task %s", c->task->name);
    wml_item_cstr(root, "model", "Model", c->args->model);
    wml_item_cstr(root, "task", "Task", c->task->name);
    struct wml_item *t = wml_item_table(root, "inputs", "Inputs", inputs, WML_COUNT(inputs));
    for (const struct wml_task_field *f = c->field; f->name; f++) {
        struct wml_item *row = wml_table_row(t);
        wml_item_cstr(row, "name", NULL, f->name);
        wml_item_cstr(row, "type", NULL, wml_field_kind_name(f->kind));
        wml_item_bool(row, "required", NULL, !f->optional);
        wml_item_cstr(row, "description", NULL, f->about);
        wml_buf_fmt(&example, f->kind == WML_FIELD_TEXT ? " -I %s=\"...\"" : " -I %s=[...]", f->name);
    }
    t = wml_item_table(root, "parameters", c->task->param ? "Parameters" : NULL, params, WML_COUNT(params));
    for (const struct wml_task_param *p = c->task->param; p && p->name; p++) {
        struct wml_item *row = wml_table_row(t);
        wml_item_cstr(row, "name", NULL, p->name);
        wml_item_cstr(row, "type", NULL, p->kind);
        wml_item_cstr(row, "default", NULL, p->fallback);
        wml_item_cstr(row, "description", NULL, p->about);
    }
    wml_item_str(root, "example", "Example", wml_buf_view(&example));
    if (hint) wml_item_line(root, WML_TONE_DIM, "Nothing was given, so nothing was run.");
    wml_buf_release(&example);
}

static bool open_tokenizer(struct wml_run_call *c, struct wml_err *err)
{
    if (!wml_task_has_text(c->task)) return true;
    const char *folder = c->args->tokenizer ? c->args->tokenizer : wml_arena_cstr(&c->arena, wml_path_dir(wml_str(c->path)));
    if (!wml_tok_open(folder, &c->tok, err)) {
        if (!c->args->tokenizer) err->hint[0] = 0;
        return wml_hint(err, "--tokenizer names the folder with the model's tokenizer.json");
    }
    c->work.tok = c->tok;
    return true;
}

static bool prepare(struct wml_run_call *c, struct wml_err *err)
{
    struct wml_npys none = {0};
    if (!c->args->file) return c->task->prepare(&c->work, err);
    WML_PUSH(&c->work.sample, none); /* the child reads it */
    return true;
}

static void put_head(const struct wml_run_call *c, struct wml_item *root)
{
    const struct wml_json_val *target = wml_json_get(wml_json_root(c->reply), "target");
    wml_item_cstr(root, "task", "Task", c->task->name);
    wml_item_null(root, "model_id", NULL);
    wml_item_cstr(root, "model", "Model", c->path);
    wml_item_str(root, "device", NULL, wml_json_get_str(target, "device"));
    wml_item_str(root, "ep", NULL, wml_json_get_str(target, "ep"));
    wml_item_bool(root, "simulated", NULL, wml_json_get_bool(target, "simulated", false));
    wml_item_fmt(root, NULL, "Device", "%.*s (%.*s)%s", WML_ARG(wml_json_get_str(target, "device")), WML_ARG(wml_json_get_str(target, "ep")),
                 wml_json_get_bool(target, "simulated", false) ? ", simulated" : "");
}

static bool infer(struct wml_run_call *c, struct wml_report *r, struct wml_err *err)
{
    struct wml_item *root = wml_report_root(r);
    if (!wml_run_values(c, err) || !open_tokenizer(c, err)) return false;
    uint64_t start = wml_now_ns();
    if (!prepare(c, err)) return false;
    uint64_t around = wml_now_ns() - start;
    if (!wml_run_infer(c, err)) return false;
    start = wml_now_ns();
    put_head(c, root);
    if (!c->task->finish(&c->work, root, err)) return false;
    around += wml_now_ns() - start;
    wml_item_gap(root);
    wml_item_num(root, "latency_ms", "Latency", c->run_ms + (double)around / 1e6, 2, WML_SHOW_MS);
    return true;
}

static bool write_output(const struct wml_run_args *a, struct wml_report *r, struct wml_err *err)
{
    struct wml_buf text = {0};
    const struct wml_render_opts opts = {.indent = 2};
    wml_renderer_find(a->json ? "json" : "text")->render(r, &opts, &text);
    bool ok = wml_file_write(a->output, wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}

bool wml_flow_run(const struct wml_run_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct wml_run_call c = {.args = a, .cx = cx};
    bool given = a->text || a->file || a->n_inputs;
    c.work.arena = &c.arena;
    c.work.cx = cx;
    bool ok = (!a->output || wml_output_check("Output file", a->output, a->overwrite, a->model, err)) && wml_run_find(&c, err);
    if (ok && (a->schema || !given)) wml_run_put_schema(&c, wml_report_root(r), !a->schema);
    else ok = ok && infer(&c, r, err);
    ok = ok && (!a->output || write_output(a, r, err));
    wml_task_work_release(&c.work);
    if (c.folder.len) wml_dir_remove(wml_buf_text(&c.folder));
    wml_buf_release(&c.folder);
    wml_json_free(c.reply);
    wml_tok_close(c.tok);
    wml_model_free(c.model);
    wml_arena_release(&c.arena);
    return ok;
}
