/* What opens and what is refused by which name; lengths, padding, roles, bad UTF-8. Ids themselves: tests/parity/test_tok.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/path.h"
#include "tok/tok.h"

#define WORDS "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<u>\",\"vocab\":{\"<u>\":0,\"a\":1,\"b\":2,\"<p>\":3,\"\xef\xbf\xbd\":4}}"
#define SPLIT "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}"
#define AROUND                                                                                                         \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}},"     \
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"                   \
    "{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"                         \
    "\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[9],\"tokens\":[\"x\"]}}}"

static struct wml_tok *open_text(const char *json)
{
    struct wml_tok *t;
    struct wml_err err = {0};
    if (!wml_tok_parse(wml_str(json), &t, &err)) fail_msg("%s", err.msg);
    return t;
}

/* Ids and types as "9:0 1:0 ", "p" for padding; or the error. */
static void gives(const struct wml_tok *t, const char *text, const char *pair, struct wml_tok_opts o, const char *expected)
{
    struct wml_tok_ids ids = {0};
    struct wml_err err = {0};
    struct wml_buf b = {0};
    if (!wml_tok_encode(t, wml_str(text), wml_str(pair), &o, &ids, &err)) wml_buf_cstr(&b, err.msg);
    for (size_t i = 0; i < ids.len; i++)
        wml_buf_fmt(&b, ids.mask[i] ? "%d:%d " : "p%d:%d ", (int)ids.id[i], (int)ids.type[i]);
    if (err.code && !err.hint[0]) fail_msg("'%s' has no hint", err.msg);
    if (ids.cut) wml_buf_cstr(&b, "cut");
    if (strcmp(wml_buf_text(&b), expected) != 0) fail_msg("'%s' gives '%s', not '%s'", text, wml_buf_text(&b), expected);
    wml_buf_release(&b);
    wml_tok_ids_release(&ids);
}

static void test_lengths(void **state)
{
    struct wml_tok *t = open_text("{" WORDS "," SPLIT "," AROUND "}");
    (void)state;
    gives(t, "a b", NULL, (struct wml_tok_opts){0}, "9:0 1:0 2:0 ");
    gives(t, "a b", NULL, (struct wml_tok_opts){.bare = true}, "1:0 2:0 ");
    gives(t, "", NULL, (struct wml_tok_opts){0}, "9:0 ");
    gives(t, "a b", "b", (struct wml_tok_opts){0}, "1:0 2:0 9:0 2:1 ");
    gives(t, "a", "", (struct wml_tok_opts){0}, "1:0 9:0 ");
    gives(t, "a b a", NULL, (struct wml_tok_opts){.max_length = 3}, "9:0 1:0 2:0 cut");
    gives(t, "a b a", NULL, (struct wml_tok_opts){.max_length = 4}, "9:0 1:0 2:0 1:0 ");
    gives(t, "a b b", NULL, (struct wml_tok_opts){.max_length = 3, .cut_left = true}, "9:0 2:0 2:0 cut");
    gives(t, "a", NULL, (struct wml_tok_opts){.pad_to = 4, .pad_id = 3, .pad_type = 1}, "9:0 1:0 p3:1 p3:1 ");
    gives(t, "a", NULL, (struct wml_tok_opts){.pad_to = 4, .pad_id = 3, .pad_left = true}, "p3:0 p3:0 9:0 1:0 ");
    gives(t, "a b a", NULL, (struct wml_tok_opts){.pad_to = 2, .pad_id = 3}, "9:0 1:0 2:0 1:0 ");
    gives(t, "a b a b", "b", (struct wml_tok_opts){.max_length = 4}, "1:0 2:0 9:0 2:1 cut");
    gives(t, "a b a b", "b a", (struct wml_tok_opts){.max_length = 4, .cut = WML_TOK_ONLY_FIRST}, "1:0 9:0 2:1 1:1 cut");
    gives(t, "a b", "b a", (struct wml_tok_opts){.max_length = 4, .cut = WML_TOK_ONLY_SECOND}, "1:0 2:0 9:0 2:1 cut");
    wml_tok_close(t);
}

static void test_no_room(void **state)
{
    struct wml_tok *t = open_text("{" WORDS "," SPLIT "," AROUND "}");
    struct wml_tok_opts o;
    (void)state;
    wml_tok_defaults(t, &o);
    assert_int_equal(o.pad_id, -1);
    o.pad_to = 8;
    gives(t, "a", NULL, o, "this tokenizer has no token for padding");
    gives(t, "a b a b", "b", (struct wml_tok_opts){.max_length = 2, .cut = WML_TOK_ONLY_SECOND},
          "the second text cannot be shortened by 4 tokens: it has 1");
    wml_tok_close(t);
    t = open_text("{" WORDS "," SPLIT ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]}}");
    gives(t, "a", NULL, (struct wml_tok_opts){.max_length = 1},
          "a maximum of 1 tokens has no room for the 2 special tokens of this model");
    gives(t, "a", NULL, (struct wml_tok_opts){.max_length = 2}, "1:0 2:0 cut");
    wml_tok_close(t);
}

static void test_bad_text(void **state)
{
    struct wml_tok *t = open_text("{" WORDS ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\xef\xbf\xbd\"},"
                                  "\"behavior\":\"Isolated\",\"invert\":false}}");
    static const struct { const char *text, *ids; } row[] = { /* U+FFFD is 4; Unicode 15, table 3-8 */
        {"a\xff" "b", "1:0 4:0 2:0 "}, {"\xc3", "4:0 "}, {"\xc3" "a", "4:0 1:0 "}, {"\xe2\x82", "4:0 "}, {"\xe2\x82" "a", "4:0 1:0 "},
        {"\xed\xa0\x80", "4:0 4:0 4:0 "}, {"\xf0\x9f\x98", "4:0 "}, {"\xf4\x90\x80\x80", "4:0 4:0 4:0 4:0 "}, {"\xc0\xaf", "4:0 4:0 "},
        {"\x80\x80", "4:0 4:0 "}, {"\xe0\x80" "b", "4:0 4:0 2:0 "}, {"\xf1\x80\x80" "a", "4:0 1:0 "},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(row); i++) gives(t, row[i].text, NULL, (struct wml_tok_opts){0}, row[i].ids);
    wml_tok_close(t);
}

static void test_unknown(void **state)
{
    struct wml_tok *t = open_text("{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"a\":0}}}");
    (void)state;
    gives(t, "x", NULL, (struct wml_tok_opts){0}, "'x' is not in the vocabulary, which has no token for unknown words");
    wml_tok_close(t);
    t = open_text("{\"model\":{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1]]}}");
    gives(t, "ax", NULL, (struct wml_tok_opts){0}, "'x' is not in the vocabulary, which has no token for unknown characters");
    wml_tok_close(t);
}

static void test_refused(void **state)
{
    static const struct { const char *json, *part; } row[] = {
        {"{}", "it has no \"model\""}, {"[1]", "it has no \"model\""}, {"{\"model\":{\"type\":\"Magic\"}}", "the model 'Magic'"},
        {"{\"version\":\"2.0\"," WORDS "}", "the format version '2.0'"},
        {"{" WORDS ",\"normalizer\":{\"type\":\"Unheard\"}}", "the normalizer 'Unheard'"},
        {"{" WORDS ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"X\"}]}}", "the normalizer 'X'"},
        {"{" WORDS ",\"normalizer\":{}}", "the normalizer has no type"},
        {"{" WORDS ",\"normalizer\":{\"type\":\"Prepend\"}}", "the normalizer Prepend has no \"prepend\""},
        {"{" WORDS ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "the pre-tokenizer 'UnicodeScripts'"},
        {"{" WORDS ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}}", "the pattern '('"},
        {"{" WORDS ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\R\"},\"behavior\":\"Isolated\"}}", "this escape at byte 1"},
        {"{" WORDS ",\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Odd\"}}", "'Odd'"},
        {"{" WORDS ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"often\"}}", "'often'"},
        {"{" WORDS ",\"post_processor\":{\"type\":\"Stamp\"}}", "the post-processor 'Stamp'"},
        {"{" WORDS ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]},"
         "{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]}]}}", "second post-processor"},
        {"{" WORDS ",\"decoder\":{\"type\":\"CTC\"}}", "the decoder 'CTC'"},
        {"{" WORDS ",\"truncation\":{\"strategy\":\"Half\",\"max_length\":3}}", "'Half'"},
        {"{" WORDS ",\"added_tokens\":[{\"id\":1}]}", "an added token has no \"content\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "merge 1: the vocabulary has no 'b'"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 1: it is not two tokens"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\"]]}}", "merge 1: the vocabulary has no 'aa'"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "the model BPE has no \"merges\""},
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"a\":-1}}}", "'a' has no id"},
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"a\":99999999}}}", "'a' has no id"},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",-1]]}}", "unk_id is beyond"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "entry 0 of the vocabulary"},
        {"{" WORDS ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%%\"}}", "no base64"},
        {"{" WORDS ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////fw==\"}}", "precompiled_charsmap"},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_tok *t = NULL;
        struct wml_err err = {0};
        if (wml_tok_parse(wml_str(row[i].json), &t, &err)) fail_msg("%s opens", row[i].json);
        assert_null(t);
        if (!wml_str_has(wml_str(err.msg), row[i].part)) fail_msg("'%s' does not speak of '%s'", err.msg, row[i].part);
        if (err.code == WML_E_UNSUPPORTED && !err.hint[0]) fail_msg("'%s' has no hint", err.msg);
    }
}

static void put(const char *folder, const char *name, const char *text)
{
    struct wml_buf path = {0};
    struct wml_err err = {0};
    wml_path_join(&path, wml_str(folder), wml_str(name));
    if (!wml_file_write(wml_buf_text(&path), wml_str(text), &err)) fail_msg("%s", err.msg);
    wml_buf_release(&path);
}

static void fails(const char *path, enum wml_code code, const char *message, const char *hint)
{
    struct wml_tok *t;
    struct wml_err err = {0};
    assert_false(wml_tok_open(path, &t, &err));
    assert_int_equal(err.code, code);
    if (!wml_str_has(wml_str(err.msg), message)) fail_msg("'%s' does not say '%s'", err.msg, message);
    if (!wml_str_has(wml_str(err.hint), hint)) fail_msg("'%s' does not say '%s'", err.hint, hint);
}

static void test_folder(void **state)
{
    struct wml_buf dir = {0};
    struct wml_err err = {0};
    struct wml_tok *t;
    struct wml_tok_opts o;
    (void)state;
    if (!wml_dir_temp(NULL, "tok", &dir, &err)) fail_msg("%s", err.msg);
    const char *folder = wml_buf_text(&dir);
    fails(folder, WML_E_NOT_FOUND, "has no tokenizer.json and no vocab.txt", "where the model comes from");
    put(folder, "spiece.model", "x");
    fails(folder, WML_E_NOT_FOUND, "has no tokenizer.json", "it has spiece.model");
    put(folder, "vocab.txt", "a\nb\n");
    fails(folder, WML_E_FORMAT, "no vocabulary of BERT", "tokenizer.json");
    put(folder, "tokenizer.json", "{\"model\":");
    fails(folder, WML_E_FORMAT, "tokenizer.json: invalid JSON", "");
    put(folder, "tokenizer.json", "{" WORDS ",\"added_tokens\":[{\"content\":\"<e>\",\"special\":true},{\"content\":\"a\"}],"
        "\"truncation\":{\"strategy\":\"OnlyFirst\",\"max_length\":7,\"direction\":\"Left\"},"
        "\"padding\":{\"strategy\":{\"Fixed\":6},\"direction\":\"Left\",\"pad_to_multiple_of\":4,\"pad_id\":3,\"pad_type_id\":1}}");
    put(folder, "tokenizer_config.json", "{\"eos_token\":{\"content\":\"<e>\"},\"bos_token\":\"nothing\",\"model_max_length\":1e30,"
        "\"added_tokens_decoder\":{\"1\":{\"content\":\"a\"},\"6\":{\"content\":\"<extra>\",\"special\":true}}}");
    put(folder, "special_tokens_map.json", "{\"mask_token\":\"b\",\"eos_token\":\"a\"}");
    if (!wml_tok_open(folder, &t, &err)) fail_msg("%s", err.msg);
    assert_string_equal(wml_tok_algorithm(t), "WordLevel");
    assert_int_equal(wml_tok_vocab_size(t), 7);
    assert_int_equal(wml_tok_id(t, WML_STR("<extra>")), 6);
    assert_int_equal(wml_tok_id(t, WML_STR("<e>")), 5);
    assert_int_equal(wml_tok_id(t, WML_STR("b")), 2);
    assert_int_equal(wml_tok_id(t, WML_STR("c")), -1);
    assert_true(wml_str_is(wml_tok_text(t, 5), "<e>"));
    assert_null(wml_tok_text(t, 7).ptr);
    assert_null(wml_tok_text(t, -1).ptr);
    static const int64_t role[] = {-1, 5, 0, -1, 3, -1, 2};
    for (int i = 0; i < WML_TOK_N_ROLES; i++) assert_int_equal(wml_tok_special(t, (enum wml_tok_role)i), role[i]);
    wml_tok_defaults(t, &o);
    assert_true(o.max_length == 7 && o.cut == WML_TOK_ONLY_FIRST && o.cut_left && o.pad_left);
    assert_true(o.pad_to == 8 && o.pad_id == 3 && o.pad_type == 1);
    wml_tok_close(t);
    wml_dir_remove(folder);
    wml_buf_release(&dir);
}

static void test_decode(void **state)
{
    struct wml_tok *t = open_text("{" WORDS ",\"added_tokens\":[{\"content\":\"<p>\",\"special\":true}]}");
    static const int64_t ids[] = {1, 3, -5, 2, 77, INT64_MAX, 0};
    struct wml_buf b = {0};
    struct wml_err err = {0};
    (void)state;
    assert_true(wml_tok_decode(t, ids, WML_COUNT(ids), false, &b, &err));
    assert_string_equal(wml_buf_text(&b), "a b <u>");
    wml_buf_clear(&b);
    assert_true(wml_tok_decode(t, ids, WML_COUNT(ids), true, &b, &err));
    assert_string_equal(wml_buf_text(&b), "a <p> b <u>");
    wml_buf_release(&b);
    wml_tok_close(t);
}

/* One set of arrays for two tokenizers: what was remembered of the first must not come out of the second. */
static void test_reuse(void **state)
{
    struct wml_tok *t = open_text("{" WORDS "}"), *u;
    struct wml_tok_ids ids = {0};
    struct wml_err err = {0};
    (void)state;
    for (int round = 0; round < 50; round++) {
        assert_true(wml_tok_encode(t, WML_STR("a"), WML_NO_STR, NULL, &ids, &err));
        assert_int_equal(ids.id[0], round % 2 ? 7 : 1);
        wml_tok_close(t);
        u = open_text(round % 2 ? "{" WORDS "}"
                                : "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":7}}}");
        t = u;
    }
    wml_tok_close(t);
    wml_tok_ids_release(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_no_room), cmocka_unit_test(test_bad_text), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_folder), cmocka_unit_test(test_decode), cmocka_unit_test(test_reuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
