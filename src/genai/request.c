/* One request: template, tokens, a generator, the loop, text. What is timed is the library's calls; what is told of them
 * is told between. */
#include "genai/internal.h"

struct run {
    struct wml_genai_model *m;
    struct wml_genai *g;
    const struct wml_genai_request *r;
    struct wml_genai_sample *s;
    struct OgaSequences *prompt;
    struct OgaGeneratorParams *params;
    struct OgaGenerator *generator;
    struct OgaTokenizerStream *stream;
};

static double ms_between(uint64_t from, uint64_t to)
{
    return (double)(to - from) / 1e6;
}

/* The text that is encoded. A template that cannot be applied is no failure: the prompt is used as it is. */
static void apply_template(struct run *u, struct wml_buf *text)
{
    const char *made = NULL;
    struct wml_buf messages = {0};
    struct wml_err err = {0};
    if (u->r->messages.len) {
        wml_buf_str(&messages, u->r->messages);
        bool ok = u->g->TokenizerApplyChatTemplate
                      ? wml_genai_ok(u->g, u->g->TokenizerApplyChatTemplate(u->m->tokenizer, u->r->template, wml_buf_text(&messages), NULL, true, &made), WML_E_RUN, &err)
                      : wml_fail(&err, WML_E_UNSUPPORTED, "this onnxruntime-genai has no chat templates");
        if (ok && made) wml_buf_cstr(text, made);
        u->s->no_template = !ok;
        if (!ok) snprintf(u->s->template_error, sizeof u->s->template_error, "%.250s", err.msg);
        if (made) u->g->DestroyString(made);
    }
    if (!u->r->messages.len || u->s->no_template) wml_buf_str(text, u->r->prompt);
    wml_buf_release(&messages);
}

static bool encode(struct run *u, struct wml_err *err)
{
    struct wml_buf text = {0};
    uint64_t t0 = wml_now_ns();
    apply_template(u, &text);
    uint64_t t1 = wml_now_ns();
    bool ok = wml_genai_ok(u->g, u->g->CreateSequences(&u->prompt), WML_E_RUN, err) &&
              wml_genai_ok(u->g, u->g->TokenizerEncode(u->m->tokenizer, wml_buf_text(&text), u->prompt), WML_E_RUN, err);
    uint64_t t2 = wml_now_ns();
    wml_buf_release(&text);
    if (!ok) return wml_wrap(err, "encode the prompt");
    u->s->template_ms = ms_between(t0, t1);
    u->s->tokenize_ms = ms_between(t1, t2);
    u->s->prompt_tokens = u->g->SequencesGetSequenceCount(u->prompt, 0);
    int64_t room = u->r->context_length;
    if (!u->s->prompt_tokens) {
        wml_fail(err, WML_E_RUN, "the prompt has no tokens");
        return wml_hint(err, "give a prompt that is not empty");
    }
    if (room > 0 && u->s->prompt_tokens >= (uint64_t)room) {
        wml_fail(err, WML_E_RUN, "the prompt has %zu tokens, and the context of the model holds %lld", u->s->prompt_tokens, (long long)room);
        return wml_hint(err, "give a shorter prompt");
    }
    return true;
}

static bool set_number(struct run *u, const char *name, double v, struct wml_err *err)
{
    return wml_genai_ok(u->g, u->g->GeneratorParamsSetSearchNumber(u->params, name, v), WML_E_RUN, err);
}

static bool create(struct run *u, struct wml_err *err)
{
    const struct wml_genai_request *r = u->r;
    uint64_t start = wml_now_ns();
    double length = (double)(u->s->prompt_tokens + r->max_new_tokens);
    if (r->context_length > 0 && (r->whole_context || length > (double)r->context_length)) length = (double)r->context_length;
    bool ok = wml_genai_ok(u->g, u->g->CreateGeneratorParams(u->m->model, &u->params), WML_E_RUN, err) &&
              set_number(u, "max_length", length, err) &&
              wml_genai_ok(u->g, u->g->GeneratorParamsSetSearchBool(u->params, "do_sample", r->sample), WML_E_RUN, err) &&
              set_number(u, "temperature", r->sample ? r->temperature : 1, err) &&
              set_number(u, "top_p", r->sample ? r->top_p : 1, err) && set_number(u, "top_k", r->sample ? (double)r->top_k : 0, err) &&
              set_number(u, "repetition_penalty", r->repetition_penalty > 0 ? r->repetition_penalty : 1, err) &&
              (!r->sample || r->seed < 0 || set_number(u, "random_seed", (double)r->seed, err)) &&
              wml_genai_ok(u->g, u->g->CreateGenerator(u->m->model, u->params, &u->generator), WML_E_RUN, err);
    u->s->create_ms = ms_between(start, wml_now_ns());
    return ok || wml_wrap(err, "make a generator");
}

/* The newest token into the sample: the library's sequence leaves an end token out. */
static bool note(struct run *u, struct wml_err *err)
{
    const int32_t *token = NULL;
    size_t n = 0;
    if (!wml_genai_ok(u->g, u->g->Generator_GetNextTokens(u->generator, &token, &n), WML_E_RUN, err)) return false;
    if (!n) return wml_fail(err, WML_E_RUN, "the library tells no token");
    WML_PUSH(&u->s->token, token[0]);
    return true;
}

/* The newest token as text. Where the library cannot tell it, text comes at the end. */
static bool tell(struct run *u, double ms)
{
    const char *text = NULL;
    if (!u->r->on_token) return true;
    if (u->stream && !wml_genai_ok(u->g, u->g->TokenizerStreamDecode(u->stream, u->s->token.at[u->s->token.len - 1], &text), WML_E_RUN, NULL))
        text = NULL;
    return u->r->on_token(u->r->arg, wml_str(text ? text : ""), ms);
}

static bool loop(struct run *u, struct wml_err *err)
{
    size_t n = 0;
    uint64_t start = wml_now_ns();
    bool ok = wml_genai_ok(u->g, u->g->Generator_AppendTokens(u->generator, u->g->SequencesGetSequenceData(u->prompt, 0), u->s->prompt_tokens), WML_E_RUN, err);
    uint64_t now = wml_now_ns();
    u->s->prefill_ms = ms_between(start, now);
    if (!ok) return wml_wrap(err, "read the prompt");
    while (n < u->r->max_new_tokens) {
        start = n ? wml_now_ns() : now; /* what is told between two tokens is no time of theirs */
        if (u->g->Generator_IsDone(u->generator)) break;
        if (!wml_genai_ok(u->g, u->g->Generator_GenerateNextToken(u->generator), WML_E_RUN, err))
            return wml_wrap(err, "generate token %zu", n + 1);
        double ms = ms_between(start, wml_now_ns());
        if (n++) WML_PUSH(&u->s->decode_ms, ms);
        else u->s->first_token_ms = ms;
        if (!note(u, err)) return wml_wrap(err, "generate token %zu", n);
        if (!tell(u, ms)) break;
    }
    if (!n) return wml_fail(err, WML_E_RUN, "the model gave no token");
    return true;
}

static bool fetch(struct run *u, struct wml_err *err)
{
    const char *text = NULL;
    uint64_t start = wml_now_ns();
    const int32_t *data = u->g->Generator_GetSequenceCount(u->generator, 0) ? u->g->Generator_GetSequenceData(u->generator, 0) : NULL;
    if (!data) return wml_fail(err, WML_E_RUN, "the library tells no sequence");
    uint64_t middle = wml_now_ns();
    bool ok = wml_genai_ok(u->g, u->g->TokenizerDecode(u->m->tokenizer, u->s->token.at, u->s->token.len, &text), WML_E_RUN, err);
    uint64_t end = wml_now_ns();
    u->s->fetch_ms = ms_between(start, middle);
    u->s->detokenize_ms = ms_between(middle, end);
    if (!ok) return wml_wrap(err, "decode the answer");
    wml_buf_cstr(&u->s->text, text ? text : "");
    if (text) u->g->DestroyString(text);
    return true;
}

bool wml_genai_generate(struct wml_genai_model *m, const struct wml_genai_request *r, struct wml_genai_sample *out,
                        struct wml_err *err)
{
    struct wml_genai *g = m->g;
    struct run u = {.m = m, .g = g, .r = r, .s = out};
    *out = (struct wml_genai_sample){0};
    if (r->on_token && g->CreateTokenizerStream && g->DestroyTokenizerStream && g->TokenizerStreamDecode)
        wml_genai_ok(g, g->CreateTokenizerStream(m->tokenizer, &u.stream), WML_E_RUN, NULL);
    bool ok = encode(&u, err) && create(&u, err) && loop(&u, err) && fetch(&u, err);
    if (u.stream) g->DestroyTokenizerStream(u.stream);
    if (u.generator) g->DestroyGenerator(u.generator);
    if (u.params) g->DestroyGeneratorParams(u.params);
    if (u.prompt) g->DestroySequences(u.prompt);
    return ok;
}

void wml_genai_sample_release(struct wml_genai_sample *s)
{
    WML_VEC_RELEASE(&s->decode_ms);
    WML_VEC_RELEASE(&s->token);
    wml_buf_release(&s->text);
    *s = (struct wml_genai_sample){0};
}
