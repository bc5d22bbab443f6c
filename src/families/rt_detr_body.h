/* families/rt_detr_body.h - what RT-DETR (Zhao et al. 2023), its second version and D-FINE (Peng et al. 2024) share: a backbone's
 * last pictures are mixed (the hybrid encoder), their best places become queries, a decoder makes boxes of these. */
#ifndef WML_FAMILIES_RT_DETR_BODY_H
#define WML_FAMILIES_RT_DETR_BODY_H

#include "families/deformable.h"

struct wml_rt_detr {
    int64_t width, layers, heads, inner;                       /* of the encoder */
    int64_t hidden, queries, labels, depth, query_heads, query_inner; /* of the decoder */
    size_t levels, attended[WML_DEFORMABLE_LEVELS], n_attended; /* pictures, and those that have a transformer of their own */
    double expansion, depth_mult, temperature, bn_eps, eps;
    bool before; /* the encoder's layers are normalised before their parts */
    struct wml_str act, encoder_act, decoder_act;
};

struct wml_rt_detr_pictures {
    struct wml_value *level[WML_DEFORMABLE_LEVELS]; /* [batch, channels, rows, columns] */
    size_t n;
};

struct wml_rt_detr wml_rt_detr_params(struct wml_family_job *j);
/* pixel_values: at least a place for every query where no size is named. */
struct wml_value *wml_rt_detr_pixels(struct wml_family_job *j, const struct wml_rt_detr *p);
/* "backbone" and "encoder_input_proj" in the scope. */
struct wml_rt_detr_pictures wml_rt_detr_see(struct wml_family_job *j, const struct wml_rt_detr *p, struct wml_value *pixels);
/* "embedder" and "encoder" of its two backbones: the states that their config names. */
void wml_rt_detr_resnet(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *x, struct wml_rt_detr_pictures *out);

/* Conv, batch norm, the activation ("": none). */
struct wml_value *wml_rt_detr_conv(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name, int64_t out,
                                   const struct wml_nn_window *w, struct wml_str act);
/* Two ways, one of `blocks` convolutions, added. */
struct wml_value *wml_rt_detr_csp(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name, int64_t out, double expansion,
                                  int64_t blocks);

struct wml_rt_detr_kind { /* what families mix with: in the scope, under that name */
    struct wml_value *(*fuse)(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name);
    struct wml_value *(*down)(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name);
    bool lateral_act;
};
/* "encoder": as many pictures as before, of p->width channels. */
void wml_rt_detr_mix(struct wml_nn *b, const struct wml_rt_detr *p, const struct wml_rt_detr_kind *kind, struct wml_rt_detr_pictures *s);

struct wml_rt_detr_start { /* where the decoder begins */
    struct wml_value *memory;     /* [batch, places of all levels, hidden] */
    struct wml_value *query, *box; /* [batch, queries, hidden], [batch, queries, 4]: centre and size, 0 .. 1 */
    int64_t size[WML_DEFORMABLE_LEVELS][2];
};
/* "decoder_input_proj", "enc_output" and its heads. */
struct wml_rt_detr_start wml_rt_detr_select(struct wml_family_job *j, const struct wml_rt_detr *p, const struct wml_rt_detr_pictures *s);
/* In and out of the decoder's scope. Its heads class_embed and bbox_embed are also the whole model's, and files that name a tensor
 * once have them in one of both: in the decoder when enter says so. */
bool wml_rt_detr_enter(struct wml_family_job *j);
void wml_rt_detr_leave(struct wml_nn *b);
/* "self_attn" of x with positions `at` added for queries and keys. */
struct wml_value *wml_rt_detr_attend(struct wml_nn *b, int64_t hidden, int64_t heads, struct wml_value *x, struct wml_value *at);
/* The box that a head's answer makes of another: sigmoid(delta + the other's logit). */
struct wml_value *wml_rt_detr_refine(struct wml_nn *b, struct wml_value *delta, struct wml_value *box);
/* Linear layers "layers.<i>" with ReLU between them, in the scope `name`. */
struct wml_value *wml_rt_detr_mlp(struct wml_nn *b, const char *name, struct wml_value *x, int64_t inner, int64_t out, int64_t depth);

#endif
