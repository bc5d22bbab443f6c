/* flow/inspect/hf_facts.c - what a model's documents and files say: weights, sizes, processors, what was built of it. */
#include "flow/checkpoint.h"
#include "flow/inspect/hf.h"
#include "os/file.h"
#include "os/path.h"

/* --------------------------------------------------------------- checkpoint */

static void put_types(struct wml_hf *h, struct wml_item *o, struct wml_buf *names)
{
    uint64_t bytes[WML_DTYPE_COUNT] = {0};
    struct wml_item *types = wml_item_object(o, "dtypes", NULL);
    for (size_t i = 0; i < wml_weights_len(h->weights); i++) {
        const struct wml_weight *w = wml_weights_at(h->weights, i);
        bytes[w->dtype] += w->bytes.len;
    }
    for (int d = 0; d < WML_DTYPE_COUNT; d++) {
        if (!bytes[d]) continue;
        wml_item_int(types, wml_dtype_name(d), NULL, (int64_t)bytes[d], WML_SHOW_BYTES);
        wml_buf_fmt(names, "%s%s", names->len ? ", " : "", wml_dtype_name(d));
    }
}

static uint64_t parameters_of(const struct wml_weights *w)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        const struct wml_weight *t = wml_weights_at(w, i);
        const unsigned bits = wml_dtype_info(t->dtype)->bits;
        if (bits >= 8 && wml_hf_is_parameter(t)) sum += t->bytes.len / (bits / 8);
    }
    return sum;
}

void wml_hf_put_checkpoint(struct wml_hf *h)
{
    const int64_t listed = wml_json_get_int(wml_json_get(wml_json_root(h->index), "metadata"), "total_size", -1);
    if (!h->weights && listed < 0) {
        wml_item_null(h->root, "checkpoint", NULL);
        if (h->a->model) wml_item_cstr(h->root, NULL, "Weights", "not here: export fetches them, or needs them beside config.json");
        return;
    }
    struct wml_item *o = wml_item_object(h->root, "checkpoint", NULL);
    if (!h->weights) {
        wml_item_null(o, "format", NULL);
        wml_item_int(o, "bytes", NULL, listed, WML_SHOW_BYTES);
        wml_item_null(o, "parameters", NULL);
        wml_item_int(h->root, NULL, "Weights", listed, WML_SHOW_BYTES);
        return;
    }
    const size_t files = wml_weights_n_files(h->weights);
    const uint64_t n = parameters_of(h->weights), bytes = wml_weights_bytes(h->weights);
    struct wml_buf types = {0};
    wml_item_cstr(o, "format", NULL, wml_weights_format(h->weights));
    wml_item_int(o, "files", NULL, (int64_t)files, WML_SHOW_PLAIN);
    wml_item_int(o, "bytes", NULL, (int64_t)bytes, WML_SHOW_BYTES);
    wml_item_int(o, "tensors", NULL, (int64_t)wml_weights_len(h->weights), WML_SHOW_COUNT);
    wml_item_int(o, "parameters", NULL, (int64_t)n, WML_SHOW_COUNT);
    put_types(h, o, &types);
    wml_item_fmt(h->root, NULL, "Weights", "%s, %zu file%s, %s", wml_weights_format(h->weights), files, files == 1 ? "" : "s", wml_buf_text(&types));
    wml_item_int(h->root, NULL, "Weights' size", (int64_t)bytes, WML_SHOW_BYTES);
    wml_item_int(h->root, NULL, "Parameters", (int64_t)n, WML_SHOW_COUNT);
    wml_buf_release(&types);
}

/* -------------------------------------------------------------------- sizes */

/* Of the config, or of the first config in it that has the key: a model of text and pictures has one for each. */
static const struct wml_json_val *find(const struct wml_json_val *cfg, const char *const *key, unsigned depth)
{
    struct wml_json_iter it = {0};
    struct wml_str name;
    const struct wml_json_val *v, *found = NULL;
    for (size_t i = 0; key[i]; i++)
        if (!wml_json_is_null(wml_json_get(cfg, key[i]))) return wml_json_get(cfg, key[i]);
    while (!found && depth < 4 && wml_json_is_object(cfg) && wml_json_next(cfg, &it, &name, &v))
        if (wml_str_ends(name, "config") || wml_str_is(name, "encoder") || wml_str_is(name, "decoder")) found = find(v, key, depth + 1);
    return found;
}

static bool put_int(struct wml_hf *h, struct wml_item *o, const char *key, const char *label, const char *const *names)
{
    const struct wml_json_val *v = find(h->source.cfg, names, 0);
    const int64_t n = wml_json_int(v, INT64_MIN);
    if (n == INT64_MIN) wml_item_null(o, key, NULL);
    else wml_item_int(o, key, label, n, WML_SHOW_COUNT);
    return n != INT64_MIN;
}

static void put_pair(struct wml_item *o, const char *key, const char *label, int64_t height, int64_t width)
{
    if (height == width) wml_item_int(o, key, NULL, height, WML_SHOW_PLAIN);
    else {
        struct wml_item *pair = wml_item_array(o, key, NULL);
        wml_item_int(pair, NULL, NULL, height, WML_SHOW_PLAIN);
        wml_item_int(pair, NULL, NULL, width, WML_SHOW_PLAIN);
    }
    wml_item_fmt(o, NULL, label, "%lld x %lld", (long long)height, (long long)width);
}

/* A number, [h, w], {height, width} or {shortest_edge}. */
static bool pair_of(const struct wml_json_val *v, int64_t hw[2])
{
    const int64_t edge = wml_json_is_number(v) ? wml_json_int(v, 0) : wml_json_get_int(v, "shortest_edge", 0);
    const bool list = wml_json_is_array(v) && wml_json_len(v);
    hw[0] = list ? wml_json_int(wml_json_at(v, 0), 0) : wml_json_get_int(v, "height", edge);
    hw[1] = list ? wml_json_int(wml_json_at(v, wml_json_len(v) - 1), 0) : wml_json_get_int(v, "width", edge);
    return hw[0] > 0 && hw[1] > 0;
}

static bool put_image_size(struct wml_hf *h, struct wml_item *o)
{
    static const char *const names[] = {"image_size", NULL};
    int64_t hw[2];
    const struct wml_json_val *pre = h->source.pre;
    if (pair_of(find(h->source.cfg, names, 0), hw) || pair_of(wml_json_get(pre, "crop_size"), hw) || pair_of(wml_json_get(pre, "size"), hw)) {
        put_pair(o, "image_size", "Image size", hw[0], hw[1]);
        return true;
    }
    wml_item_null(o, "image_size", NULL);
    return false;
}

static bool put_patch_size(struct wml_hf *h, struct wml_item *o)
{
    static const char *const names[] = {"patch_size", NULL};
    int64_t hw[2];
    const bool ok = pair_of(find(h->source.cfg, names, 0), hw);
    if (ok) put_pair(o, "patch_size", "Patch size", hw[0], hw[1]);
    else wml_item_null(o, "patch_size", NULL);
    return ok;
}

static bool put_hidden_sizes(struct wml_hf *h, struct wml_item *o)
{
    static const char *const names[] = {"hidden_sizes", NULL};
    const struct wml_json_val *v = find(h->source.cfg, names, 0), *e;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!wml_json_is_array(v)) {
        wml_item_null(o, "hidden_sizes", NULL);
        return false;
    }
    struct wml_item *list = wml_item_array(o, "hidden_sizes", "Hidden sizes");
    while (wml_json_next(v, &it, &key, &e)) wml_item_int(list, NULL, NULL, wml_json_int(e, 0), WML_SHOW_PLAIN);
    return true;
}

void wml_hf_put_sizes(struct wml_hf *h)
{
    static const char *const positions[] = {"max_position_embeddings", "n_positions", "max_target_positions", "n_ctx", NULL};
    static const char *const vocab[] = {"vocab_size", NULL}, *const channels[] = {"num_channels", NULL};
    static const char *const rate[] = {"sampling_rate", NULL}, *const hidden[] = {"hidden_size", "d_model", "n_embd", "dim", NULL};
    static const struct { const char *key, *label, *names[4]; } extra[] = {
        {"num_hidden_layers", "Layers", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}},
        {"num_attention_heads", "Heads", {"num_attention_heads", "n_head", "n_heads", "num_heads"}},
        {"num_key_value_heads", "Heads of keys", {"num_key_value_heads"}},
        {"intermediate_size", "Inner size", {"intermediate_size", "d_ff", "n_inner", "hidden_dim"}},
        {"num_decoder_layers", "Decoder layers", {"num_decoder_layers", "decoder_layers"}},
    };
    struct wml_item *o = wml_item_object(h->root, "io_config", "Sizes");
    put_int(h, o, "max_position_embeddings", "Longest sequence", positions);
    put_int(h, o, "vocab_size", "Vocabulary", vocab);
    put_image_size(h, o);
    put_patch_size(h, o);
    put_int(h, o, "num_channels", "Channels", channels);
    put_int(h, o, "sampling_rate", "Sampling rate (Hz)", rate);
    put_int(h, o, "hidden_size", "Hidden size", hidden);
    put_hidden_sizes(h, o);
    struct wml_item *more = wml_item_object(o, "extra", NULL);
    for (size_t i = 0; i < WML_COUNT(extra); i++) {
        const char *names[5] = {extra[i].names[0], extra[i].names[1], extra[i].names[2], extra[i].names[3], NULL};
        if (wml_json_int(find(h->source.cfg, names, 0), INT64_MIN) != INT64_MIN) put_int(h, more, extra[i].key, extra[i].label, names);
    }
    const int64_t labels = (int64_t)wml_json_len(wml_json_get(h->source.cfg, "id2label"));
    if (labels) wml_item_int(more, "num_labels", "Labels", labels, WML_SHOW_COUNT);
}

/* --------------------------------------------------------------- processors */

void wml_hf_put_processor(struct wml_hf *h)
{
    const struct wml_json_val *pre = wml_json_root(h->preprocessor), *tok = wml_json_root(h->tokenizer), *pro = wml_json_root(h->processor);
    struct wml_str whole = wml_json_get_str(pro, "processor_class");
    if (!whole.len) whole = wml_json_get_str(pre, "processor_class");
    if (!whole.len) whole = wml_json_get_str(tok, "processor_class");
    const struct wml_str image = wml_json_get_str(pre, "image_processor_type"), sound = wml_json_get_str(pre, "feature_extractor_type");
    const struct { const char *key, *source, *label; struct wml_str v; } row[] = {
        {"processor_class", "processor_class_source", "Processor", whole},
        {"tokenizer_class", "tokenizer_class_source", "Tokenizer", wml_json_get_str(tok, "tokenizer_class")},
        {"image_processor_class", "image_processor_class_source", "Image processor", image},
        {"feature_extractor_class", "feature_extractor_class_source", "Feature extractor", sound},
    };
    bool some = false;
    for (size_t i = 0; i < WML_COUNT(row); i++) some = some || row[i].v.len;
    if (!some) {
        wml_item_null(h->root, "processor", NULL);
        return;
    }
    struct wml_item *o = wml_item_object(h->root, "processor", "Data processing");
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        wml_item_str(o, row[i].key, row[i].v.len ? row[i].label : NULL, row[i].v.len ? row[i].v : WML_NO_STR);
        wml_item_str(o, row[i].source, NULL, row[i].v.len ? WML_STR("hub_config") : WML_NO_STR);
    }
}

/* -------------------------------------------------------------------- cache */

struct stage { const char *name, *end; };
static const struct stage stages[] = {
    {"export", "_export.onnx"}, {"optimize", "_optimized.onnx"}, {"quantize", "_quantized.onnx"}, {"compile", "_compiled.onnx"}};

/* The newest file of the stage; absent: there is none. Whole numbers of seconds may tie: names decide then, as sorted. */
static struct wml_str newest(struct wml_hf *h, const char *dir, const struct wml_dir_list *l, const char *end, uint64_t *size)
{
    struct wml_str best = WML_NO_STR;
    int64_t when = INT64_MIN;
    for (size_t i = 0; i < l->v.len; i++) {
        struct wml_buf path = {0};
        if (!wml_str_ends(l->v.at[i].name, end)) continue;
        wml_path_join(&path, wml_str(dir), l->v.at[i].name);
        const struct wml_file_info info = wml_file_info(wml_buf_text(&path));
        if (info.kind == WML_FILE_REGULAR && info.modified_ns >= when) {
            when = info.modified_ns;
            best = wml_arena_str(&h->arena, wml_buf_view(&path));
            *size = info.size;
        }
        wml_buf_release(&path);
    }
    return best;
}

void wml_hf_put_cache(struct wml_hf *h)
{
    struct wml_dir_list l = {0};
    if (!h->a->model || !h->cx->cache_dir) {
        wml_item_null(h->root, "cache", NULL);
        return;
    }
    const char *dir = wml_model_artifacts(h->cx, h->a->model, &h->arena);
    if (wml_dir_exists(dir)) wml_dir_list(dir, &l, NULL);
    uint64_t sum = 0, size[WML_COUNT(stages)] = {0};
    struct wml_str path[WML_COUNT(stages)];
    size_t n = 0;
    for (size_t i = 0; i < WML_COUNT(stages); i++) {
        path[i] = newest(h, dir, &l, stages[i].end, &size[i]);
        n += path[i].len > 0;
        sum += size[i];
    }
    struct wml_item *o = wml_item_object(h->root, "cache", n ? "Built before" : NULL);
    wml_item_cstr(o, "cache_dir", n ? "Folder" : NULL, dir);
    wml_item_int(o, "total_cached", NULL, (int64_t)n, WML_SHOW_PLAIN);
    wml_item_num(o, "total_size_mb", NULL, (double)sum / 1e6, 2, WML_SHOW_PLAIN);
    struct wml_item *list = wml_item_array(o, "stages", NULL);
    for (size_t i = 0; i < WML_COUNT(stages); i++) {
        struct wml_item *s = wml_item_object(list, NULL, NULL);
        wml_item_cstr(s, "stage", NULL, stages[i].name);
        wml_item_bool(s, "cached", NULL, path[i].len > 0);
        wml_item_str(s, "path", NULL, path[i]);
        if (path[i].len) wml_item_num(s, "size_mb", NULL, (double)size[i] / 1e6, 2, WML_SHOW_PLAIN);
        else wml_item_null(s, "size_mb", NULL);
        wml_item_null(s, "created", NULL);
        if (path[i].len) wml_item_str(o, NULL, stages[i].name, wml_path_name(path[i]));
    }
    wml_dir_list_release(&l);
}
