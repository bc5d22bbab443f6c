/* cli/opt.h - options as constant rows. The parser, --help, completion, config files and the docs test
 * read the same rows; each row points at a member of the command's args struct, and the compiler checks
 * the member's type.
 *
 *     #define ARGS struct optimize_args
 *     static const struct wml_opt opts[] = {
 *         WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "ONNX model"),
 *         WML_OPT_FLAG(0, "verify", verify, "yes", "compare before and after"),      --verify/--no-verify
 *         WML_OPT_INT('n', "iterations", iterations, "N", 0, 1, 1000000, "100", "timed runs"),
 *         WML_OPT_LIST(0, "input-shape", shapes, "NAME=1,3,48", 0, "fixed shape of an input"),
 *         WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
 *         WML_OPT_END };
 *
 * Defaults are texts, parsed like typed values, so help always tells the truth. */
#ifndef WML_CLI_OPT_H
#define WML_CLI_OPT_H

#include <stddef.h>
#include "base/vec.h"

enum wml_opt_source { WML_FROM_DEFAULT, WML_FROM_CONFIG, WML_FROM_ENV, WML_FROM_COMMAND_LINE };

/* Members of args structs. `from` tells who set the value. */
struct wml_opt_str { const char *v; enum wml_opt_source from; };     /* NULL: not given */
struct wml_opt_int { int64_t v; bool set; enum wml_opt_source from; };
struct wml_opt_num { double v; bool set; enum wml_opt_source from; };
struct wml_opt_flag { bool v; bool set; enum wml_opt_source from; };
struct wml_opt_list { WML_VEC(const char *) v; enum wml_opt_source from; }; /* in order of typing */
struct wml_opt_count { int v; };

enum wml_opt_kind { WML_KIND_END, WML_KIND_STR, WML_KIND_INT, WML_KIND_NUM, WML_KIND_FLAG,
                    WML_KIND_LIST, WML_KIND_COUNT, WML_KIND_GROUP };
enum wml_opt_flags {
    WML_OPT_REQUIRED = 1,
    WML_OPT_PATH = 2,     /* a path: ~ is expanded, completion offers files */
    WML_OPT_EXISTS = 4,   /* exit 2 unless it is there */
    WML_OPT_HIDDEN = 8,   /* accepted, not in help */
    WML_OPT_SWITCH = 16,  /* a flag without its --no- twin */
    WML_OPT_IGNORED = 32, /* accepted for old scripts; named in one warning */
    WML_OPT_NUMBERED = 64 /* a choice may carry ":N", as gpu:1 does */
};

struct wml_opt {
    enum wml_opt_kind kind;
    char letter; /* 0: none */
    char no_letter;       /* of a flag's --no- twin; 0: none */
    const char *name;
    const char *alias;    /* further long names, separated by blanks */
    size_t offset;        /* into args */
    const char *value;    /* "FILE"; or choices "auto|npu|gpu|cpu", matched without case */
    unsigned flags;
    double low, high;     /* INT, NUM: allowed range, when low < high */
    const char *fallback; /* default as text; NULL: none */
    const char *help;
    const struct wml_opt *group;
};

#define WML_OPT_AT_(member, type) _Generic(((ARGS *)0)->member, type: offsetof(ARGS, member))
#define WML_OPT_STR(l, n, m, val, fl, def, text) { .kind = WML_KIND_STR, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_str), .value = (val), .flags = (fl), .fallback = (def), .help = (text) }
#define WML_OPT_INT(l, n, m, val, fl, lo, hi, def, text) { .kind = WML_KIND_INT, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_int), .value = (val), .flags = (fl), .low = (lo), .high = (hi), \
    .fallback = (def), .help = (text) }
#define WML_OPT_NUM(l, n, m, val, fl, lo, hi, def, text) { .kind = WML_KIND_NUM, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_num), .value = (val), .flags = (fl), .low = (lo), .high = (hi), \
    .fallback = (def), .help = (text) }
#define WML_OPT_FLAG(l, n, m, fl, def, text) { .kind = WML_KIND_FLAG, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_flag), .flags = (fl), .fallback = (def), .help = (text) }
#define WML_OPT_FLAG2(l, no, n, m, def, text) { .kind = WML_KIND_FLAG, .letter = (l), .no_letter = (no), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_flag), .fallback = (def), .help = (text) }
#define WML_OPT_LIST(l, n, m, val, fl, text) { .kind = WML_KIND_LIST, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_list), .value = (val), .flags = (fl), .help = (text) }
#define WML_OPT_COUNT(l, n, m, text) { .kind = WML_KIND_COUNT, .letter = (l), .name = (n), \
    .offset = WML_OPT_AT_(m, struct wml_opt_count), .help = (text) }
/* Rows of another table. Its args struct must be the first member(s) at `m` of ARGS. */
#define WML_OPT_GROUP(m, type, rows) { .kind = WML_KIND_GROUP, .offset = WML_OPT_AT_(m, struct type), .group = (rows) }
#define WML_OPT_END { .kind = WML_KIND_END }

/* Shared by every command: -v -q --no-color -f/--format -h. Handled by the driver. */
struct wml_common_args {
    struct wml_opt_count verbose;
    struct wml_opt_flag quiet, no_color;
    struct wml_opt_str format; /* text, json, ... */
};
extern const struct wml_opt wml_opts_common[];

/* Shared: --ep/--execution-provider, -d/--device, --ep-options. */
struct wml_target_args {
    struct wml_opt_str ep, device;
    struct wml_opt_list ep_options;
};
extern const struct wml_opt wml_opts_target[];
extern const struct wml_opt wml_opts_bundle_target[]; /* with --device config, for GenAI bundles */

/* Walks the rows, groups flattened: row i (0, 1, ...) and the offset of its member; NULL at the end. */
const struct wml_opt *wml_opt_row(const struct wml_opt *rows, size_t i, size_t *offset);

struct wml_parse {
    bool help;                /* -h or --help was met */
    WML_VEC(const char *) ignored; /* names of IGNORED options that were typed */
    struct wml_str unknown;   /* what was typed as the name of an option that does not exist */
};
/* Fills args (zeroed, of the command's size). argv[0] is the first word after the command. Strings
 * point into argv, or the arena. WML_E_USAGE with the documented message forms. Defaults are applied
 * first; values set already by a config file or the environment are kept unless typed. */
bool wml_opt_parse(const struct wml_opt *rows, void *args, int argc, char *const *argv,
                   struct wml_arena *arena, struct wml_parse *parse, struct wml_err *err);
bool wml_opt_defaults(const struct wml_opt *rows, void *args, struct wml_arena *arena, struct wml_err *err);
/* Sets one option by its long name (dashes or underscores), as config files do, unless a stronger source
 * has set it. false with WML_E_USAGE for a bad value; *known tells whether the option exists. */
bool wml_opt_set(const struct wml_opt *rows, void *args, struct wml_str name, struct wml_str value,
                 enum wml_opt_source from, struct wml_arena *arena, bool *known, struct wml_err *err);
/* The command line set the option; by its long name, which must exist. */
bool wml_opt_is_typed(const struct wml_opt *rows, const void *args, const char *name);
void wml_opt_release(const struct wml_opt *rows, void *args); /* the lists */

#endif
