/* flow/build/prompts.c - what a pipeline is calibrated with: prompts as token ids, from a file of texts or of our own making. */
#include "flow/build/internal.h"

#include "flow/samples_text.h"
#include "tok/tok.h"

/* Questions of many kinds, numbers, code and other languages: what counts is that values take the ranges of real use. */
static const char *const built_in[] = {
    "What is the capital of France, and why did it become the capital?",
    "Explain how a refrigerator keeps food cold, in words a child understands.",
    "A train leaves at 9:40 and arrives at 13:05. It stops three times for six minutes each. How long does it move?",
    "Write a function in Python that returns the longest word of a sentence, with a short explanation.",
    "Summarise in two sentences: The bridge was closed in spring because cracks were found in one of its cables. Engineers replaced the "
    "cable within five weeks, and since June cars may cross it again, but lorries have to wait until the autumn.",
    "Translate into German: Could you tell me where the nearest pharmacy is?",
    "Which is heavier, a litre of water or a litre of oil? Give the reason.",
    "Give me a recipe for lentil soup for four people with the amounts in grams.",
    "Qu'est-ce qu'une \xc3\xa9" "clipse de lune ? R\xc3\xa9" "ponds en trois phrases.",
    "Write a polite e-mail that asks to move a meeting from Monday to Thursday at 10:30.",
    "Maria has 48 stamps. She gives a quarter of them to her brother and buys 15 more. How many has she now? Show each step.",
    "What does the following line do? for (int i = n - 1; i >= 0; i--) sum += a[i] * b[i];",
    "List five animals that live in the desert and one thing about each.",
    "\xe4\xbb\x80\xe4\xb9\x88\xe6\x98\xaf\xe5\x85\x89\xe5\x90\x88\xe4\xbd\x9c\xe7\x94\xa8\xef\xbc\x9f\xe8\xaf\xb7\xe7\xae\x80\xe5\x8d\x95\xe5\x9b\x9e\xe7\xad\x94\xe3\x80\x82",
    "Compare renting and buying a flat. Name three points for each side.",
    "Tell a short story about a lighthouse keeper who finds a letter in a bottle.",
    "Correct the mistakes: He don't has no time for goes to the library yesterday.",
    "Write an SQL query that lists customers with more than three orders in 2023, sorted by name.",
    "A rectangle is 12.5 cm long and 8 cm wide. What are its area and its perimeter?",
    "\xc2\xbf" "C\xc3\xb3mo se prepara una tortilla de patatas?",
    "Why is the sky blue at noon and red in the evening?",
    "Name the planets from the smallest to the largest.",
    "Turn this into a table with the columns name, age and city: Ann is 31 and lives in Leeds. Bob, 27, lives in York. Cem is from Hull, he is 44.",
    "What should I check before I buy a used bicycle?",
    "Write a JSON object that describes a book with title, author, year 1997, two tags and whether it is in stock.",
    "If all roses are flowers and some flowers fade quickly, do some roses fade quickly? Explain your answer.",
    "Schreibe ein kurzes Gedicht \xc3\xbc" "ber den ersten Schnee.",
    "How do vaccines work? Use at most sixty words.",
    "Convert 98.6 degrees Fahrenheit to Celsius and 15 kilometres to miles.",
    "Give three ideas for a rainy Sunday with two children of five and eight years.",
};

/* How chats ask, by the token that begins a turn; the first whose token the model knows. */
static const struct { const char *token, *before, *after; } forms[] = {
    {"<|im_start|>", "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"},
    {"<|start_header_id|>", "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"<start_of_turn>", "<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"},
    {"<|user|>", "<|user|>\n", "<|end|>\n<|assistant|>\n"},
    {"[INST]", "[INST] ", " [/INST]"},
};

static bool encode(const struct wml_tok *tok, struct wml_str text, bool bare, size_t most, struct wml_buf *scratch, struct wml_tok_ids *ids, struct wml_json *w, struct wml_err *err)
{
    const struct wml_tok_opts opts = {.max_length = most};
    size_t form = bare ? WML_COUNT(forms) : 0;
    while (form < WML_COUNT(forms) && wml_tok_id(tok, wml_str(forms[form].token)) < 0) form++;
    wml_buf_clear(scratch);
    if (form < WML_COUNT(forms)) wml_buf_cstr(scratch, forms[form].before);
    wml_buf_str(scratch, text);
    if (form < WML_COUNT(forms)) wml_buf_cstr(scratch, forms[form].after);
    if (!wml_tok_encode(tok, wml_buf_view(scratch), WML_NO_STR, &opts, ids, err)) return false;
    wml_json_begin(w, '[');
    for (size_t i = 0; i < ids->len; i++) wml_json_put_int(w, ids->id[i]);
    wml_json_end(w, ']');
    return true;
}

/* The texts of the user's file; the tokenizer that it opens by the way is not ours to use. */
static bool open_file(const struct wml_build_run *r, struct wml_texts **out, struct wml_err *err)
{
    const struct wml_io ids = {.name = "input_ids", .kind = WML_IO_TENSOR, .dtype = WML_I64};
    return wml_texts_open(r->a->text_file, wml_buf_text(&r->checkpoint.folder), (size_t)r->a->samples, &ids, 1, out, err);
}

static bool read(struct wml_build_run *r, struct wml_texts **texts, struct wml_tok **tok, struct wml_err *err)
{
    enum { WINDOWS = 4 /* of a prompt at most */, BARE = 3 /* each of so many is no chat: values of first tokens differ */ };
    struct wml_json w = {.out = &r->prompts};
    struct wml_buf scratch = {0};
    struct wml_tok_ids ids = {0};
    const char *folder = wml_buf_text(&r->checkpoint.folder);
    bool ok = wml_tok_open(folder, tok, err) && (!r->a->text_file || open_file(r, texts, err));
    const size_t n = *texts ? wml_texts_count(*texts) : WML_MIN(WML_COUNT(built_in), (size_t)r->a->samples);
    wml_json_begin(&w, '[');
    for (size_t i = 0; ok && i < n; i++)
        ok = encode(*tok, *texts ? wml_texts_at(*texts, i) : wml_str(built_in[i]), i % BARE == BARE - 1, (size_t)r->window * WINDOWS, &scratch, &ids, &w, err);
    wml_json_end(&w, ']');
    wml_tok_ids_release(&ids);
    wml_buf_release(&scratch);
    return ok;
}

bool wml_build_read_prompts(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_tok *tok = NULL;
    struct wml_texts *texts = NULL;
    const bool ok = read(r, &texts, &tok, err);
    wml_texts_close(texts);
    wml_tok_close(tok);
    return ok || wml_wrap(err, "prompts to calibrate with");
}
