/* families/rope.c - see rope.h. linear: positions divided. llama3 (Llama 3.1): slow pairs divided, quick ones kept, between them
 * a blend. yarn: Peng et al. 2023. longrope: Ding et al. 2024. */
#include <math.h>
#include "families/rope.h"

static const double turn = 6.283185307179586;

static void llama3(struct wml_family_job *j, const struct wml_json_val *s, struct wml_nn_rope *r)
{
    const double factor = wml_cfg_num(j, s, "factor", 8), low = wml_cfg_num(j, s, "low_freq_factor", 1);
    const double high = wml_cfg_num(j, s, "high_freq_factor", 4), old = wml_cfg_num(j, s, "original_max_position_embeddings", 8192);
    for (int64_t i = 0; i < r->size / 2; i++) {
        const double wave = turn / r->frequency[i];
        if (wave < old / high) continue;
        const double blend = (old / wave - low) / (high - low);
        r->frequency[i] = wave > old / low ? r->frequency[i] / factor : (1 - blend) * r->frequency[i] / factor + blend * r->frequency[i];
    }
}

static double yarn_scale(double factor, double by)
{
    return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1;
}

static void yarn(struct wml_family_job *j, const struct wml_json_val *s, double theta, int64_t positions, struct wml_nn_rope *r)
{
    const double old = wml_cfg_num(j, s, "original_max_position_embeddings", (double)positions);
    const double factor = wml_cfg_num(j, s, "factor", (double)positions / old), size = (double)r->size;
    const double fast = wml_cfg_num(j, s, "beta_fast", 32), slow = wml_cfg_num(j, s, "beta_slow", 1);
    const double mscale = wml_cfg_num(j, s, "mscale", 0), all = wml_cfg_num(j, s, "mscale_all_dim", 0);
    double from = size * log(old / (fast * turn)) / (2 * log(theta)), to = size * log(old / (slow * turn)) / (2 * log(theta));
    if (wml_json_get_bool(s, "truncate", true)) from = floor(from), to = ceil(to);
    from = fmax(from, 0);
    to = fmin(to, size - 1);
    if (to == from) to += 0.001;
    for (int64_t i = 0; i < r->size / 2; i++) {
        const double ramp = fmin(fmax(((double)i - from) / (to - from), 0), 1);
        r->frequency[i] = r->frequency[i] / factor * ramp + r->frequency[i] * (1 - ramp);
    }
    r->factor = mscale != 0 && all != 0 ? yarn_scale(factor, mscale) / yarn_scale(factor, all) : yarn_scale(factor, 1);
    r->factor = wml_cfg_num(j, s, "attention_factor", r->factor);
}

static void longrope(struct wml_family_job *j, const struct wml_json_val *cfg, const struct wml_json_val *s, int64_t positions, int64_t length,
                     struct wml_nn_rope *r)
{
    const double old = wml_cfg_num(j, cfg, "original_max_position_embeddings", wml_cfg_num(j, s, "original_max_position_embeddings", (double)positions));
    const double factor = wml_json_get(cfg, "original_max_position_embeddings") ? (double)positions / old : wml_cfg_num(j, s, "factor", (double)positions / old);
    const struct wml_json_val *list = wml_json_get(s, (double)length > old ? "long_factor" : "short_factor");
    if (wml_json_len(list) < (size_t)r->size / 2) {
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: rope_scaling has too few factors (%zu of %lld)", wml_json_len(list), (long long)(r->size / 2));
        return;
    }
    for (int64_t i = 0; i < r->size / 2; i++) {
        const double by = wml_json_num(wml_json_at(list, (size_t)i), 1);
        r->frequency[i] /= by > 0 ? by : 1;
    }
    r->factor = wml_cfg_num(j, s, "attention_factor", factor <= 1 ? 1 : sqrt(1 + log(factor) / log(old)));
}

void wml_rope_of(struct wml_family_job *j, const struct wml_json_val *cfg, int64_t head, double theta, int64_t positions, int64_t length,
                 struct wml_nn_rope *out)
{
    const struct wml_json_val *s = wml_json_get(cfg, "rope_scaling");
    const struct wml_str type = wml_json_get(s, "rope_type") ? wml_json_get_str(s, "rope_type") : wml_json_get_str(s, "type");
    const int64_t size = wml_cfg_whole((double)head * wml_cfg_num(j, cfg, "partial_rotary_factor", 1));
    if (size < 2 || size > WML_ROPE_MAX || theta <= 0) {
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: rotary positions of %lld elements, rope_theta %g", (long long)size, theta);
        return;
    }
    wml_nn_rope_init(out, size, theta);
    if (!type.len || wml_str_is(type, "default") || wml_str_is(type, "dynamic")) return; /* dynamic: the same up to the trained length */
    if (wml_str_is(type, "linear")) {
        const double factor = wml_cfg_num(j, s, "factor", 1);
        for (int64_t i = 0; i < size / 2; i++) out->frequency[i] /= factor > 0 ? factor : 1;
    } else if (wml_str_is(type, "llama3")) {
        llama3(j, s, out);
    } else if (wml_str_is(type, "yarn")) {
        yarn(j, s, theta, positions, out);
    } else if (wml_str_is(type, "longrope") || wml_str_is(type, "su")) {
        longrope(j, cfg, s, positions, length, out);
    } else {
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: rope_scaling of the type '%.*s'", WML_ARG(type));
        wml_nn_hint(j->nn, "known ones: linear, llama3, yarn, longrope, dynamic");
    }
}
