/* onnx/onnx.h - ONNX files: load without copying, save by streaming, skeletons for the oracle.
 *
 * A file without edits comes out byte for byte as it went in when its encoder wrote fields in number
 * order with minimal varints (all known exporters do) and the weights need not move. */
#ifndef WML_ONNX_ONNX_H
#define WML_ONNX_ONNX_H

#include "graph/model.h"

/* Maps the file, decodes and links it. Errors name the byte offset and the message path; a file that
 * is something else (web page, Git LFS pointer, zip, safetensors, ...) is called what it is. External
 * data is not opened before somebody asks for it. */
bool wml_onnx_load(const char *path, struct wml_model **out, struct wml_err *err);
/* The same from memory, which must outlive the model. folder: where external data lies, or NULL. */
bool wml_onnx_load_bytes(struct wml_span bytes, const char *folder, struct wml_model **out,
                         struct wml_err *err);

/* A second model with the same content, as m stands now. Bytes and strings are shared, so m must outlive it; changes
 * on either side are not seen on the other. NULL: m cannot be linked. */
struct wml_model *wml_onnx_clone(struct wml_model *m, struct wml_err *err);

/* m stands for the model that `of` was loaded as: it gets its path and folder, so that skeletons, references
 * and saving over the file work as before. */
void wml_onnx_take_place(struct wml_model *m, const struct wml_model *of);

enum wml_external_mode {
    WML_EXTERNAL_AUTO,  /* when the weights reach `limit`, or the protobuf would pass 2 GiB */
    WML_EXTERNAL_NEVER, /* one file; refused above 2 GiB */
    WML_EXTERNAL_ALWAYS,
    WML_EXTERNAL_KEEP   /* as it is in the source: inline stays inline, external stays external */
};

enum wml_weights_where {
    WML_WEIGHTS_COPY,
    WML_WEIGHTS_REFERENCE /* point into the source files: they must lie in the output's folder or below */
};

struct wml_onnx_save_opts { /* zero is the default */
    enum wml_external_mode external;
    enum wml_weights_where weights;
    uint64_t limit;      /* of AUTO; 0: 100 MiB */
    uint64_t min_tensor; /* smaller tensors stay inline; 0: 1 KiB */
    const char *data_name; /* file name of the sidecar; NULL: "<output name>.data" */
    struct wml_ctx *cx;    /* for progress and Ctrl-C; NULL: neither */
};

struct wml_onnx_saved { /* what was written */
    uint64_t model_bytes, data_bytes;
    char data_name[256]; /* "" when there is no sidecar */
    size_t n_external, n_referenced;
};

/* Writes path (and its sidecar) to temporary neighbours, then renames both into place. Replacing the
 * file the model was loaded from works, and the model stays usable. opts and saved may be NULL. */
bool wml_onnx_save(struct wml_model *m, const char *path, const struct wml_onnx_save_opts *opts,
                   struct wml_onnx_saved *saved, struct wml_err *err);
/* The whole model in memory, weights inline (external ones stay external). */
bool wml_onnx_encode(struct wml_model *m, struct wml_buf *out, struct wml_err *err);

struct wml_skeleton_opts { /* zero is valid: the whole model */
    /* Only what these values, all of one graph, need is kept, in one graph whose outputs they are. */
    struct wml_value *const *only;
    size_t n_only;
    /* With `only`: values that become inputs of their type, whatever makes them stays out. */
    struct wml_value *const *given;
    size_t n_given;
    /* Added as outputs without a type, for ORT to fill in. Values that are outputs already are skipped. */
    struct wml_value *const *also;
    size_t n_also;
    uint64_t min_tensor; /* smaller tensors are inlined; 0: 1 KiB */
    /* Values of weights do not matter, only types: large weights of the top graph become inputs, so that no file
     * is opened and nothing is computed. */
    bool types_only;
    bool drop_value_info; /* leave out types of inner values, e.g. when they may be wrong */
};

/* The model as protobuf in buf, where every large tensor that lies in a mapped file is external data
 * {location, offset, length} pointing into that file: into the source .onnx itself, or its data file.
 * Locations are relative to *folder (set; the folder of the model), which ORT must be given as
 * session.model_external_initializers_file_folder_path. DERIVED and heap tensors are inlined.
 * Nothing in the model changes. */
bool wml_onnx_skeleton(struct wml_model *m, const struct wml_skeleton_opts *opts, struct wml_buf *buf,
                       struct wml_str *folder, struct wml_err *err);

/* The files the model refers to: external data locations and context binaries, each once, in the
 * order they appear. Who copies a model copies these. Values are in the model's arena. */
struct wml_onnx_files {
    struct wml_str *location;
    size_t len;
};
struct wml_onnx_files wml_onnx_files(struct wml_model *m);

#endif
