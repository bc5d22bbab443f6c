/* families/bart.c - BART (Lewis et al. 2019) and mBART (Liu et al. 2020): an encoder of text and a decoder that reads it. */
#include "families/bart_body.h"

static bool is_mbart(const struct wml_family_job *j)
{
    return strcmp(j->type->model_type, "mbart") == 0;
}

static struct wml_bart params(struct wml_family_job *j)
{
    struct wml_bart p = {
        .encoder = {.layers = 12, .heads = 16, .inner = 4096, .vocab = 50265, .positions = 1024},
        .decoder = {.layers = 12, .heads = 16, .inner = 4096},
        .width = 1024, .offset = 2, .pad = 1, .scale = 1, .first_norm = true, .pre = is_mbart(j), .shared = "/model.shared.weight"};
    wml_bart_params(j, &p);
    return p;
}

/* [batch, 1]: the last place of each text where ids are `id`. */
static struct wml_value *last_place(struct wml_nn *b, struct wml_value *ids, int64_t id)
{
    struct wml_value *hit = wml_nn_compare(b, "Equal", ids, wml_nn_int(b, wml_value_elem(ids), id));
    struct wml_value *at = wml_nn_argmax(b, wml_nn_cast(b, hit, WML_I32), 1, true);
    if (at) wml_attr_set_int(at->def, "select_last_index", 1);
    return at;
}

/* [batch, 1]: the place of the last token, by the number of those that are not padding. */
static struct wml_value *end_place(struct wml_nn *b, struct wml_value *ids, int64_t pad)
{
    struct wml_value *blank = wml_nn_compare(b, "Equal", ids, wml_nn_int(b, wml_value_elem(ids), pad));
    struct wml_value *token = wml_nn_cast(b, wml_nn_unary(b, "Not", blank), WML_I64);
    return wml_nn_sub(b, wml_nn_reduce(b, "ReduceSum", token, WML_DIMS(1), true), wml_nn_int(b, WML_I64, 1));
}

/* What the decoder reads where it writes nothing: the text itself, one token later. Before it stands decoder_start_token_id;
 * with mBART the text's last token, the language. */
static struct wml_value *shifted(struct wml_family_job *j, const struct wml_bart *p, struct wml_value *ids)
{
    struct wml_nn *b = j->nn;
    if (!wml_nn_ok(b)) return NULL;
    const enum wml_dtype dtype = wml_value_elem(ids);
    struct wml_value *first;
    if (is_mbart(j)) {
        first = wml_nn_unsqueeze(b, wml_nn_pick_each(b, ids, end_place(b, ids, p->pad)), WML_DIMS(1));
    } else {
        const int32_t start = (int32_t)wml_cfg_count(j, j->cfg, "decoder_start_token_id", 2);
        const int64_t wide = start;
        first = wml_nn_const(b, "start", dtype, WML_DIMS(1, 1), dtype == WML_I64 ? (const void *)&wide : &start);
        first = wml_nn_repeat(b, first, 0, ids, 0);
    }
    struct wml_value *rest = wml_nn_slice(b, ids, 1, 0, -1);
    return wml_nn_axis(ids, 1).size == 1 ? first : wml_nn_concat(b, 1, WML_VALUES(first, rest));
}

/* The bare model over one text: [batch, length, width]. */
static struct wml_value *both(struct wml_family_job *j, const struct wml_bart *p, int64_t low, int64_t high, struct wml_value **ids)
{
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s = {0};
    *ids = wml_source_inputs(j, low, high, p->encoder.positions, &s.source_mask);
    s.ids = shifted(j, p, *ids);
    s.mask = wml_nn_causal_mask(b, *ids, NULL);
    wml_nn_enter(b, "*Model", "model");
    s.states = wml_bart_encoder(b, p, *ids, s.source_mask);
    struct wml_value *x = wml_bart_decoder(b, p, &s);
    wml_nn_leave(b);
    return x;
}

/* By the state at the last end of a sentence; sample texts are nothing but ends. */
static void classes(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    const int64_t end = wml_cfg_count(j, j->cfg, "eos_token_id", 2);
    struct wml_value *ids = NULL, *x = both(j, &p, end, end + 1, &ids);
    if (!wml_nn_ok(b)) return;
    x = wml_nn_pick_each(b, x, last_place(b, ids, end));
    wml_nn_enter(b, "*ClassificationHead", "classification_head");
    x = wml_nn_unary(b, "Tanh", wml_nn_linear(b, x, "dense", p.width));
    x = wml_nn_linear(b, x, "out_proj", wml_cfg_labels(j, j->cfg));
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static void question(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    struct wml_value *ids = NULL, *part[2];
    wml_nn_split(b, wml_nn_linear(b, both(j, &p, 0, p.encoder.vocab, &ids), "qa_outputs", 2), -1, 2, part);
    wml_nn_output(b, "start_logits", wml_nn_squeeze(b, part[0], WML_DIMS(-1)));
    wml_nn_output(b, "end_logits", wml_nn_squeeze(b, part[1], WML_DIMS(-1)));
}

static const struct wml_bart_kind kind = {.params = params};
static const struct wml_family_type types[] = {{"bart", "Bart", "model"}, {"mbart", "MBart", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "ForConditionalGeneration", wml_bart_step_task},
    {"feature-extraction", "ForConditionalGeneration", wml_bart_encode_task},
    {"text-classification", "ForSequenceClassification", classes},
    {"question-answering", "ForQuestionAnswering", question},
    {NULL, NULL, NULL},
};
#define PARTS {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}
static const struct wml_family_composite composites[] = {
    {"summarization", PARTS}, {"table-question-answering", PARTS}, {"translation", PARTS}, {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_bart = {.name = "bart", .type = types, .task = tasks, .composite = composites, .own = &kind};
