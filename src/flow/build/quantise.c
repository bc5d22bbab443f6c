/* flow/build/quantise.c - the transformer of a pipeline in integers: floats of it in a folder of their own, ranges of its values
 * while it answers prompts, measured by a child, then QuantizeLinear and DequantizeLinear around all but attention. */
#include "flow/build/internal.h"

#include "calib/cache.h"
#include "flow/oracle.h"
#include "flow/watch.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "quant/overrides.h"
#include "quant/quant.h"
#include "worker/worker.h"

/* Gains of norms differ widely within one tensor: 8 bits would lose the small ones. */
#define GAINS "{\"tensors\":{\"*.weight.gain\":{\"quant_type\":\"uint16\"}}}"

struct floats { /* a graph before it is quantised */
    struct wml_model *m;
    struct wml_quant_opts opts;
    struct wml_quant_overrides *overrides;
    struct wml_quant_result result;
    struct wml_quant_run run;
    struct wml_quant_values want;
    struct wml_ranges ranges;
};
static const struct wml_quant_env no_env;

static bool open_floats(struct wml_build_run *r, const char *file, struct floats *f, struct wml_err *err)
{
    static const struct wml_str attention[] = {{"*GroupQueryAttention*", sizeof "*GroupQueryAttention*" - 1}};
    *f = (struct floats){.overrides = wml_quant_overrides_parse(WML_STR(GAINS), err)};
    if (!f->overrides || !wml_onnx_load(wml_build_out(r, file), &f->m, err)) return false;
    f->opts = (struct wml_quant_opts){.weight = WML_I8, .activation = WML_U16, .symmetric_weight = WML_SYMMETRY_ON, .per_channel = true, .exclude = {attention, WML_COUNT(attention)},
                                      .ep = wml_quant_has_rules(r->ep->alias[0]) ? r->ep->alias[0] : NULL, .overrides = f->overrides};
    f->run = (struct wml_quant_run){.model = f->m, .opts = &f->opts, .env = &no_env, .cx = r->cx, .result = &f->result};
    const struct wml_quant_method *qdq = wml_quant_find("qdq");
    return qdq->prepare(&f->run, err) && qdq->wanted(&f->run, &f->want, err);
}

static void close_floats(struct floats *f)
{
    wml_model_free(f->m);
    wml_quant_overrides_free(f->overrides);
    wml_ranges_release(&f->ranges);
}

/* --------------------------------------------------------------------- ranges */

static bool put_graph(struct wml_build_run *r, struct floats *f, const char *file, const char *key, struct wml_json *w, struct wml_err *err)
{
    struct wml_buf bytes = {0};
    struct wml_str folder = {0};
    const bool ok = wml_flow_watched(f->m, f->want.v.at, f->want.v.len, &bytes, &folder, err) &&
                    wml_file_write(wml_build_out(r, file), wml_buf_view(&bytes), err);
    wml_json_key(w, key);
    wml_json_begin(w, '{');
    wml_json_key(w, "model");
    wml_json_put_path(w, wml_build_out(r, file));
    wml_json_key(w, "folder");
    wml_json_put_path(w, wml_build_out(r, WML_BUILD_WORK));
    wml_json_key(w, "slots");
    wml_json_put_uint(w, f->want.v.len);
    wml_json_end(w, '}');
    wml_buf_release(&bytes);
    return ok;
}

static bool put_request(struct wml_build_run *r, struct floats *context, struct floats *iterator, struct wml_buf *out, struct wml_err *err)
{
    enum { TOKENS = 16 };
    struct wml_json w = {.out = out};
    wml_json_begin(&w, '{');
    wml_json_key(&w, "embeddings");
    wml_json_put_path(&w, wml_build_out(r, "embeddings.onnx"));
    wml_json_key(&w, "lm_head");
    wml_json_put_path(&w, wml_build_out(r, WML_BUILD_WORK "/lm_head.onnx"));
    if (r->head_auto) {
        wml_json_key(&w, "candidate");
        wml_json_put_path(&w, wml_build_out(r, WML_BUILD_WORK "/candidate.onnx"));
    }
    bool ok = put_graph(r, context, WML_BUILD_WORK "/ctx.watched.onnx", "context", &w, err) &&
              put_graph(r, iterator, WML_BUILD_WORK "/iter.watched.onnx", "iterator", &w, err);
    wml_json_key(&w, "tokens");
    wml_json_put_int(&w, TOKENS);
    wml_json_key(&w, "prompts");
    wml_json_put_raw(&w, wml_buf_view(&r->prompts));
    wml_json_end(&w, '}');
    return ok;
}

/* Values that held no number in any prompt cannot be quantised: the model computes infinities, or there is a bug. */
/* 16 bits have room: prompts that were not tried give values beyond those that were. */
static const double HEADROOM = 1.25;

static bool keep(struct wml_build_run *r, struct floats *f, const struct wml_json_val *list, const char *file, struct wml_err *err)
{
    const struct wml_json_val *v;
    struct wml_json_iter it = {0};
    struct wml_str key;
    for (size_t i = 0; i < f->want.v.len && wml_json_next(list, &it, &key, &v); i++) {
        if (wml_json_len(v) != 2)
            return wml_fail(err, WML_E_RUN, "'%.*s' held no finite number while the model ran", WML_ARG(f->want.v.at[i]->name));
        wml_ranges_put(&f->ranges, f->want.v.at[i]->name,
                       (struct wml_range){HEADROOM * wml_json_num(wml_json_at(v, 0), 0), HEADROOM * wml_json_num(wml_json_at(v, 1), 0), WML_F32});
    }
    return wml_ranges_save(&f->ranges, &wml_range_minmax, NULL, wml_build_out(r, file), err);
}

static bool keep_head(struct wml_build_run *r, const struct wml_json_val *reply, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text};
    wml_json_begin(&w, '{');
    wml_json_key(&w, "agreement");
    wml_json_put_num(&w, wml_json_get_num(reply, "agree", 0) / WML_MAX(wml_json_get_num(reply, "answers", 1), 1));
    wml_json_end(&w, '}');
    const bool ok = wml_file_write(wml_build_out(r, WML_BUILD_WORK "/head.json"), wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}

static bool measure(struct wml_build_run *r, struct floats *context, struct floats *iterator, struct wml_err *err)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply = {0};
    bool ok = put_request(r, context, iterator, &request, err);
    wml_model_drop_all(context->m);
    wml_model_drop_all(iterator->m);
    if (ok) {
        const struct wml_worker_call call = {.job = "calibrate", .request = wml_buf_view(&request)};
        ok = wml_worker_call(r->cx, &call, &reply, err);
    }
    const struct wml_json_val *root = wml_json_root(reply.json);
    ok = ok && keep(r, context, wml_json_get(root, "context"), WML_BUILD_WORK "/ctx.ranges.json", err) &&
         keep(r, iterator, wml_json_get(root, "iterator"), WML_BUILD_WORK "/iter.ranges.json", err) && keep_head(r, root, err);
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
}

bool wml_build_calibrate(struct wml_build_run *r, struct wml_err *err)
{
    struct floats context, iterator = {0};
    const bool ok = open_floats(r, WML_BUILD_WORK "/ctx.onnx", &context, err) && open_floats(r, WML_BUILD_WORK "/iter.onnx", &iterator, err) &&
                    measure(r, &context, &iterator, err);
    close_floats(&context);
    close_floats(&iterator);
    return ok;
}

/* -------------------------------------------------------------------- integers */

bool wml_build_quantise(struct wml_build_run *r, const char *floats, const char *ranges, const struct wml_build_graph *g, struct wml_err *err)
{
    struct floats f;
    bool ok = open_floats(r, floats, &f, err) && wml_ranges_load(wml_build_out(r, ranges), &wml_range_minmax, NULL, &f.ranges, err);
    f.opts.ranges = &f.ranges;
    ok = ok && wml_quant_find("qdq")->apply(&f.run, err);
    for (size_t i = 0; ok && i < f.result.note.len; i++)
        wml_log(r->cx, WML_LOG_INFO, "%.*s %.*s", WML_ARG(f.result.note.at[i].subject), WML_ARG(f.result.note.at[i].text));
    ok = ok && wml_build_save(r, g, f.m, err);
    close_floats(&f);
    return ok || wml_wrap(err, "quantise %s", g->file);
}
