/* Which file of a folder holds the weights: the names that transformers looks for, in its order. Where there is none, the
 * error lists what else is there and says what to do with it. No other name is guessed: a lone .safetensors file may as
 * well be an adapter or an optimizer's state. */
#include "os/file.h"
#include "os/path.h"
#include "weights/internal.h"

static const char *const wanted[] = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
};

/* Other files that hold weights. The first row that fits counts; the hint is that of the first such row of all files. */
static const struct other {
    const char *prefix, *suffix, *what, *todo;
} others[] = {
    {"adapter_model", "", "an adapter", "merge the adapter into its model first (peft: merge_and_unload, then save_pretrained)"},
    {"model-", ".safetensors", "a shard", "model.safetensors.index.json belongs beside the shards: fetch it as well"},
    {"pytorch_model-", ".bin", "a shard", "pytorch_model.bin.index.json belongs beside the shards: fetch it as well"},
    {"", ".onnx", "an ONNX model", "it is exported already: give the .onnx file to optimize, quantize or compile"},
    {"", ".gguf", "GGUF", "GGUF weights are quantised for llama.cpp: fetch the original checkpoint"},
    {"", ".h5", "TensorFlow", "load the model with transformers' from_tf=True and save_pretrained it"},
    {"", ".msgpack", "Flax", "load the model with transformers' from_flax=True and save_pretrained it"},
    {"", ".ckpt", "a training checkpoint", "give the file itself if it is PyTorch's, or save_pretrained the model"},
    {"", ".incomplete", "half a download", "the download is not complete: start it again"},
    {"training_args", ".bin", NULL, NULL},
    {"optimizer", ".bin", NULL, NULL},
    {"", ".safetensors", "safetensors under another name", "if these are the weights, name the file model.safetensors"},
    {"", ".bin", "under another name", "if these are the weights, name the file pytorch_model.bin"},
    {"", ".pth", "PyTorch under another name", "if these are the weights, name the file pytorch_model.bin"},
    {"", ".pt", "PyTorch under another name", "if these are the weights, name the file pytorch_model.bin"},
};

static const struct other *kind_of(struct wml_str name)
{
    for (size_t i = 0; i < WML_COUNT(others); i++)
        if (wml_str_starts(name, others[i].prefix) && wml_str_ends(name, others[i].suffix)) return &others[i];
    return NULL;
}

static bool say_what_is_there(const char *folder, struct wml_err *err)
{
    enum { SHOWN = 8 };
    struct wml_dir_list list = {0};
    struct wml_buf found = {0};
    const struct other *first = NULL;
    size_t n = 0;
    if (!wml_dir_list(folder, &list, err)) return false;
    for (size_t i = 0; i < list.v.len; i++) {
        const struct other *o = list.v.at[i].is_dir ? NULL : kind_of(list.v.at[i].name);
        if (!o || !o->what) continue;
        if (n < SHOWN) wml_buf_fmt(&found, "%s%.*s (%s)", n ? ", " : "", WML_ARG(list.v.at[i].name), o->what);
        else if (n == SHOWN) wml_buf_cstr(&found, ", ...");
        if (!first || o < first) first = o;
        n++;
    }
    wml_fail(err, WML_E_NOT_FOUND, "%s holds no weights under a name that is read (model.safetensors, pytorch_model.bin, or their .index.json)%s%s",
             folder, n ? "; it has " : "", n ? wml_buf_text(&found) : list.v.len ? "" : ": it is empty");
    wml_hint(err, "%s", first ? first->todo : "a checkpoint is a folder as save_pretrained writes it: fetch all of its files");
    wml_dir_list_release(&list);
    wml_buf_release(&found);
    return false;
}

bool wml_weights_choose(const char *folder, struct wml_buf *path, struct wml_err *err)
{
    for (size_t i = 0; i < WML_COUNT(wanted); i++) {
        wml_buf_clear(path);
        wml_path_join(path, wml_str(folder), wml_str(wanted[i]));
        if (wml_file_exists(wml_buf_text(path))) return true;
    }
    return say_what_is_there(folder, err);
}
