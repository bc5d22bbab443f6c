/* flow/checkpoint.c - see checkpoint.h. */
#include "flow/checkpoint.h"

#include "os/file.h"
#include "os/path.h"

/* What can only be a path: "./x", "../x", "~/x", "C:\x", "a/b/c". */
static bool is_path(struct wml_str s)
{
    size_t slashes = 0;
    for (size_t i = 0; i < s.len; i++) {
        slashes += s.ptr[i] == '/';
        if (s.ptr[i] == '\\') return true;
    }
    return slashes > 1 || wml_path_is_absolute(s) || wml_str_starts(s, "./") || wml_str_starts(s, "../") || wml_str_starts(s, "~/") ||
           (s.len > 1 && s.ptr[1] == ':');
}

enum wml_model_ref wml_model_ref(const char *text, struct wml_err *err)
{
    const struct wml_str s = wml_str(text);
    const struct wml_file_info info = wml_file_info(text);
    const bool onnx = wml_str_ends(s, ".onnx");
    if (!wml_str_trim(s).len) {
        wml_fail(err, WML_E_USAGE, "Model input cannot be empty.");
        return WML_REF_INVALID;
    }
    if (info.kind == WML_FILE_DIR) return WML_REF_FOLDER;
    if (onnx) return WML_REF_ONNX;
    if (info.kind != WML_FILE_NONE) wml_fail(err, WML_E_USAGE, "Unsupported model file: '%s'. Only .onnx files are supported.", text);
    else if (is_path(s)) wml_fail(err, WML_E_USAGE, "Model path does not exist: %s", text);
    else if (wml_hub_is_id(s)) return WML_REF_ID;
    else wml_fail(err, WML_E_USAGE, "'%s' is not a valid HuggingFace model identifier (expected 'name' or 'org/name').", text);
    wml_hint(err, "give the folder of a Hugging Face model (config.json and weights) or its id, org/name");
    return WML_REF_INVALID;
}

bool wml_checkpoint_folder(struct wml_ctx *cx, const char *text, const char *verb, enum wml_hub_what what, struct wml_buf *folder,
                           struct wml_err *err)
{
    const struct wml_hub_opts opts = {.what = what};
    switch (wml_model_ref(text, err)) {
    case WML_REF_FOLDER: wml_buf_cstr(folder, text); return true;
    case WML_REF_ID: return wml_hub_fetch(cx, text, &opts, folder, err);
    case WML_REF_ONNX:
        wml_fail(err, WML_E_USAGE, "%s needs a Hugging Face folder or model id, not an ONNX file: %s", verb, text);
        return wml_hint(err, "`winml inspect -m %s` shows what is in it", text);
    case WML_REF_INVALID: break;
    }
    return false;
}
