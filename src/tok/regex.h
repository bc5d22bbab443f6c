/* tok/regex.h - regular expressions of tokenizer.json, by PCRE2 with its just-in-time compiler.
 *
 * The files write Oniguruma's syntax (Ruby's), so a pattern is rewritten first: see regex_syntax.c. PCRE2 and not matchers
 * of our own for the known patterns: models bring new ones every month, and it runs them at tens of MB/s. It is a part
 * built from source (scripts/parts.tsv), so every target has it.
 *
 * A compiled pattern never changes and may be used by several threads, each with its own struct wml_regex_match. Patterns
 * come from files: matching gives up with an error after a fixed amount of work or memory. */
#ifndef WML_TOK_REGEX_H
#define WML_TOK_REGEX_H

#include "base/str.h"

struct wml_regex;
bool wml_regex_new(struct wml_str pattern, struct wml_regex **out, struct wml_err *err);
/* A pattern of ours, in PCRE2's own syntax with UTF and UCP. */
bool wml_regex_own(const char *pattern, struct wml_regex **out, struct wml_err *err);
void wml_regex_free(struct wml_regex *r);

struct wml_regex_match;
struct wml_regex_match *wml_regex_match_new(void);
void wml_regex_match_free(struct wml_regex_match *m);

/* The first match at or behind `from`; *start is SIZE_MAX when there is none. `text` is valid UTF-8. */
bool wml_regex_find(const struct wml_regex *r, struct wml_regex_match *m, struct wml_str text, size_t from, size_t *start,
                    size_t *end, struct wml_err *err);

/* All matches one after the other, as Oniguruma's iterator gives them: an empty match right behind another does not count.
 * `at` and `last` start as 0 and SIZE_MAX. *start is SIZE_MAX at the end. */
struct wml_regex_walk {
    size_t at, last;
};
bool wml_regex_next(const struct wml_regex *r, struct wml_regex_match *m, struct wml_str text, struct wml_regex_walk *walk,
                    size_t *start, size_t *end, struct wml_err *err);

bool wml_regex_is_script(struct wml_str name); /* "Han" */
/* The pattern in PCRE2's syntax, to be compiled with UTF, UCP, MULTILINE and ALT_EXTENDED_CLASS. */
bool wml_regex_translate(struct wml_str pattern, struct wml_buf *out, struct wml_err *err);

#endif
