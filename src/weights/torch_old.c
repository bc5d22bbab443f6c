/* What torch.save wrote before 1.6, and still writes on request (_use_new_zipfile_serialization=False): five pickles one
 * after the other (a magic number, a version, facts of the machine, the dictionary, the keys of the storages), then each
 * storage in the order of the keys: its number of elements (8 bytes) and its bytes. */
#include <inttypes.h>

#include "weights/torch.h"

static const unsigned char magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
enum { VERSION = 1001 };

static bool read_facts(struct wml_pickle_ctx *cx, struct wml_rd *r, struct wml_err *err)
{
    struct wml_pickle *v;
    if (!wml_pickle_read(cx, r, &v, err)) return false;
    if (v->kind != WML_PICKLE_LONG || v->text.len != sizeof magic || memcmp(v->text.ptr, magic, sizeof magic) != 0) {
        wml_fail(err, WML_E_UNSUPPORTED, "this is a Python pickle that torch.save did not write");
        return wml_hint(err, "what is read: safetensors, and what torch.save writes of a dictionary of tensors");
    }
    if (!wml_pickle_read(cx, r, &v, err)) return false;
    if (v->kind != WML_PICKLE_INT || v->number != VERSION)
        return wml_fail(err, WML_E_UNSUPPORTED, "the checkpoint is of a version of PyTorch's old format that is not known");
    if (!wml_pickle_read(cx, r, &v, err)) return false;
    for (size_t i = 0; v->kind == WML_PICKLE_DICT && i + 1 < v->item.len; i += 2)
        if (v->item.at[i]->kind == WML_PICKLE_STR && wml_str_is(v->item.at[i]->text, "little_endian") &&
            (v->item.at[i + 1]->kind != WML_PICKLE_BOOL || !v->item.at[i + 1]->number))
            return wml_fail(err, WML_E_UNSUPPORTED, "the checkpoint was saved on a machine with the other byte order");
    return true;
}

static bool read_storage(struct wml_pickle_ctx *cx, struct wml_rd *r, const struct wml_pickle *key, struct wml_err *err)
{
    struct wml_pickle_storage *s = key->kind == WML_PICKLE_STR ? wml_map_get(&cx->storages, key->text) : NULL;
    uint64_t n, size;
    if (!s || s->ready) return wml_fail(err, WML_E_FORMAT, "a storage is there that no tensor refers to, or it is there twice");
    if (!wml_rd_u64(r, &n, err)) return false;
    if (n != s->n || !wml_torch_storage_size(s, &size))
        return wml_fail(err, WML_E_FORMAT, "storage '%.*s' has %" PRIu64 " elements where %" PRIu64 " are expected", WML_ARG(s->key), n,
                        s->n);
    s->ready = true;
    return wml_rd_bytes(r, size, &s->bytes, err) || wml_wrap(err, "storage '%.*s'", WML_ARG(s->key));
}

/* All that are there were found before. */
static bool locate(void *archive, struct wml_pickle_storage *s, struct wml_err *err)
{
    (void)archive;
    return wml_fail(err, WML_E_FORMAT, "its storage '%.*s' is not in the file", WML_ARG(s->key));
}

static bool read_all(struct wml_weights *w, struct wml_pickle_ctx *cx, struct wml_span bytes, struct wml_err *err)
{
    struct wml_rd r = wml_rd(bytes.ptr, bytes.len);
    struct wml_pickle *root, *keys;
    if (!read_facts(cx, &r, err) || !wml_pickle_read(cx, &r, &root, err) || !wml_pickle_read(cx, &r, &keys, err)) return false;
    if (keys->kind != WML_PICKLE_LIST) return wml_fail(err, WML_E_FORMAT, "the list of storages is missing");
    for (size_t i = 0; i < keys->item.len; i++)
        if (!read_storage(cx, &r, keys->item.at[i], err)) return false;
    return wml_torch_add_all(w, root, locate, NULL, bytes.len, err);
}

bool wml_weights_read_torch_old(struct wml_weights *w, struct wml_span bytes, struct wml_err *err)
{
    struct wml_pickle_ctx cx = {0};
    bool ok = read_all(w, &cx, bytes, err);
    wml_pickle_release(&cx);
    return ok;
}
