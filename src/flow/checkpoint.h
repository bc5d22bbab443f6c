/* flow/checkpoint.h - the checkpoint that -m names: a folder, or a model id whose files are fetched from the hub. */
#ifndef WML_FLOW_CHECKPOINT_H
#define WML_FLOW_CHECKPOINT_H

#include "graph/model.h"
#include "hub/hub.h"
#include "text/json.h"
#include "weights/weights.h"

/* What text is, without asking the network. */
enum wml_model_ref { WML_REF_FOLDER, WML_REF_ONNX, WML_REF_ID, WML_REF_INVALID };
/* INVALID: *err says why. An .onnx file is ONNX also where it is not there. */
enum wml_model_ref wml_model_ref(const char *text, struct wml_err *err);

/* Sets *folder to the folder, or to the snapshot of the id in the hub's cache. verb: what the user does, "export". An ONNX
 * file is WML_E_USAGE. */
bool wml_checkpoint_folder(struct wml_ctx *cx, const char *text, const char *verb, enum wml_hub_what what, struct wml_buf *folder,
                           struct wml_err *err);

/* A model's name as the name of a file or folder: "org_name". */
const char *wml_model_slug(const char *name, struct wml_arena *arena);
/* <cache>/artifacts/<slug>, where what is made of a model is kept; NULL without a cache folder. Makes nothing. */
const char *wml_model_artifacts(const struct wml_ctx *cx, const char *name, struct wml_arena *arena);

/* Config and weights of a checkpoint; zero it. */
struct wml_checkpoint {
    const char *name; /* as the user calls it */
    struct wml_buf folder;
    struct wml_json_doc *config, *preprocessor; /* preprocessor NULL: there is none */
    struct wml_weights *weights;                /* NULL until they are opened */
};
/* Finds the folder and reads the JSON files: config.json must be there. */
bool wml_checkpoint_open(struct wml_ctx *cx, const char *text, const char *verb, struct wml_checkpoint *out, struct wml_err *err);
bool wml_checkpoint_weights(struct wml_checkpoint *c, struct wml_err *err);
/* m borrows from the maps of the weights: it holds them, and the saver can copy out of the files. */
void wml_checkpoint_lend(const struct wml_checkpoint *c, struct wml_model *m);
void wml_checkpoint_close(struct wml_checkpoint *c);

#endif
