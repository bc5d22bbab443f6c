/* tok/unigram.c - Unigram (Kudo 2018): the tokens whose scores (log probabilities) sum up to most, by Viterbi's algorithm. A
 * character that no token covers costs 10 more than the worst token; a run of such characters is one unknown token. */
#include "tok/internal.h"

#include <math.h>

struct unigram {
    double *score; /* by id */
    double unknown_score;
    int64_t unknown, byte_id[256];
    bool bytes;
    struct wml_trie trie;
};

/* The score as the `tokenizers` library reads it: all digits as one number, by a power of ten. That is not always the double
 * nearest to what is written, and the last bit decides between ways that are equally good, as in "-----". */
static double score_of(const struct wml_json_val *v)
{
    char text[40];
    double exact = wml_json_num(v, 0), ten = 1;
    uint64_t digits = 0;
    int exponent = 0, n = 15;
    for (; n <= 17; n++) { /* the shortest that reads back: what is in the file */
        snprintf(text, sizeof text, "%.*e", n - 1, exact);
        if (strtod(text, NULL) == exact) break;
    }
    char *e = strchr(text, 'e');
    if (!e || !isfinite(exact)) return exact;
    exponent = (int)strtol(e + 1, NULL, 10);
    while (e > text && e[-1] == '0') e--;
    for (const char *p = text; p < e; p++) {
        bool digit = *p >= '0' && *p <= '9';
        if (digit) digits = digits * 10 + (uint64_t)(*p - '0');
        exponent -= digit && p > text + (*text == '-');
    }
    if (exponent < -300 || exponent > 300) return exact;
    for (int i = 0; i < abs(exponent); i++) ten *= 10;
    double size = exponent < 0 ? (double)digits / ten : (double)digits * ten;
    return exact < 0 ? -size : size;
}

static bool load_pieces(struct wml_tok *t, struct unigram *m, const struct wml_json_val *list, struct wml_err *err)
{
    size_t n = wml_json_len(list), i = 0;
    struct wml_json_iter it = {0};
    struct wml_str none;
    const struct wml_json_val *v;
    double least = (double)INFINITY;
    struct wml_trie_key *key = wml_big_alloc(WML_MAX(n, 1) * sizeof *key, err);
    m->score = wml_big_alloc(WML_MAX(n, 1) * sizeof *m->score, err);
    bool ok = key && m->score && wml_tok_vocab_init(&t->vocab, n, err);
    for (; ok && wml_json_next(list, &it, &none, &v); i++) {
        struct wml_str text = wml_json_str(wml_json_at(v, 0));
        const struct wml_json_val *score = wml_json_at(v, 1);
        if (!text.ptr || !wml_json_is_number(score)) {
            ok = wml_fail(err, WML_E_FORMAT, "Unigram: entry %zu of the vocabulary is not [text, score]", i);
            break;
        }
        m->score[i] = score_of(score);
        if (m->score[i] < least) least = m->score[i];
        wml_tok_vocab_add(&t->vocab, text, (uint32_t)i);
        key[i] = (struct wml_trie_key){text, (uint32_t)i};
    }
    m->unknown_score = least - 10;
    t->n_model = n;
    ok = ok && wml_tok_vocab_finish(&t->vocab, err) && wml_trie_build(&m->trie, key, n, err);
    free(key);
    return ok;
}

static bool load(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct unigram *m = t->model = wml_xcalloc(1, sizeof *m);
    const struct wml_json_val *list = wml_json_get(v, "vocab");
    char text[8];
    if (!wml_json_is_array(list)) return wml_tok_missing("the model Unigram", "vocab", err);
    if (wml_json_len(list) > WML_TOK_MAX_ID) return wml_fail(err, WML_E_FORMAT, "Unigram: the vocabulary is too large");
    m->unknown = wml_json_get_int(v, "unk_id", -1);
    m->bytes = wml_json_get_bool(v, "byte_fallback", false);
    if (m->unknown >= (int64_t)wml_json_len(list))
        return wml_fail(err, WML_E_FORMAT, "Unigram: unk_id is beyond the vocabulary");
    t->role[WML_TOK_UNK] = m->unknown;
    if (!load_pieces(t, m, list, err)) return false;
    for (unsigned i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", i);
        m->byte_id[i] = wml_tok_vocab_id(&t->vocab, wml_str(text));
    }
    return true;
}

static void reach(struct wml_tok_best *to, double score, size_t from, uint32_t id)
{
    if (to->from == UINT32_MAX || score > to->score) *to = (struct wml_tok_best){score, (uint32_t)from, id};
}

/* The best way to every place of the text. */
static bool forward(const struct unigram *m, struct wml_tok_best *best, struct wml_str s, struct wml_err *err)
{
    for (size_t i = 0; i <= s.len; i++) best[i] = (struct wml_tok_best){0, UINT32_MAX, 0};
    for (size_t at = 0, one; at < s.len; at += one) {
        bool covered = false;
        uint32_t node = 0;
        one = wml_utf8_len(s.ptr[at]);
        for (size_t i = at; i < s.len; i++) {
            node = wml_trie_step(&m->trie, node, (unsigned char)s.ptr[i]);
            if (!node) break;
            uint32_t value = m->trie.value[node];
            if (!value) continue;
            reach(&best[i + 1], m->score[value - 1] + best[at].score, at, value - 1);
            covered |= i + 1 == at + one;
        }
        if (covered) continue;
        struct wml_tok_best *to = &best[at + one];
        double score = m->unknown_score + best[at].score;
        if (to->from != UINT32_MAX && !(score > to->score)) continue;
        if (m->unknown < 0) {
            wml_fail(err, WML_E_UNSUPPORTED, "'%.*s' is not in the vocabulary, which has no token for unknown characters",
                     WML_ARG(wml_str_sub(s, at, at + one)));
            return wml_hint(err, "the tokenizer's files do not belong together");
        }
        reach(to, score, at, (uint32_t)m->unknown);
    }
    return true;
}

/* Tokens are found from the end and put in reverse, turned round by the caller. */
static void put_back(const struct wml_tok *t, const struct unigram *m, struct wml_str part, struct wml_tok_list *out)
{
    int64_t id = wml_tok_vocab_id(&t->vocab, part);
    bool bytes = id < 0 && m->bytes;
    for (size_t i = 0; bytes && i < part.len; i++) bytes = m->byte_id[(unsigned char)part.ptr[i]] >= 0;
    if (!bytes) {
        WML_PUSH(&out->v, id < 0 ? m->unknown : id);
        return;
    }
    for (size_t i = part.len; i > 0; i--) WML_PUSH(&out->v, m->byte_id[(unsigned char)part.ptr[i - 1]]);
}

static bool encode(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str s, struct wml_tok_list *out,
                   struct wml_err *err)
{
    const struct unigram *m = t->model;
    size_t first = out->v.len, unknown_end = 0;
    while (w->best.cap < s.len + 1) w->best.at = wml_vec_grow(w->best.at, &w->best.cap, sizeof *w->best.at);
    if (!forward(m, w->best.at, s, err)) return false;
    for (size_t end = s.len; end > 0;) {
        const struct wml_tok_best *b = &w->best.at[end];
        bool unknown = m->unknown >= 0 && b->id == (uint32_t)m->unknown;
        if (unknown && !unknown_end) unknown_end = end;
        if (!unknown) {
            if (unknown_end) put_back(t, m, wml_str_sub(s, end, unknown_end), out);
            unknown_end = 0;
            put_back(t, m, wml_str_sub(s, b->from, end), out);
        }
        end = b->from;
    }
    if (unknown_end) put_back(t, m, wml_str_sub(s, 0, unknown_end), out);
    for (size_t i = first, j = out->v.len; i + 1 < j; i++) {
        int64_t swap = out->v.at[i];
        out->v.at[i] = out->v.at[--j];
        out->v.at[j] = swap;
    }
    return true;
}

static void release(struct wml_tok *t)
{
    struct unigram *m = t->model;
    if (!m) return;
    wml_trie_release(&m->trie);
    free(m->score);
    free(m);
}

const struct wml_tok_algo wml_tok_algo_unigram = {.name = "Unigram", .load = load, .encode = encode, .free = release};
