/* flow/samples_text.h - texts as samples: lines of a .txt file, or of a .jsonl file whose objects have a member `text`, or
 * else a first string and a second one, which are a pair. The model's own tokenizer makes the inputs that such models
 * have: input_ids, attention_mask, token_type_ids, position_ids. */
#ifndef WML_FLOW_SAMPLES_TEXT_H
#define WML_FLOW_SAMPLES_TEXT_H

#include "worker/feed.h"

struct wml_texts;
/* By the name: such a file. */
bool wml_texts_are(const char *path);
/* tokenizer: a folder, or its file. At most max texts are kept. WML_E_USAGE: the model takes no texts. */
bool wml_texts_open(const char *path, const char *tokenizer, size_t max, const struct wml_io *input, size_t n, struct wml_texts **out,
                    struct wml_err *err);
void wml_texts_close(struct wml_texts *t);
size_t wml_texts_count(const struct wml_texts *t);
struct wml_str wml_texts_at(const struct wml_texts *t, size_t i); /* the first of a pair */
/* Text i as inputs. A fixed length of input_ids, in the model or in a shape of the feed, is filled up to; where it is open, the
 * text's own length is taken, at most 512 tokens. May be called from several threads. */
bool wml_texts_make(const struct wml_texts *t, size_t i, const struct wml_io *input, size_t n, const struct wml_feed_spec *feed,
                    struct wml_feed *out, struct wml_err *err);

#endif
