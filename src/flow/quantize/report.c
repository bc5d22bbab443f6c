/* The report of `quantize`: what was done, with what data, and how far the answers moved. */
#include <inttypes.h>
#include <stdio.h>

#include "flow/quantize/internal.h"

static void put_types(struct wml_item *root, const struct wml_quantize_run *r)
{
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct wml_quantize_step *s = &r->step[i];
        const char *method = s->what->method;
        if (strcmp(method, "qdq") != 0) continue;
        const struct wml_calibration *c = &r->calibration;
        wml_item_cstr(root, "weight_type", "Weight type", wml_dtype_name((int)s->opts.weight));
        wml_item_cstr(root, "activation_type", "Activation type", wml_dtype_name((int)s->opts.activation));
        if (!c->from_cache) wml_item_int(root, "samples", "Samples", (int64_t)c->samples, WML_SHOW_COUNT);
        wml_item_cstr(root, "method", "Method", r->args->method);
        wml_item_cstr(root, "dataset", "Dataset", c->data);
        wml_item_bool(root, "random_data", NULL, c->random);
        return;
    }
}

static void put_steps(struct wml_item *root, const struct wml_quantize_run *r)
{
    struct wml_item *steps = wml_item_array(root, "passes", NULL);
    size_t q = 0, nodes = 0;
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct wml_quantize_step *s = &r->step[i];
        struct wml_item *step = wml_item_object(steps, NULL, NULL);
        wml_item_cstr(step, "pass", NULL, s->method->name);
        wml_item_int(step, "nodes", NULL, (int64_t)s->result.nodes, WML_SHOW_COUNT);
        wml_item_int(step, "weights", NULL, (int64_t)s->result.weights, WML_SHOW_COUNT);
        wml_item_int(step, "quantize_nodes", NULL, (int64_t)s->result.q, WML_SHOW_COUNT);
        wml_item_int(step, "dequantize_nodes", NULL, (int64_t)s->result.dq, WML_SHOW_COUNT);
        wml_item_num(step, "ms", NULL, s->ms, 1, WML_SHOW_MS);
        q += s->result.q + s->result.dq;
        nodes += s->result.nodes;
    }
    if (q) wml_item_int(root, "qdq_nodes_inserted", "QDQ nodes inserted", (int64_t)q, WML_SHOW_COUNT);
    wml_item_int(root, "nodes_quantized", "Nodes converted", (int64_t)nodes, WML_SHOW_COUNT);
}

static void put_fits(struct wml_item *root, const struct wml_quantize_run *r)
{
    struct wml_item *fits = NULL;
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct wml_quantize_step *s = &r->step[i];
        bool searched = s->method->wanted && s->opts.scale_search;
        if (!fits && (s->result.fit.len || searched)) fits = wml_item_object(root, "accuracy_tools", NULL);
        for (size_t k = 0; k < s->result.fit.len; k++) {
            const struct wml_quant_count *c = &s->result.fit.at[k];
            wml_item_int(fits, c->name, c->what, (int64_t)c->n, WML_SHOW_COUNT);
        }
        if (searched) wml_item_int(fits, "scale_search", "Constants clipped", (int64_t)s->result.clipped, WML_SHOW_COUNT);
    }
}

static void put_accuracy(struct wml_item *root, const struct wml_quantize_run *r)
{
    static const struct wml_column columns[] = {{.key = "output", .label = "Output"},
                                                {.key = "cosine", .label = "Cosine", .right = true},
                                                {.key = "sqnr_db", .label = "SQNR dB", .right = true},
                                                {.key = "max_abs", .label = "Max abs", .right = true}};
    struct wml_item *accuracy = wml_item_object(root, "accuracy", NULL);
    wml_item_int(accuracy, "samples", NULL, (int64_t)r->accuracy.samples, WML_SHOW_PLAIN);
    if (r->accuracy_note) wml_item_cstr(accuracy, "note", "Accuracy", r->accuracy_note);
    if (!r->accuracy.samples) return;
    char title[160];
    snprintf(title, sizeof title, "Against the float model, %zu sample%s of %.80s", r->accuracy.samples, r->accuracy.samples > 1 ? "s" : "",
             r->args->data ? r->args->data : "random data");
    struct wml_item *table = wml_item_table(accuracy, "outputs", wml_item_name(root, wml_str(title)), columns, WML_COUNT(columns));
    for (size_t i = 0; i < r->accuracy.row.len; i++) {
        const struct wml_accuracy_row *row = &r->accuracy.row.at[i];
        struct wml_item *item = wml_table_row(table);
        wml_item_cstr(item, "output", NULL, row->name);
        if (row->comparable) {
            wml_item_num(item, "cosine", NULL, row->c.cosine, 6, WML_SHOW_PLAIN);
            wml_item_num(item, "sqnr_db", NULL, row->c.sqnr_db, 2, WML_SHOW_PLAIN);
            wml_item_num(item, "max_abs", NULL, row->c.max_abs, 9, WML_SHOW_SCIENCE);
        }
        wml_item_int(item, "not_finite", NULL, (int64_t)row->c.not_finite, WML_SHOW_COUNT);
        if (row->c.not_finite)
            wml_item_line(root, WML_TONE_WARN, "Warning: output '%s' has %" PRIu64 " values that are infinite or no number in the result only",
                          row->name, row->c.not_finite);
    }
}

static void put_number(struct wml_item *in, const char *key, bool known, const struct wml_compare *c)
{
    if (known && c->n) wml_item_num(in, key, NULL, c->sqnr_db, 2, WML_SHOW_PLAIN);
    else wml_item_null(in, key, NULL);
}

static void put_rank(struct wml_item *root, const struct wml_quantize_run *r)
{
    static const struct wml_column columns[] = {{.key = "tensor", .label = "Tensor", .max_width = 44},
                                                {.key = "kind", .label = "Kind"},
                                                {.key = "type", .label = "Type"},
                                                {.key = "op_type", .label = "Operator"},
                                                {.key = "own_sqnr_db", .label = "Own dB", .right = true},
                                                {.key = "total_sqnr_db", .label = "Total dB", .right = true},
                                                {.key = "alone_sqnr_db", .label = "Alone dB", .right = true}};
    if (!r->args->rank && !r->args->html) return;
    bool weighed = r->mixed.runs > 0;
    struct wml_item *table = wml_item_table(root, "tensors", weighed ? "What each tensor loses: by its own integers, in all up to there, and the outputs by it alone"
                                                                     : "What each tensor loses: by its own integers, and in all up to there",
                                            columns, WML_COUNT(columns) - !weighed);
    for (size_t i = 0; i < r->rank.row.len; i++) {
        const struct wml_rank_row *row = &r->rank.row.at[i];
        struct wml_item *item = wml_table_row(table);
        wml_item_cstr(item, "tensor", NULL, row->name);
        wml_item_cstr(item, "kind", NULL, row->kind);
        wml_item_cstr(item, "type", NULL, row->type);
        wml_item_cstr(item, "node", NULL, row->node);
        wml_item_cstr(item, "op_type", NULL, row->op_type);
        put_number(item, "own_sqnr_db", true, &row->own);
        put_number(item, "total_sqnr_db", row->has_total, &row->total);
        const struct wml_mixed_raised *alone = weighed ? wml_map_get(&r->mixed.weighed, wml_str(row->name)) : NULL;
        if (alone) wml_item_num(item, "alone_sqnr_db", NULL, alone->noise_db, 2, WML_SHOW_PLAIN);
        else if (weighed) wml_item_null(item, "alone_sqnr_db", NULL);
    }
    wml_table_limit(table, r->args->rank ? r->args->rank : 10);
    if (!r->rank.row.len) wml_item_line(root, WML_TONE_DIM, "Nothing to rank: the result has no QuantizeLinear and no DequantizeLinear");
}

static void put_mixed(struct wml_item *root, const struct wml_quantize_run *r)
{
    const struct wml_mixed *m = &r->mixed;
    if (!m->asked) return;
    struct wml_item *o = wml_item_object(root, "mixed_precision", "Mixed precision");
    wml_item_num(o, "goal_db", "Goal (dB)", m->goal_db, 2, WML_SHOW_PLAIN);
    wml_item_bool(o, "reached", "Reached", m->reached);
    wml_item_num(o, "sqnr_db", "Worst output (dB)", m->sqnr_db, 2, WML_SHOW_PLAIN);
    wml_item_num(o, "plain_sqnr_db", "Nothing raised (dB)", m->plain_db, 2, WML_SHOW_PLAIN);
    wml_item_int(o, "raised", "Raised", (int64_t)m->raised.len, WML_SHOW_COUNT);
    wml_item_int(o, "candidates", "Candidates", (int64_t)m->parts, WML_SHOW_COUNT);
    wml_item_int(o, "wide_activations", NULL, (int64_t)m->activations, WML_SHOW_COUNT);
    wml_item_int(o, "wide_constants", NULL, (int64_t)m->constants, WML_SHOW_COUNT);
    wml_item_int(o, "wide_nodes", "Nodes in 16 bits", (int64_t)m->wide_nodes, WML_SHOW_COUNT);
    wml_item_num(o, "wide_nodes_percent", "Share of nodes", m->nodes ? 100.0 * (double)m->wide_nodes / (double)m->nodes : 0, 1, WML_SHOW_PERCENT);
    wml_item_int(o, "weighing_runs", NULL, (int64_t)m->runs, WML_SHOW_COUNT);
    wml_item_int(o, "tried", "Models tried", (int64_t)m->step.len, WML_SHOW_COUNT);
    struct wml_item *steps = wml_item_array(o, "steps", NULL), *names = wml_item_array(o, "tensors", NULL);
    for (size_t i = 0; i < m->step.len; i++) {
        struct wml_item *step = wml_item_object(steps, NULL, NULL);
        wml_item_int(step, "raised", NULL, (int64_t)m->step.at[i].raised, WML_SHOW_COUNT);
        wml_item_num(step, "sqnr_db", NULL, m->step.at[i].sqnr_db, 2, WML_SHOW_PLAIN);
    }
    for (size_t i = 0; i < m->raised.len; i++) {
        struct wml_item *t = wml_item_object(names, NULL, NULL);
        wml_item_cstr(t, "tensor", NULL, m->raised.at[i].name);
        wml_item_cstr(t, "kind", NULL, m->raised.at[i].kind);
        wml_item_num(t, "alone_sqnr_db", NULL, m->raised.at[i].noise_db, 2, WML_SHOW_PLAIN);
    }
}

static void put_notes(struct wml_item *root, const struct wml_quantize_run *r)
{
    struct wml_item *notes = wml_item_array(root, "notes", NULL);
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < r->n_steps; i++)
        for (size_t k = 0; k < r->step[i].result.note.len; k++, all++) {
            const struct wml_quant_note *n = &r->step[i].result.note.at[k];
            struct wml_item *note = wml_item_object(notes, NULL, NULL);
            wml_item_str(note, "subject", NULL, n->subject);
            wml_item_str(note, "text", NULL, n->text);
            if (shown++ < 8) wml_item_line(root, WML_TONE_DIM, "Note: %.*s: %.*s", WML_ARG(n->subject), WML_ARG(n->text));
        }
    if (all > 8) wml_item_line(root, WML_TONE_DIM, "... and %zu more notes; -f json has all", all - 8);
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < r->warning.len; i++) {
        wml_item_cstr(warnings, NULL, NULL, r->warning.at[i]);
        wml_item_line(root, WML_TONE_WARN, "Warning: %s", r->warning.at[i]);
    }
}

void wml_quantize_report(const struct wml_quantize_run *r, struct wml_report *out)
{
    struct wml_item *root = wml_report_root(out);
    wml_report_tells_of_file(out);
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "input", "Input", r->args->model);
    wml_item_cstr(root, "output", "Output", r->staged.output);
    wml_item_cstr(root, "precision", "Precision", r->precision);
    put_types(root, r);
    put_fits(root, r);
    put_steps(root, r);
    wml_item_int(root, "size_before", "Size before", (int64_t)r->staged.bytes_before, WML_SHOW_BYTES);
    wml_item_int(root, "size_after", "Size after", (int64_t)r->staged.bytes_after, WML_SHOW_BYTES);
    wml_quantize_put_target(r, root);
    put_accuracy(root, r);
    put_mixed(root, r);
    put_rank(root, r);
    put_notes(root, r);
    if (r->args->html) wml_item_cstr(root, "html_report", "HTML report", r->args->html);
    wml_item_num(root, "total_ms", "Total time", r->ms, 1, WML_SHOW_MS);
}
