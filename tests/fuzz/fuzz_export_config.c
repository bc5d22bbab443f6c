/* Configs that nobody wrote: one of tests/data/export, changed by the fuzzer's bytes in up to eight places (numbers that
 * are absurd, other types, values of other models, members left out or added), for any of its family's tasks. The weights are
 * those of the folder, or made up as the config wants them, so that a config is followed to its end. What cannot be built
 * is refused with a message; what is built passes the model's check, has no negative size, and its weights can be computed. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "export/export.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "os/file.h"
#include "os/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { MAX_EDITS = 8, ZEROS = 1 << 26, ROOM = 1 << 24, NODES = 1 << 12 };

/* ------------------------------------------------------------------- material */

struct folder {
    struct wml_json_doc *config, *pre;
    struct wml_weights *weights; /* NULL: not opened yet */
    char *path;
};

static struct {
    struct wml_arena arena;
    WML_VEC(struct folder) folder;
    WML_VEC(struct wml_str) key, value; /* all that are in any config; values as JSON */
    struct wml_map keys, values;
    const unsigned char *zeros;
} all;

static const char *const absurd[] = {
    "0", "1", "-1", "2", "3", "5", "7", "13", "64", "1000", "16777216", "16777217", "4294967296", "9223372036854775807", "-9223372036854775808",
    "0.5", "-0.5", "1e308", "-1e308", "1e-300", "null", "true", "false", "\"\"", "\"x\"", "\"12\"", "[]", "{}", "[0]", "[-1,-1]", "[1,2]", "[3,3,3,3,3]",
    "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[null,\"a\",{}]", "[[1],[2]]", "{\"0\":1}",
    "\"%s%n\"", "\"\\u0000\"", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
};
static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids", "position_ids", "pixel_values", "decoder_input_ids",
                                     "encoder_hidden_states", "past_0_key", "input_features", "bbox", "input_points", "image_embeddings"};
static const char *const tasks[] = {"feature-extraction", "image-feature-extraction", "fill-mask", "text-classification", "token-classification",
    "question-answering", "multiple-choice", "next-sentence-prediction", "image-classification", "object-detection", "image-segmentation",
    "semantic-segmentation", "depth-estimation", "masked-im", "zero-shot-image-classification", "text-generation", "text2text-generation",
    "translation", "automatic-speech-recognition", "audio-classification", "image-to-text", "mask-generation", "visual-question-answering"};

static void keep(struct wml_map *known, void *list, struct wml_str s)
{
    WML_VEC(struct wml_str) *to = list;
    if (wml_map_has(known, s)) return;
    s = wml_arena_str(&all.arena, s);
    wml_map_put(known, s, all.arena.head);
    WML_PUSH(to, s);
}

static void gather(const struct wml_json_val *v)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    while (wml_json_next(v, &it, &key, &e)) {
        struct wml_buf text = {0};
        if (key.ptr) keep(&all.keys, &all.key, key);
        wml_json_print(e, &text);
        if (text.len && text.len < 200) keep(&all.values, &all.value, wml_buf_view(&text));
        wml_buf_release(&text);
        gather(e);
    }
}

static struct wml_json_doc *load(const char *folder, const char *name)
{
    struct wml_buf path = {0};
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    wml_path_join(&path, wml_str(folder), wml_str(name));
    if (wml_file_exists(wml_buf_text(&path)) && !wml_json_load(wml_buf_text(&path), &doc, &err)) abort();
    wml_buf_release(&path);
    return doc;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    struct wml_dir_list list = {0};
    struct wml_err err = {0};
    if (!wml_dir_list(WML_FUZZ_CONFIGS, &list, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_buf path = {0};
        wml_path_join(&path, WML_STR(WML_FUZZ_CONFIGS), list.v.at[i].name);
        struct folder f = {.path = wml_arena_cstr(&all.arena, wml_buf_view(&path))};
        f.config = load(f.path, "config.json");
        f.pre = load(f.path, "preprocessor_config.json");
        if (f.config) {
            gather(wml_json_root(f.config));
            WML_PUSH(&all.folder, f);
        }
        wml_buf_release(&path);
    }
    wml_dir_list_release(&list);
    all.zeros = calloc(1, ZEROS);
    return all.folder.len && all.zeros ? 0 : 1;
}

/* ------------------------------------------------------------------- the input */

struct bytes {
    const uint8_t *at;
    size_t left;
};

static unsigned next(struct bytes *b)
{
    if (!b->left) return 0;
    b->left--;
    return *b->at++;
}

static unsigned next_two(struct bytes *b)
{
    const unsigned high = next(b);
    return high << 8 | next(b);
}

struct edit {
    size_t at; /* the member it is for */
    unsigned how, arg;
};

struct writing {
    struct wml_json out;
    const struct edit *edit;
    size_t n_edits, at; /* members so far */
};

static size_t count(const struct wml_json_val *v)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    size_t n = 0;
    while (wml_json_next(v, &it, &key, &e)) n += 1 + count(e);
    return n;
}

static struct wml_str any_value(unsigned arg)
{
    const size_t n = WML_COUNT(absurd);
    return arg % 2 ? all.value.at[arg / 2 % all.value.len] : wml_str(absurd[arg / 2 % n]);
}

enum { PUT, PUT_TOO, LEAVE_OUT, CALCULATE, ADD, HOWS };

static void calculated(struct wml_json *out, const struct wml_json_val *v, unsigned arg)
{
    const int64_t n = wml_json_int(v, 2);
    const int64_t to[] = {n + 1, n - 1, -n, n / 2, n * 2, n * 3, n * 1000, n * (1 << 20)};
    wml_json_put_int(out, n > -100000000 && n < 100000000 ? to[arg % WML_COUNT(to)] : 1);
}

static void write_value(struct writing *w, const struct wml_json_val *v);

static void write_members(struct writing *w, const struct wml_json_val *v)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    while (wml_json_next(v, &it, &key, &e)) {
        const struct edit *x = NULL;
        for (size_t i = 0; i < w->n_edits; i++)
            if (w->edit[i].at == w->at) x = &w->edit[i];
        w->at++;
        if (x && x->how == ADD && key.ptr) {
            wml_json_key_str(&w->out, all.key.at[x->arg % all.key.len]);
            wml_json_put_raw(&w->out, any_value(x->arg / 7 * 31));
        }
        if (x && x->how == LEAVE_OUT) {
            w->at += count(e);
            continue;
        }
        if (key.ptr) wml_json_key_str(&w->out, key);
        if (x && x->how == CALCULATE && wml_json_is_number(e)) calculated(&w->out, e, x->arg);
        else if (x && x->how <= PUT_TOO) wml_json_put_raw(&w->out, any_value(x->arg));
        else {
            write_value(w, e);
            continue;
        }
        w->at += count(e);
    }
}

static void write_value(struct writing *w, const struct wml_json_val *v)
{
    const bool list = wml_json_is_array(v);
    if (!list && !wml_json_is_object(v)) {
        wml_json_put_val(&w->out, v);
        return;
    }
    wml_json_begin(&w->out, list ? '[' : '{');
    write_members(w, v);
    wml_json_end(&w->out, list ? ']' : '}');
}

static struct wml_json_doc *changed(struct bytes *b, const struct wml_json_val *cfg)
{
    struct edit edit[MAX_EDITS];
    struct wml_buf text = {0};
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    const size_t n = count(cfg);
    struct writing w = {.out = {.out = &text}, .edit = edit};
    while (w.n_edits < MAX_EDITS && b->left) {
        edit[w.n_edits].at = n ? next_two(b) % n : 0;
        edit[w.n_edits].how = next(b) % HOWS;
        edit[w.n_edits++].arg = next_two(b);
    }
    write_value(&w, cfg);
    if (getenv("WINML_FUZZ_SHOW")) fprintf(stderr, "%s\n", wml_buf_text(&text));
    if (!wml_json_parse_python(wml_buf_view(&text), &doc, &err)) abort();
    wml_buf_release(&text);
    return doc;
}

/* --------------------------------------------------------------------- weights */

static bool has(void *arg, struct wml_str name)
{
    const unsigned seed = *(const unsigned *)arg;
    if (wml_str_ends(name, "bias")) return seed & 1;
    return wml_hash(name.ptr, name.len, seed) % 4 == 0;
}

static bool shape(void *arg, struct wml_str name, size_t rank, int64_t *dims)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 16, 32, 0, 1000};
    const uint64_t h = wml_hash(name.ptr, name.len, *(const unsigned *)arg);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) dims[i] = usual[(h >> 4 * i) % WML_COUNT(usual)];
    return true;
}

static struct wml_weights *weights_of(struct folder *f, bool own, unsigned *seed)
{
    static const enum wml_dtype types[] = {WML_F32, WML_F32, WML_BF16, WML_F16, WML_I8};
    const struct wml_weights_supposer s = {.has = has, .shape = shape, .arg = seed, .dtype = types[*seed % WML_COUNT(types)],
                                           .bytes = {all.zeros, ZEROS}};
    struct wml_err err = {0};
    if (!own) return wml_weights_suppose(&s);
    if (!f->weights && !wml_weights_open(f->path, &f->weights, &err)) return NULL;
    return wml_weights_hold(f->weights);
}

/* ---------------------------------------------------------------------- checks */

static void bad(const char *what, const struct wml_err *err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, err->msg, err->hint);
    abort();
}

static bool dropped(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    (void)err;
    *(uint64_t *)arg ^= wml_hash(bytes, n, 0);
    return true;
}

static void check_sizes(const struct wml_value *v)
{
    struct wml_err err = {0};
    const int64_t rank = wml_value_rank(v);
    if (rank < 0) bad("a value has no type", &err);
    for (int64_t i = 0; i < rank; i++) {
        if (wml_value_axis(v, (size_t)i).size >= -1) continue;
        wml_fail(&err, WML_E_INTERNAL, "'%.*s' axis %d is %lld", WML_ARG(v->name), (int)i, (long long)wml_value_axis(v, (size_t)i).size);
        bad("a negative size", &err);
    }
}

static void check_model(struct wml_export_result *made)
{
    struct wml_model *m = made->model;
    struct wml_err err = {0};
    uint64_t sum = 0, bytes = 0, size;
    if (!wml_model_check(m, &err)) bad("the model that was built is not valid", &err);
    if (!m->graph->outputs.len) bad("the model has no outputs", &err);
    for (struct wml_node *n = m->graph->first; n; n = n->next)
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i]) check_sizes(n->out[i]);
    for (size_t i = 0; i < m->graph->initializer.len; i++) {
        struct wml_tensor *t = m->graph->initializer.at[i];
        if (!t || !wml_tensor_size(t, &size, &err)) bad("a weight without a size", &err);
        if (t->payload != WML_PAYLOAD_DERIVED || (bytes += size) > 1 << 16) continue;
        if (!wml_tensor_open_sources(m, t, &err) || !wml_tensor_produce(t, dropped, &sum, &err)) bad("a weight cannot be made", &err);
    }
}

static void check_error(const struct wml_err *err)
{
    if (!err->code || !err->msg[0] || err->code == WML_E_INTERNAL) bad("a refusal without a reason", err);
}

static void build(const struct wml_export_source *s, const struct wml_export_plan *p, const struct wml_family_task *task,
                  const struct wml_export_opts *o)
{
    struct wml_export_result made = {0};
    struct wml_err err = {0};
    if (!task) bad("a part of a composite has no task", &err);
    if (wml_export_build(s, p, task, o, &made, &err)) check_model(&made);
    else check_error(&err);
    if (getenv("WINML_FUZZ_SHOW")) fprintf(stderr, "%s: %s\n", task->task, err.code ? err.msg : "built");
    wml_model_free(made.model);
}

static void options(struct bytes *b, struct wml_export_opts *o, struct wml_family_input *given)
{
    static const int64_t sizes[] = {1, 2, 3, 17, 224, 4096, 1 << 20, 1 << 24}, opsets[] = {17, 18, 20, 21, 23, 11};
    static const enum wml_dtype types[] = {WML_UNDEFINED, WML_F32, WML_I64, WML_I32, WML_F16, WML_I8};
    const unsigned kind = next(b);
    *o = (struct wml_export_opts){.batch = 1 + kind / 64, .opset = opsets[kind % WML_COUNT(opsets)], .limits = {.nodes = NODES, .room = ROOM}};
    if (kind & 8) o->size[next(b) % WML_SIZE_COUNT] = sizes[next(b) % WML_COUNT(sizes)];
    if (!(kind & 16)) return;
    *given = (struct wml_family_input){.name = wml_str(inputs[next(b) % WML_COUNT(inputs)])};
    for (size_t i = 0; i < WML_NN_MAX_RANK; i++) given->axis[i].size = -1;
    const unsigned how = next(b), axis = how % 4;
    given->dtype = types[how / 4 % WML_COUNT(types)];
    if (how & 128) given->axis[axis] = (struct wml_axis){.size = sizes[next(b) % WML_COUNT(sizes)]};
    else given->axis[axis].symbol = WML_STR("open");
    o->given = given;
    o->n_given = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct folder *f = &all.folder.at[next(&b) % all.folder.len];
    struct wml_export_opts o;
    struct wml_family_input given;
    struct wml_err err = {0};
    const unsigned task = next(&b);
    unsigned seed = next(&b);
    options(&b, &o, &given);
    struct wml_json_doc *config = changed(&b, wml_json_root(f->config));
    struct wml_export_source s = {.name = "fuzz", .cfg = wml_json_root(config), .pre = wml_json_root(f->pre), .inputs_named = o.n_given > 0};
    s.weights = weights_of(f, seed > 240, &seed);
    struct wml_export_plan p;
    if (!wml_export_plan(&s, task < WML_COUNT(tasks) ? tasks[task] : NULL, &p, &err)) check_error(&err);
    else if (!p.composite) build(&s, &p, p.one, &o);
    else
        for (const struct wml_family_part *part = p.composite->part; part->name; part++)
            build(&s, &p, wml_family_task_of(p.family, wml_str(part->task)), &o);
    wml_weights_close(s.weights);
    wml_json_free(config);
    return 0;
}
