/* Drives src/task for the parity tests: one request per line of standard input, words apart by tabs.
 *
 *     decode  FILE OUT.npy
 *     resize  FILE WIDTH HEIGHT FILTER OUT.npy
 *     crop    FILE WIDTH HEIGHT OUT.npy
 *     time    FILE WIDTH HEIGHT FILTER            milliseconds of decoding and of resizing
 *     plan    CONFIG INPUTS                       the steps in words; CONFIG "-": no file
 *     size    CONFIG WIDTH HEIGHT                 of a picture after resizing
 *     make    FILE CONFIG INPUTS OUT.npz          one picture
 *     samples FOLDER CONFIG INPUTS OUT-           all samples, as OUT-0.npz and so on
 *     list    FOLDER COUNT                        picture files, thinned to COUNT
 *
 * INPUTS are the model's: "pixel_values:float32:1,3,224,224;pixel_mask:int64:1,-1,-1". One line answers each request:
 * "ok", what there is to say, and what was logged, or "error", the message, the hint, and what was logged. */
#include <stdio.h>

#include "base/num.h"
#include "os/sys.h"
#include "task/image_internal.h"
#include "text/npy.h"

enum { WORDS = 12 };

struct request {
    struct wml_str word[WORDS];
    char text[WORDS][1024]; /* of the words, as C strings */
    size_t n;
    struct wml_buf said, logged;
    struct wml_ctx cx;
    struct wml_task_input input[4];
    int64_t dim[4][8];
    size_t n_inputs;
};

typedef bool (*command)(struct request *r, struct wml_err *err);

static size_t size_at(const struct request *r, size_t i)
{
    uint64_t v = 0;
    wml_parse_u64(r->word[i], &v);
    return (size_t)v;
}

static bool save(const struct wml_picture *p, const char *path, struct wml_err *err)
{
    struct wml_npy a = {.dtype = WML_U8, .rank = 3, .dim = {(int64_t)p->height, (int64_t)p->width, 3}};
    a.data = (struct wml_span){p->rgb, p->width * p->height * 3};
    return wml_npy_save(path, &a, err);
}

static bool decode(struct request *r, struct wml_err *err)
{
    struct wml_picture p = {0};
    bool ok = wml_picture_load(r->text[1], &p, err) && save(&p, r->text[2], err);
    wml_picture_release(&p);
    return ok;
}

static bool resize(struct request *r, struct wml_err *err)
{
    struct wml_picture p = {0}, to = {0};
    bool ok = wml_picture_load(r->text[1], &p, err) &&
              wml_picture_resize(&p, size_at(r, 2), size_at(r, 3), (enum wml_resample)size_at(r, 4), &to, err) &&
              save(&to, r->text[5], err);
    wml_picture_release(&p);
    wml_picture_release(&to);
    return ok;
}

static bool crop(struct request *r, struct wml_err *err)
{
    struct wml_picture p = {0}, to = {0};
    bool ok = wml_picture_load(r->text[1], &p, err) && wml_picture_crop(&p, size_at(r, 2), size_at(r, 3), &to, err) &&
              save(&to, r->text[4], err);
    wml_picture_release(&p);
    wml_picture_release(&to);
    return ok;
}

static bool timing(struct request *r, struct wml_err *err)
{
    struct wml_picture p = {0}, to = {0};
    uint64_t begin = wml_now_ns();
    bool ok = wml_picture_load(r->text[1], &p, err);
    uint64_t loaded = wml_now_ns();
    ok = ok && wml_picture_resize(&p, size_at(r, 2), size_at(r, 3), (enum wml_resample)size_at(r, 4), &to, err);
    uint64_t end = wml_now_ns();
    wml_buf_fmt(&r->said, "%.3f %.3f", (double)(loaded - begin) / 1e6, (double)(end - loaded) / 1e6);
    wml_picture_release(&p);
    wml_picture_release(&to);
    return ok;
}

static void get_inputs(struct request *r, struct wml_str text)
{
    struct wml_str one, part, dims;
    while (r->n_inputs < WML_COUNT(r->input) && wml_str_split(&text, ';', &one)) {
        int64_t *dim = r->dim[r->n_inputs];
        struct wml_task_input *in = &r->input[r->n_inputs++];
        in->dim = dim;
        wml_str_split(&one, ':', &in->name);
        wml_str_split(&one, ':', &part);
        in->dtype = wml_dtype_parse(part);
        for (dims = one; in->rank < 8 && wml_str_split(&dims, ',', &part);) wml_parse_i64(part, &dim[in->rank++]);
    }
}

static bool get_plan(struct request *r, const char *config, struct wml_str inputs, struct wml_image_plan *p, struct wml_err *err)
{
    get_inputs(r, inputs);
    if (strcmp(config, "-") == 0) wml_image_plan_init(p);
    else if (!wml_image_plan_load(config, p, &r->cx, err)) return false;
    return wml_image_plan_aim(p, r->input, r->n_inputs, &r->cx, err);
}

static bool plan(struct request *r, struct wml_err *err)
{
    struct wml_image_plan p;
    if (!get_plan(r, r->text[1], r->word[2], &p, err)) return false;
    wml_image_plan_text(&p, &r->said);
    return true;
}

static bool size(struct request *r, struct wml_err *err)
{
    struct wml_image_plan p;
    size_t w, h;
    if (!wml_image_plan_load(r->text[1], &p, &r->cx, err)) return false;
    wml_image_resized(&p, size_at(r, 2), size_at(r, 3), &w, &h);
    wml_buf_fmt(&r->said, "%zu %zu", w, h);
    return true;
}

static bool make(struct request *r, struct wml_err *err)
{
    struct wml_image_plan p;
    struct wml_picture picture = {0}, ready = {0};
    const struct wml_picture *one = &ready;
    struct wml_npys sample = {0};
    bool ok = get_plan(r, r->text[2], r->word[3], &p, err) && wml_picture_load(r->text[1], &picture, err) &&
              wml_image_prepare(&p, &picture, &ready, err) && wml_image_make(&p, &one, 1, &sample, err) &&
              wml_npz_save(r->text[4], sample.v.at, sample.v.len, err);
    wml_picture_release(&picture);
    wml_picture_release(&ready);
    wml_npys_release(&sample);
    return ok;
}

static bool samples(struct request *r, struct wml_err *err)
{
    struct wml_image_plan p;
    struct wml_images l = {0};
    struct wml_picture ready;
    const struct wml_picture *one = &ready;
    const char *path;
    size_t n = 0;
    bool ok = get_plan(r, r->text[2], r->word[3], &p, err) && wml_images_list(r->text[1], &l, err);
    for (; ok && wml_images_next(&l, &p, &r->cx, &ready, &path, err); n++) {
        struct wml_npys sample = {0};
        char to[2048];
        snprintf(to, sizeof to, "%s%zu.npz", r->text[4], n);
        ok = wml_image_make(&p, &one, 1, &sample, err) && wml_npz_save(to, sample.v.at, sample.v.len, err);
        wml_npys_release(&sample);
        wml_picture_release(&ready);
    }
    wml_buf_fmt(&r->said, "%zu samples, %zu left out", n, l.bad);
    wml_images_release(&l);
    return ok && err->code == WML_OK;
}

static bool list(struct request *r, struct wml_err *err)
{
    struct wml_images l = {0};
    if (!wml_images_list(r->text[1], &l, err)) return false;
    wml_images_thin(&l, size_at(r, 2));
    for (size_t i = 0; i < l.path.len; i++) wml_buf_fmt(&r->said, "%s%s", i ? "|" : "", l.path.at[i]);
    wml_images_release(&l);
    return true;
}

static void take_log(void *sink, enum wml_log_level level, const char *msg)
{
    struct wml_buf *b = sink;
    (void)level;
    wml_buf_fmt(b, "%s%s", b->len ? " | " : "", msg);
}

static const struct {
    const char *name;
    size_t words;
    command run;
} commands[] = {
    {"decode", 3, decode}, {"resize", 6, resize}, {"crop", 5, crop}, {"time", 5, timing},
    {"plan", 3, plan},     {"size", 4, size},
    {"make", 5, make},     {"samples", 5, samples}, {"list", 3, list},
};

static bool answer(struct request *r, struct wml_err *err)
{
    for (size_t i = 0; i < WML_COUNT(commands); i++)
        if (wml_str_is(r->word[0], commands[i].name))
            return r->n == commands[i].words ? commands[i].run(r, err)
                                             : wml_fail(err, WML_E_USAGE, "%s takes %zu words", r->text[0], commands[i].words - 1);
    return wml_fail(err, WML_E_USAGE, "no command '%s'", r->text[0]);
}

int main(void)
{
    static char line[16384];
    static struct request r;
    wml_stdio_prepare();
    while (fgets(line, sizeof line, stdin)) {
        struct wml_err err = {0};
        r = (struct request){.cx = {.level = WML_LOG_INFO, .log = take_log, .sink = &r.logged}};
        struct wml_str rest = {line, strcspn(line, "\r\n")};
        while (r.n < WORDS && wml_str_split(&rest, '\t', &r.word[r.n])) {
            snprintf(r.text[r.n], sizeof r.text[0], "%.*s", WML_ARG(r.word[r.n]));
            r.n++;
        }
        if (answer(&r, &err)) printf("ok\t%s\t%s\n", wml_buf_text(&r.said), wml_buf_text(&r.logged));
        else printf("error\t%s\t%s\t%s\n", err.msg, err.hint, wml_buf_text(&r.logged));
        fflush(stdout);
        wml_buf_release(&r.logged);
        wml_buf_release(&r.said);
    }
    return 0;
}
