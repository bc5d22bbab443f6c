/* flow/inspect/hf_open.c - what a Hugging Face model says of itself: its documents, and its weights where they are here. */
#include "flow/checkpoint.h"
#include "flow/inspect/hf.h"
#include "os/file.h"
#include "os/path.h"

static const char *file_of(struct wml_hf *h, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_buf_view(&h->folder), wml_str(name));
    const char *copy = wml_arena_cstr(&h->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

static bool load_config(struct wml_hf *h, struct wml_err *err)
{
    const char *path = file_of(h, "config.json");
    if (!wml_file_exists(path)) {
        wml_fail(err, WML_E_NOT_FOUND, "%s has no config.json", h->a->model);
        return wml_hint(err, "give the folder of a Hugging Face model, its id, an ONNX file, or the folder of a GenAI bundle");
    }
    if (!wml_json_load(path, &h->config, err)) return wml_hint(err, "it must be one JSON object, as save_pretrained writes it");
    if (wml_json_is_object(wml_json_root(h->config))) return true;
    wml_fail(err, WML_E_FORMAT, "%s holds no JSON object", path);
    return wml_hint(err, "it must be one JSON object, as save_pretrained writes it");
}

/* Files that may be there. A damaged one costs what it would say. */
static void load_optional(struct wml_hf *h, const char *name, struct wml_json_doc **out)
{
    struct wml_err why = {0};
    const char *path = file_of(h, name);
    if (wml_file_exists(path) && !wml_json_load(path, out, &why)) wml_hf_note(h, "%s is not read: %s", name, why.msg);
}

static void open_weights(struct wml_hf *h)
{
    if (wml_weights_open(wml_buf_text(&h->folder), &h->weights, &h->no_weights)) return;
    if (h->no_weights.code != WML_E_NOT_FOUND) wml_hf_note(h, "weights: %s", h->no_weights.msg);
}

static bool open_folder(struct wml_hf *h, struct wml_err *err)
{
    if (!wml_checkpoint_folder(h->cx, h->a->model, "inspect", WML_HUB_FACTS, &h->folder, err) || !load_config(h, err)) return false;
    load_optional(h, "preprocessor_config.json", &h->preprocessor);
    load_optional(h, "processor_config.json", &h->processor);
    load_optional(h, "tokenizer_config.json", &h->tokenizer);
    load_optional(h, "model.safetensors.index.json", &h->index);
    open_weights(h);
    return true;
}

/* The type whose classes begin as this one does: "XLMRobertaForMaskedLM" is of xlm-roberta. */
static const struct wml_family_type *type_of_class(const char *klass)
{
    const struct wml_family_type *best = NULL;
    for (const struct wml_family *const *f = wml_families; *f; f++)
        for (const struct wml_family_type *t = (*f)->type; t->model_type; t++)
            if (wml_str_starts(wml_str(klass), t->klass) && (!best || strlen(t->klass) > strlen(best->klass))) best = t;
    return best;
}

/* The config as it would be with another type or class: what --model-type and --model-class ask about. */
static bool override(struct wml_hf *h, const char *type, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text};
    struct wml_json_iter it = {0};
    struct wml_json_doc *doc = NULL;
    struct wml_str key;
    const struct wml_json_val *v;
    wml_json_begin(&w, '{');
    while (wml_json_next(wml_json_root(h->config), &it, &key, &v)) {
        if ((type && wml_str_is(key, "model_type")) || (h->a->model_class && wml_str_is(key, "architectures"))) continue;
        wml_json_key_str(&w, key);
        wml_json_put_val(&w, v);
    }
    if (type) {
        wml_json_key(&w, "model_type");
        wml_json_put_cstr(&w, type);
    }
    if (h->a->model_class) {
        wml_json_key(&w, "architectures");
        wml_json_begin(&w, '[');
        wml_json_put_cstr(&w, h->a->model_class);
        wml_json_end(&w, ']');
    }
    wml_json_end(&w, '}');
    const bool ok = wml_json_parse(wml_buf_view(&text), &doc, err);
    wml_buf_release(&text);
    wml_json_free(h->config);
    h->config = doc;
    return ok;
}

bool wml_hf_open(struct wml_hf *h, struct wml_err *err)
{
    const char *type = h->a->model_type;
    if (h->a->model && !open_folder(h, err)) return false;
    if (!type && !h->a->model) {
        const struct wml_family_type *t = type_of_class(h->a->model_class);
        if (!t) {
            wml_fail(err, WML_E_UNSUPPORTED, "no family of winml has classes like '%s'", h->a->model_class);
            return wml_hint(err, "name the family with --model-type, or the model with -m");
        }
        type = t->model_type;
    }
    if ((type || h->a->model_class) && !override(h, type, err)) return false;
    const char *name = h->a->model ? h->a->model : h->a->model_type ? h->a->model_type : h->a->model_class;
    h->source = (struct wml_export_source){.name = name, .cfg = wml_json_root(h->config), .pre = wml_json_root(h->preprocessor)};
    return true;
}

void wml_hf_close(struct wml_hf *h)
{
    for (size_t i = 0; i < h->n_parts; i++) {
        wml_model_free(h->part[i].made.model);
        wml_model_free(h->part[i].wide.model);
    }
    wml_map_release(&h->counted);
    wml_weights_close(h->weights);
    struct wml_json_doc *doc[] = {h->config, h->preprocessor, h->processor, h->tokenizer, h->index};
    for (size_t i = 0; i < WML_COUNT(doc); i++) wml_json_free(doc[i]);
    wml_buf_release(&h->folder);
    wml_arena_release(&h->arena);
}
