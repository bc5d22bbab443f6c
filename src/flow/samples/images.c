/* Pictures as samples: all are looked at when they are opened, so that those which cannot be read do not count. */
#include "flow/samples/images.h"

#include "flow/samples.h"
#include "os/file.h"
#include "os/path.h"
#include "task/image.h"

struct kept {
    const char *path;
    struct wml_picture picture; /* none: read again */
};

struct wml_pictures {
    const char *path;
    struct wml_image_plan plan;
    struct wml_images list;
    struct wml_arena arena;
    WML_VEC(struct kept) v;
    uint64_t bytes;
    size_t batch;
};

bool wml_pictures_are(const char *path)
{
    struct wml_dir_list list = {0};
    struct wml_images one = {0};
    if (!wml_dir_exists(path)) return wml_image_is_picture(wml_str(path));
    bool arrays = false, pictures = wml_images_list(path, &one, NULL);
    if (wml_dir_list(path, &list, NULL))
        for (size_t i = 0; i < list.v.len; i++)
            arrays = arrays || wml_str_ends(list.v.at[i].name, ".npz") || wml_str_ends(list.v.at[i].name, ".npy");
    wml_dir_list_release(&list);
    wml_images_release(&one);
    return pictures && !arrays;
}

/* The file for pictures in a folder; newer models keep it inside of that of the whole processor. */
static bool find_config(const char *folder, struct wml_buf *path)
{
    static const char *const names[] = {"preprocessor_config.json", "processor_config.json"};
    for (size_t i = 0; i < WML_COUNT(names); i++) {
        wml_buf_clear(path);
        wml_path_join(path, wml_str(folder), wml_str(names[i]));
        if (wml_file_exists(wml_buf_text(path))) return true;
    }
    return false;
}

static bool load_plan(struct wml_pictures *p, const char *preprocessor, const char *beside, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_buf path = {0};
    bool named = preprocessor && !wml_dir_exists(preprocessor), ok = true;
    wml_image_plan_init(&p->plan);
    if (named) wml_buf_cstr(&path, preprocessor);
    if (named || find_config(preprocessor ? preprocessor : beside, &path)) {
        ok = wml_image_plan_load(wml_buf_text(&path), &p->plan, cx, err) ||
             wml_hint(err, "--preprocessor names the model's preprocessor_config.json; copy it from where the model comes from");
    } else if (preprocessor) {
        wml_fail(err, WML_E_NOT_FOUND, "%s has no preprocessor_config.json", preprocessor);
        ok = wml_hint(err, "copy it from where the model comes from; without --preprocessor pictures are resized to the model's size");
    }
    wml_buf_release(&path);
    return ok;
}

/* The model's inputs, open sizes as the feed gives them. */
static struct wml_task_input *inputs_of(struct wml_pictures *p, const struct wml_io *input, size_t n, const struct wml_feed_spec *feed)
{
    struct wml_task_input *in = WML_NEW_ARRAY(&p->arena, struct wml_task_input, n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t rank = input[i].has_shape ? input[i].rank : 0;
        int64_t *dim = WML_NEW_ARRAY(&p->arena, int64_t, rank + 1);
        for (size_t d = 0; d < rank; d++) {
            dim[d] = input[i].dim[d];
            for (size_t k = 0; dim[d] < 0 && k < feed->n_shapes; k++)
                if (wml_str_is(feed->shape[k].name, input[i].name) && feed->shape[k].rank == rank) dim[d] = feed->shape[k].dim[d];
            for (size_t k = 0; dim[d] < 0 && k < feed->n_dims; k++)
                if (wml_str_is(feed->dim[k].symbol, input[i].symbol[d])) dim[d] = feed->dim[k].size;
        }
        in[i] = (struct wml_task_input){wml_arena_str(&p->arena, wml_str(input[i].name)), input[i].dtype, dim, rank};
    }
    return in;
}

static bool read_all(struct wml_pictures *p, size_t max, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_picture picture;
    const char *path;
    wml_images_thin(&p->list, max > SIZE_MAX / p->batch ? SIZE_MAX : max * p->batch);
    while (wml_images_next(&p->list, &p->plan, cx, &picture, &path, err)) {
        uint64_t bytes = (uint64_t)picture.width * picture.height * 3;
        struct kept one = {path, picture};
        if (p->bytes + bytes > WML_SAMPLES_KEEP) wml_picture_release(&one.picture);
        else p->bytes += bytes;
        WML_PUSH(&p->v, one);
        wml_note_progress(cx, "Reading pictures", p->path, p->list.next, p->list.path.len, "files");
        if (!wml_check_cancel(cx, err)) return false;
    }
    return err->code == WML_OK;
}

bool wml_pictures_open(const char *path, const char *preprocessor, const char *beside, size_t max, const struct wml_io *input, size_t n,
                       const struct wml_feed_spec *feed, struct wml_ctx *cx, struct wml_pictures **out, struct wml_err *err)
{
    struct wml_pictures *p = wml_xcalloc(1, sizeof *p);
    p->path = path;
    bool ok = load_plan(p, preprocessor, beside, cx, err) && wml_image_plan_aim(&p->plan, inputs_of(p, input, n, feed), n, cx, err);
    p->batch = ok && p->plan.batch > 0 ? (size_t)p->plan.batch : 1;
    ok = ok && wml_images_list(path, &p->list, err) && read_all(p, max, cx, err);
    if (ok) {
        struct wml_buf text = {0};
        wml_image_plan_text(&p->plan, &text);
        wml_log(cx, WML_LOG_INFO, "pictures: %s", wml_buf_text(&text));
        wml_buf_release(&text);
        *out = p;
    } else {
        wml_pictures_close(p);
    }
    return ok;
}

void wml_pictures_close(struct wml_pictures *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->v.len; i++) wml_picture_release(&p->v.at[i].picture);
    WML_VEC_RELEASE(&p->v);
    wml_images_release(&p->list);
    wml_arena_release(&p->arena);
    free(p);
}

size_t wml_pictures_count(const struct wml_pictures *p)
{
    return (p->v.len + p->batch - 1) / p->batch;
}

static bool read_again(const struct wml_pictures *p, const char *path, struct wml_picture *out, struct wml_err *err)
{
    struct wml_picture whole = {0};
    bool ok = wml_picture_load(path, &whole, err) && wml_image_prepare(&p->plan, &whole, out, err);
    wml_picture_release(&whole);
    return ok;
}

bool wml_pictures_make(const struct wml_pictures *p, size_t i, const struct wml_io *input, size_t n, struct wml_feed *out,
                       struct wml_err *err)
{
    struct wml_picture *own = wml_xcalloc(p->batch, sizeof *own);
    const struct wml_picture **batch = wml_xcalloc(p->batch, sizeof *batch);
    struct wml_npys sample = {0};
    bool ok = true;
    for (size_t k = 0; ok && k < p->batch; k++) {
        const struct kept *one = &p->v.at[WML_MIN(i * p->batch + k, p->v.len - 1)];
        batch[k] = one->picture.rgb ? &one->picture : &own[k];
        ok = one->picture.rgb || read_again(p, one->path, &own[k], err);
    }
    ok = ok && wml_image_make(&p->plan, batch, p->batch, &sample, err) && wml_feed_arrays(input, n, &sample, p->path, out, err);
    for (size_t k = 0; k < p->batch; k++) wml_picture_release(&own[k]);
    wml_npys_release(&sample);
    free(batch);
    free(own);
    return ok;
}
