/* genai/internal.h - the library's functions as pointers. The declarations are ours, written after its documentation:
 * no header of it is needed to build. Internal to src/genai. */
#ifndef WML_GENAI_INTERNAL_H
#define WML_GENAI_INTERNAL_H

#include "genai/genai.h"
#include "ort/ort.h"
#include "os/sys.h"

/* Opaque. */
struct OgaResult;
struct OgaConfig;
struct OgaModel;
struct OgaTokenizer;
struct OgaTokenizerStream;
struct OgaSequences;
struct OgaGeneratorParams;
struct OgaGenerator;


struct wml_genai {
    struct wml_ctx *cx;
    struct wml_dl *dl;
    char *path, *version;
#define SYMBOL(name, result, parameters) result(*name) parameters;
#define OPTIONAL SYMBOL
#include "genai/symbols.def"
#undef SYMBOL
#undef OPTIONAL
};

struct wml_genai_model {
    struct wml_genai *g;
    struct OgaConfig *config;
    struct OgaModel *model;
    struct OgaTokenizer *tokenizer;
};

/* true for NULL. Else the result is destroyed, and err gets its message in one line. */
bool wml_genai_ok(const struct wml_genai *g, struct OgaResult *r, enum wml_code code, struct wml_err *err);

#endif
