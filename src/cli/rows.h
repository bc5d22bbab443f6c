/* cli/rows.h - reading option rows: for the parser, help, completion and the driver. */
#ifndef WML_CLI_ROWS_H
#define WML_CLI_ROWS_H

#include "cli/near.h"
#include "cli/opt.h"

/* A row as the command line meets it. */
struct wml_row {
    const struct wml_opt *opt; /* NULL: none */
    void *member;              /* into args; NULL when args is NULL */
    bool off;                  /* the --no- form of a flag */
};

struct wml_row wml_row_by_letter(const struct wml_opt *rows, void *args, char letter);
/* Exact long name or alias; flags also as "no-" + name. */
struct wml_row wml_row_by_name(const struct wml_opt *rows, void *args, struct wml_str name);
/* "'-m' / '--model'", with all aliases. */
void wml_row_title(const struct wml_opt *opt, struct wml_buf *out);
/* Every long form that help shows, with dashes, for did-you-mean. Strings in the arena. */
void wml_row_names(const struct wml_opt *rows, struct wml_arena *arena, struct wml_names *out);
/* "a|b|c" when the value is a choice, else NULL. */
const char *wml_row_choices(const struct wml_opt *opt);
bool wml_row_takes_value(const struct wml_opt *opt);
/* Stores one text into its member. Checks choices, numbers, ranges, existing paths; WML_E_USAGE. */
bool wml_row_store(const struct wml_row *row, struct wml_str text, enum wml_opt_source from,
                   struct wml_arena *arena, struct wml_err *err);
enum wml_opt_source wml_row_source(const struct wml_row *row);

#endif
