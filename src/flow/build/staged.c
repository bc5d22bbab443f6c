/* flow/build/staged.c - a pipeline for an NPU: embeddings and head on the CPU, between them the transformer, once for a window of
 * the prompt and once for a token. */
#include "flow/build/internal.h"

#include "ep/stage.h"
#include "os/file.h"
#include "os/path.h"

#define TRANSFORMER_DATA "transformer.data"

/* bits: of the transformer's weights */
static const struct wml_build_precision precisions[] = {{"w8a16", "auto", WML_F32, 8}, {"fp32", NULL, WML_F32, 0}};
static const struct { const char *name, *alias; unsigned bits; } heads[] = {{"w4a32", "int4", 4}, {"w8a32", "int8", 8}, {"fp32", "fp32", 0}};

static bool unsupported(const struct wml_target_spec *t, struct wml_err *err)
{
    struct wml_buf names = {0};
    for (size_t i = 0; i < wml_n_eps; i++)
        if (wml_eps[i]->stage && !wml_eps[i]->test_only) wml_buf_fmt(&names, "%s%s", names.len ? ", " : "", wml_eps[i]->alias[0]);
    wml_fail(err, WML_E_USAGE, "--export-type optimized is not supported for ep=%s, device=%s", t->ep ? t->ep : "auto", t->device ? t->device : "auto");
    wml_hint(err, "EPs it is made for, on their NPU: %s; cpu to try it anywhere", wml_buf_text(&names));
    wml_buf_release(&names);
    return false;
}

static bool check_target(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_target_spec t = r->a->target;
    const char *device = t.device ? t.device : "auto";
    if (!t.ep && (strcmp(device, "auto") == 0 || strcmp(device, "npu") == 0)) t.ep = "qnn";
    if (!wml_target_check(&t, &r->ep, err)) return false;
    const bool fits = strcmp(device, "auto") == 0 || strcmp(device, wml_ep_is_cpu(r->ep) ? "cpu" : "npu") == 0;
    return (r->ep && fits && (wml_ep_is_cpu(r->ep) || r->ep->stage)) || unsupported(&r->a->target, err);
}

static bool check_head(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_str asked = wml_str(r->a->head_precision);
    if (!asked.ptr || wml_str_ieq(asked, WML_STR("auto"))) {
        r->head_auto = r->precision->bits != 0;
        return true;
    }
    for (size_t i = 0; i < WML_COUNT(heads); i++) {
        if (!wml_str_ieq(asked, wml_str(heads[i].name)) && !wml_str_ieq(asked, wml_str(heads[i].alias))) continue;
        r->head_bits = heads[i].bits;
        return true;
    }
    wml_fail(err, WML_E_USAGE, "--head-precision %.*s is not supported", WML_ARG(asked));
    return wml_hint(err, "supported: auto, w4a32 (int4), w8a32 (int8), fp32");
}

bool wml_build_check_staged(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_str asked = wml_str(r->a->precision ? r->a->precision : "auto");
    for (size_t i = 0; i < WML_COUNT(precisions) && !r->precision; i++)
        if (wml_str_ieq(asked, wml_str(precisions[i].name)) || (precisions[i].alias && wml_str_ieq(asked, wml_str(precisions[i].alias)))) r->precision = &precisions[i];
    if (r->precision) return check_head(r, err) && check_target(r, err);
    wml_fail(err, WML_E_USAGE, "--precision %.*s is not supported for --export-type optimized", WML_ARG(asked));
    return wml_hint(err, "supported: auto (w8a16), w8a16, fp32");
}

const char *wml_build_head_name(const struct wml_build_run *r)
{
    size_t i = 0;
    while (heads[i].bits != r->head_bits) i++;
    return heads[i].name;
}

/* ------------------------------------------------------------------ the stages */

static const char *const embeddings[] = {"embeddings.onnx", "embeddings.onnx.data"}, *const head[] = {"lm_head.onnx", "lm_head.onnx.data"};
static const char *const context[] = {"ctx.onnx", TRANSFORMER_DATA}, *const iterator[] = {"iter.onnx", "iter.onnx.data"};

static bool make_embeddings(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_EMBEDDINGS, .file = "embeddings.onnx", .real = WML_F32}, err);
}

/* 4 bits, unless they change too many answers. */
static bool find_head(struct wml_build_run *r, struct wml_err *err)
{
    static const double ENOUGH = 0.9;
    struct wml_json_doc *doc = NULL;
    if (!wml_json_load(wml_build_out(r, WML_BUILD_WORK "/head.json"), &doc, err)) return false;
    r->head_agreement = wml_json_get_num(wml_json_root(doc), "agreement", 0);
    r->head_bits = r->head_agreement >= ENOUGH ? 4 : 8;
    if (r->head_bits != 4)
        wml_log(r->cx, WML_LOG_WARN, "lm_head gets 8 bits: 4 would choose only %.0f %% of the tokens that floats choose; --head-precision w4a32 has them all the same",
                100 * r->head_agreement);
    wml_json_free(doc);
    return true;
}

static bool make_head(struct wml_build_run *r, struct wml_err *err)
{
    if (r->head_auto && !find_head(r, err)) return false;
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_HEAD, .file = "lm_head.onnx", .real = WML_F32, .bits = r->head_bits}, err);
}

/* Attention in halves, as it will be in the end; the head in floats, and in the bits that are to be judged. */
static bool make_floats(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_build_graph g = {.part = WML_GENAI_TRANSFORMER, .file = WML_BUILD_WORK "/ctx.onnx", .data = TRANSFORMER_DATA, .real = WML_F32, .cache = WML_F16,
                                .step = r->window};
    if (!wml_dir_make(wml_build_out(r, WML_BUILD_WORK), err) || !wml_build_part(r, &g, err)) return false;
    g.share = g.file;
    g.file = WML_BUILD_WORK "/iter.onnx";
    g.step = 1;
    if (!wml_build_part(r, &g, err)) return false;
    g = (struct wml_build_graph){.part = WML_GENAI_HEAD, .file = WML_BUILD_WORK "/lm_head.onnx", .real = WML_F32};
    if (!wml_build_part(r, &g, err)) return false;
    g.file = WML_BUILD_WORK "/candidate.onnx";
    g.bits = 4;
    return !r->head_auto || wml_build_part(r, &g, err);
}

static bool make_context(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_build_graph g = {.part = WML_GENAI_TRANSFORMER, .file = "ctx.onnx", .data = TRANSFORMER_DATA, .real = WML_F32, .step = r->window};
    return r->precision->bits ? wml_build_quantise(r, WML_BUILD_WORK "/ctx.onnx", WML_BUILD_WORK "/ctx.ranges.json", &g, err) : wml_build_part(r, &g, err);
}

static bool make_iterator(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_build_graph g = {.part = WML_GENAI_TRANSFORMER, .file = "iter.onnx", .share = "ctx.onnx", .real = WML_F32, .step = 1};
    return r->precision->bits ? wml_build_quantise(r, WML_BUILD_WORK "/iter.onnx", WML_BUILD_WORK "/iter.ranges.json", &g, err) : wml_build_part(r, &g, err);
}

/* What only transformer and head are made of; nothing where those are there. */
static bool make_work(struct wml_build_run *r, struct wml_err *err)
{
    static const char *const floats[] = {WML_BUILD_WORK "/ctx.onnx", WML_BUILD_WORK "/" TRANSFORMER_DATA, WML_BUILD_WORK "/iter.onnx",
                                         WML_BUILD_WORK "/lm_head.onnx", WML_BUILD_WORK "/lm_head.onnx.data", WML_BUILD_WORK "/candidate.onnx", WML_BUILD_WORK "/candidate.onnx.data"};
    static const char *const ranges[] = {WML_BUILD_WORK "/ctx.ranges.json", WML_BUILD_WORK "/iter.ranges.json", WML_BUILD_WORK "/head.json"};
    static const char *const name[] = {"floats", "calibration"};
    if (!r->precision->bits) return true;
    if (wml_build_is_made(r, "context", context, WML_COUNT(context)) && wml_build_is_made(r, "iterator", iterator, WML_COUNT(iterator)) &&
        (!r->head_auto || wml_build_is_made(r, "lm_head", head, WML_COUNT(head)))) {
        for (size_t i = 0; i < WML_COUNT(name); i++) WML_PUSH_IN(&r->arena, &r->stage, ((struct wml_build_stage){.name = name[i], .reused = true}));
        return true;
    }
    return wml_build_do(r, name[0], floats, WML_COUNT(floats), make_floats, err) &&
           wml_build_do(r, name[1], ranges, WML_COUNT(ranges), wml_build_calibrate, err);
}

/* Also what a build of another precision left that was interrupted. */
static bool drop_work(struct wml_build_run *r, struct wml_err *err)
{
    const char *folder = wml_build_out(r, WML_BUILD_WORK);
    for (size_t i = 0; i < r->stage.len; i++)
        if (r->stage.at[i].file.len && wml_str_starts(wml_str(r->stage.at[i].file.at[0].name), WML_BUILD_WORK "/")) r->stage.at[i].file.len = 0;
    return !wml_dir_exists(folder) || (wml_build_write_manifest(r, false, err) && (wml_dir_remove(folder) || wml_fail(err, WML_E_IO, "%s cannot be removed", folder)));
}

bool wml_build_make_staged(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_do(r, "embeddings", embeddings, WML_COUNT(embeddings), make_embeddings, err) &&
           make_work(r, err) && wml_build_do(r, "lm_head", head, WML_COUNT(head), make_head, err) &&
           wml_build_do(r, "context", context, WML_COUNT(context), make_context, err) &&
           wml_build_do(r, "iterator", iterator, WML_COUNT(iterator), make_iterator, err) && drop_work(r, err);
}
