/* graph/text.h - a graph as text, for tests and for eyes. Close to the text form of onnx.parser.
 *
 *     g (float[2,n] x) => (float[2,n] y) <float[3] k = {1.0, 2.0, 3.0}> {
 *         h = Neg(k)
 *         y = com.microsoft.FusedMatMul <alpha = 0.5, transA: int = 1> (x, h)
 *         z = If <then_branch = t () => (float a) { a = Neg(x) }> (cond)
 *     }
 *
 * Headers: `<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>` before the graph may be
 * left out (IR 10, opset 21, every domain that is used at version 1). A node's name stands before it:
 * `[conv1] y = Conv(x, w)`. Types: float[2,n,?], float[...] (or float[]: rank not known), float (a
 * scalar), seq(T), optional(T), map(K, V), sparse(T). Inner values may be given types in the < > list
 * without a value: <float[2] h>. Defaults of inputs: (float[2] x = {1.0, 2.0}). Attribute types are
 * told from the literal when not written: 1 int, 1.0 float, "s" string, [..] lists, float[2] {1.0, 2.0}
 * tensor, name (..) => .. graph; floats after 0x are bits;
 * `k = @r` refers to a function's attribute. Names that are not words are written in "". Empty input:
 * `""` or nothing between commas. Comments: # to the end of the line. */
#ifndef WML_GRAPH_TEXT_H
#define WML_GRAPH_TEXT_H

#include "graph/model.h"

enum wml_text_flags {
    WML_TEXT_HEADER = 1,  /* versions and opsets before the graph */
    WML_TEXT_ONE_LINE = 2,
    WML_TEXT_TYPES = 4,   /* types of inner values as well */
    WML_TEXT_ALL_DATA = 8 /* constants of any size; else those above 16 elements are {...} */
};

/* Prints the top graph (not functions). */
void wml_model_text(struct wml_model *m, unsigned flags, struct wml_buf *out);
void wml_node_text(const struct wml_node *n, struct wml_buf *out);
/* A new linked model. Errors name line and column; those of linking (a name twice, a cycle) the values
 * and nodes. */
bool wml_model_parse(struct wml_str text, struct wml_model **out, struct wml_err *err);

#endif
