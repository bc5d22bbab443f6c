/* check.h - one model and what it is fed with: run as it is, optimised, run again, compared. */
#ifndef WML_TESTS_RANDOM_CHECK_H
#define WML_TESTS_RANDOM_CHECK_H

#include "flow/oracle.h"
#include "gen.h"

struct rc_tensor { /* owned by the arena of what holds it */
    const char *name;
    enum wml_dtype t;
    size_t rank;
    int64_t *dim;
    void *data;
    size_t bytes;
    bool is_tensor;
};
struct rc_tensors {
    struct rc_tensor *at;
    size_t n;
};

enum { RC_FEEDS = 2 };

struct rc_case {
    struct wml_str bytes; /* the model */
    struct rc_tensors feed[RC_FEEDS];
    size_t n_feeds;
    enum wml_pass_choice *choice;
    enum wml_ort_level level;
    int64_t opset; /* to convert to first; 0: as it is */
    bool twice; /* the same bytes must come out of a second time */
    bool lossy; /* answers may differ by design: only that nothing breaks is checked */
};

enum rc_verdict {
    RC_SAME,
    RC_ROUNDING, /* differs no more than the original under noise of the size of rounding */
    RC_REFUSED,  /* ONNX Runtime does not take the original, or it is not what it declares */
    RC_DIFFERS,  /* the failures start here */
    RC_BROKEN    /* the passes failed, or ONNX Runtime does not take the result */
};

struct rc_result {
    enum rc_verdict verdict;
    char why[1400];
    bool converted, unsure; /* to c->opset; where types that matter were not known */
    size_t feed; /* the first that shows it */
    size_t nodes_before, nodes_after;
    struct wml_pass_result *pass;
    struct wml_str after; /* the optimised model's text when it was bad */
};

struct rc_env {
    struct wml_ctx *cx;
    struct wml_arena *arena; /* of results */
    void *arg;
    void (*phase)(void *arg, char what); /* 'g' original, 'p' passes, 'r' result; may be NULL */
};

void rc_check(const struct rc_env *e, const struct rc_case *c, struct rc_result *r);
/* The passes alone; after: the result's bytes, r->after its text. */
bool rc_optimise(const struct rc_env *e, const struct rc_case *c, struct wml_str *after, struct rc_result *r, struct wml_err *err);
/* Feeds of a generated graph. */
void rc_feeds(const struct gen *g, struct wml_arena *a, struct rc_case *c);
/* A smaller case with the same kind of failure. */
void rc_shrink(const struct rc_env *e, struct rc_case *c, struct rc_result *r);
/* Names of passes that are on, a blank before each. */
void rc_choice_text(const enum wml_pass_choice *choice, struct wml_buf *out);

/* truth.c: the original is of the types and sizes that it declares; why: what is not. */
bool rc_is_true(const struct rc_env *e, const struct rc_case *c, size_t feed, char *why, size_t size);

/* --- run.c --- */
bool rc_open(const struct rc_env *e, struct wml_str bytes, struct wml_session **out, struct wml_err *err);
/* The answers; more is fed than the model has inputs at times. */
bool rc_run_open(const struct rc_env *e, struct wml_session *s, const struct rc_tensors *feed, struct rc_tensors *out, struct wml_err *err);
bool rc_run(const struct rc_env *e, struct wml_str bytes, const struct rc_tensors *feed, struct rc_tensors *out, struct wml_err *err);
bool rc_same_interface(const struct wml_session *a, const struct wml_session *b, char *why, size_t size);
/* What kernels of ONNX Runtime leave to chance. */
struct rc_loose {
    bool may_fail;      /* the result may be NaN where the original is a number */
    bool nan_is_chance; /* tensors that hold NaN in the original may hold anything */
};
/* Within tolerance; noise: the original's answers under noise. */
bool rc_equal(const struct rc_tensors *a, const struct rc_tensors *b, const struct rc_tensors *noise, size_t n_noise, const struct rc_loose *loose,
              char *why, size_t size);
struct rc_noise {
    float size; /* relative */
    bool even;  /* the same on all elements of a tensor: what was equal stays so */
    uint64_t seed;
};
/* The model with noise behind every float of its top graph. */
bool rc_noisy(const struct rc_env *e, struct wml_str bytes, struct rc_noise noise, struct wml_str *out, struct wml_err *err);
bool rc_encode(const struct rc_env *e, struct wml_model *m, struct wml_str *out, struct wml_err *err);
bool rc_load(struct wml_str bytes, struct wml_model **out, struct wml_err *err);

#endif
