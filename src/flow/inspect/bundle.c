/* What is in a GenAI bundle: its stages, what each loads and runs on, and what is missing. No runtime is asked. */
#include "flow/inspect/bundle.h"
#include "genai/bundle.h"
#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"

struct stage_facts {
    uint64_t bytes;   /* model and what it refers to */
    size_t missing;   /* files */
    struct wml_str source; /* the EP that parts were compiled for; in the arena */
    size_t compiled, nodes;
    char trouble[256];
};

static uint64_t size_of(const char *dir, struct wml_str name, size_t *missing)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(dir), name);
    struct wml_file_info info = wml_file_info(wml_buf_text(&path));
    if (info.kind != WML_FILE_REGULAR) ++*missing;
    wml_buf_release(&path);
    return info.size;
}

static void look(const struct wml_bundle *b, const struct wml_bundle_stage *s, struct wml_arena *arena, struct stage_facts *f)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    struct wml_err err = {0};
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(b->dir), wml_str(s->file));
    if (wml_onnx_load(wml_buf_text(&path), &m, &err)) {
        struct wml_onnx_files files = wml_onnx_files(m);
        f->bytes = size_of(b->dir, wml_str(s->file), &f->missing);
        for (size_t i = 0; i < files.len; i++)
            if (wml_path_is_inside(files.location[i])) f->bytes += size_of(b->dir, files.location[i], &f->missing);
        wml_epctx_find(m, &contexts);
        f->compiled = contexts.v.len;
        f->nodes = contexts.v.len + contexts.other_nodes;
        if (contexts.v.len) f->source = wml_arena_str(arena, contexts.v.at[0].source);
    } else {
        snprintf(f->trouble, sizeof f->trouble, "%.250s", wml_file_exists(wml_buf_text(&path)) ? err.msg : "missing");
    }
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    wml_buf_release(&path);
}

static void state_of(const struct stage_facts *f, struct wml_buf *out)
{
    if (f->trouble[0]) wml_buf_cstr(out, f->trouble);
    else if (f->compiled) wml_buf_fmt(out, "compiled for %.*s", WML_ARG(f->source.len ? f->source : WML_STR("an EP")));
    else wml_buf_fmt(out, "%zu node%s", f->nodes, f->nodes == 1 ? "" : "s");
    if (f->missing) wml_buf_fmt(out, ", %zu file%s missing", f->missing, f->missing == 1 ? "" : "s");
}

static void put_providers(struct wml_item *stage, const struct wml_bundle_stage *s)
{
    struct wml_item *list = wml_item_array(stage, "providers", NULL);
    for (size_t i = 0; i < s->n_providers; i++) {
        struct wml_item *p = wml_item_object(list, NULL, NULL);
        wml_item_cstr(p, "name", NULL, s->provider[i].name);
        struct wml_item *options = wml_item_object(p, "options", NULL);
        for (size_t k = 0; k < s->provider[i].n_options; k++)
            wml_item_cstr(options, wml_item_name(options, wml_str(s->provider[i].option[k].key)), NULL, s->provider[i].option[k].value);
    }
}

static void put_stage(const struct wml_bundle *b, const struct wml_bundle_stage *s, struct wml_item *stages, struct wml_item *table)
{
    struct wml_arena arena = {0};
    struct stage_facts f = {0};
    struct wml_buf state = {0}, eps = {0};
    look(b, s, &arena, &f);
    state_of(&f, &state);
    for (size_t i = 0; i < s->n_providers; i++) wml_buf_fmt(&eps, "%s%s", i ? ", " : "", s->provider[i].name);
    struct wml_item *o = wml_item_object(stages, NULL, NULL), *row = wml_table_row(table);
    wml_item_cstr(o, "stage", NULL, s->name);
    wml_item_cstr(o, "file", NULL, s->file);
    wml_item_int(o, "bytes", NULL, (int64_t)f.bytes, WML_SHOW_PLAIN);
    wml_item_int(o, "nodes", NULL, (int64_t)f.nodes, WML_SHOW_PLAIN);
    wml_item_int(o, "compiled_parts", NULL, (int64_t)f.compiled, WML_SHOW_PLAIN);
    wml_item_str(o, "compiled_for", NULL, f.compiled ? f.source : WML_NO_STR);
    wml_item_int(o, "missing_files", NULL, (int64_t)f.missing, WML_SHOW_PLAIN);
    wml_item_cstr(o, "error", NULL, f.trouble[0] ? f.trouble : NULL);
    put_providers(o, s);
    wml_item_cstr(row, NULL, "Stage", s->name);
    wml_item_cstr(row, NULL, "Model", s->file);
    wml_item_int(row, NULL, "Size", (int64_t)f.bytes, WML_SHOW_BYTES);
    wml_item_cstr(row, NULL, "Runs on", eps.len ? wml_buf_text(&eps) : "cpu");
    wml_item_str(row, NULL, "State", wml_buf_view(&state));
    if (f.trouble[0] || f.missing) wml_item_tone(row, WML_TONE_BAD);
    wml_buf_release(&state);
    wml_buf_release(&eps);
    wml_arena_release(&arena);
}

bool wml_flow_inspect_bundle(const char *dir, struct wml_report *out, struct wml_err *err)
{
    static const struct wml_column columns[] = {
        {.label = "Stage"}, {.label = "Model", .max_width = 40}, {.label = "Size", .right = true}, {.label = "Runs on"}, {.label = "State"}};
    static const char *const beside[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
    struct wml_bundle b;
    struct wml_item *root = wml_report_root(out);
    if (!wml_bundle_open(dir, &b, err)) return false;
    const struct wml_json_val *model = wml_json_get(wml_json_root(b.doc), "model");
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "kind", NULL, "bundle");
    wml_item_cstr(root, "bundle", "Bundle", dir);
    wml_item_cstr(root, "type", "Type", b.type);
    wml_item_int(root, "context_length", "Context", b.context_length, WML_SHOW_COUNT);
    wml_item_int(root, "vocab_size", "Vocabulary", wml_json_get_int(model, "vocab_size", 0), WML_SHOW_COUNT);
    wml_item_cstr(root, "device", "Device", wml_bundle_device(&b));
    struct wml_item *files = wml_item_object(root, "files", NULL), *stages = wml_item_array(root, "stages", NULL);
    for (size_t i = 0; i < WML_COUNT(beside); i++) {
        size_t missing = 0;
        size_of(dir, wml_str(beside[i]), &missing);
        wml_item_bool(files, beside[i], NULL, !missing);
        if (missing && i == 0) wml_item_line(root, WML_TONE_BAD, "%s is missing", beside[i]);
    }
    struct wml_item *table = wml_item_table(root, NULL, "Stages", columns, WML_COUNT(columns));
    for (size_t i = 0; i < b.n_stages; i++) put_stage(&b, &b.stage[i], stages, table);
    wml_bundle_close(&b);
    return true;
}
