/* PyTorch's archives since 1.6: a zip of stored members under one folder: data.pkl (the dictionary), data/KEY (the bytes of
 * a storage each), byteorder. Checksums are not compared: that would read all weights, and torch.save may leave them out. */
#include <inttypes.h>

#include "text/zip.h"
#include "weights/torch.h"

struct archive {
    struct wml_weights *w;
    struct wml_zip zip;
    struct wml_map member; /* name to struct wml_zip_member */
    struct wml_str folder; /* "pytorch_model/", or empty */
};

/* The member FOLDER/part/name; *found NULL when there is none. */
static bool open_member(struct archive *a, const char *part, struct wml_str name, const struct wml_zip_member **found,
                        struct wml_span *bytes, struct wml_err *err)
{
    struct wml_buf path = {0};
    void *block = NULL;
    wml_buf_str(&path, a->folder);
    wml_buf_cstr(&path, part);
    wml_buf_str(&path, name);
    *found = wml_map_get(&a->member, wml_buf_view(&path));
    bool ok = !*found || wml_zip_read(&a->zip, *found, WML_ZIP_TRUST, bytes, &block, err);
    if (block) WML_PUSH(&a->w->block, block);
    wml_buf_release(&path);
    return ok;
}

static bool locate(void *archive, struct wml_pickle_storage *s, struct wml_err *err)
{
    struct archive *a = archive;
    const struct wml_zip_member *m;
    struct wml_span bytes;
    uint64_t size;
    if (!open_member(a, "data/", s->key, &m, &bytes, err)) return false;
    if (!m) return wml_fail(err, WML_E_FORMAT, "the archive has no member data/%.*s for it", WML_ARG(s->key));
    if (!wml_torch_storage_size(s, &size) || size > bytes.len)
        return wml_fail(err, WML_E_FORMAT, "its storage of %" PRIu64 " elements has only %zu bytes in the archive", s->n, bytes.len);
    s->bytes = (struct wml_span){bytes.ptr, (size_t)size};
    return true;
}

static bool ends_as(struct wml_str name, const char *file)
{
    return wml_str_is(name, file) || (wml_str_ends(name, file) && name.ptr[name.len - strlen(file) - 1] == '/');
}

/* The member data.pkl says which folder it is. */
static bool find_folder(struct archive *a, struct wml_err *err)
{
    for (size_t i = 0; i < a->zip.v.len; i++) {
        const struct wml_str name = a->zip.v.at[i].name;
        if (!ends_as(name, "data.pkl")) continue;
        a->folder = wml_str_sub(name, 0, name.len - strlen("data.pkl"));
        return true;
    }
    for (size_t i = 0; i < a->zip.v.len; i++)
        if (ends_as(a->zip.v.at[i].name, "constants.pkl"))
            return wml_fail(err, WML_E_UNSUPPORTED, "this is a TorchScript program") ||
                   wml_hint(err, "save the state_dict() of the model that it was made from");
    wml_fail(err, WML_E_UNSUPPORTED, "this is a zip archive without data.pkl, not a PyTorch checkpoint");
    return wml_hint(err, "unpack it first if the checkpoint lies inside");
}

static bool check_order(struct archive *a, struct wml_err *err)
{
    const struct wml_zip_member *m;
    struct wml_span order;
    if (!open_member(a, "byteorder", WML_NO_STR, &m, &order, err)) return false;
    if (!m || wml_str_is((struct wml_str){(const char *)order.ptr, order.len}, "little")) return true;
    return wml_fail(err, WML_E_UNSUPPORTED, "the checkpoint was saved on a machine with the other byte order");
}

static bool read_archive(struct archive *a, struct wml_pickle_ctx *cx, struct wml_span bytes, struct wml_err *err)
{
    const struct wml_zip_member *m;
    struct wml_span pickle;
    struct wml_pickle *root;
    if (!wml_zip_open(bytes, &a->zip, err)) return wml_hint(err, "the download was cut: fetch the file again");
    for (size_t i = 0; i < a->zip.v.len; i++) wml_map_put(&a->member, a->zip.v.at[i].name, &a->zip.v.at[i]);
    if (!find_folder(a, err) || !check_order(a, err) || !open_member(a, "data.pkl", WML_NO_STR, &m, &pickle, err)) return false;
    struct wml_rd r = wml_rd(pickle.ptr, pickle.len);
    if (!wml_pickle_read(cx, &r, &root, err)) return wml_wrap(err, "data.pkl");
    return wml_torch_add_all(a->w, root, locate, a, bytes.len, err);
}

bool wml_weights_read_torch_zip(struct wml_weights *w, struct wml_span bytes, struct wml_err *err)
{
    struct archive a = {.w = w};
    struct wml_pickle_ctx cx = {0};
    bool ok = read_archive(&a, &cx, bytes, err);
    wml_pickle_release(&cx);
    wml_map_release(&a.member);
    wml_zip_release(&a.zip);
    return ok;
}
