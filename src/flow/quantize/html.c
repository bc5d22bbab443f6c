/* The HTML report of `quantize`: how far the outputs moved, and which tensors lose most. */
#include "flow/quantize/internal.h"

#include <math.h>

#include "flow/html.h"
#include "os/file.h"
#include "os/path.h"

enum { MOST_ROWS = 200 }; /* JSON has all */

static void outputs(const struct wml_quantize_run *r, struct wml_buf *b)
{
    wml_buf_cstr(b, "<h2>Outputs against the float model</h2>\n");
    if (!r->accuracy.samples) {
        wml_buf_cstr(b, "<p class=sub>");
        wml_html_escape(b, wml_str(r->accuracy_note ? r->accuracy_note : "not measured"));
        wml_buf_cstr(b, "</p>\n");
        return;
    }
    wml_buf_cstr(b, "<table><tr><th>Output</th><th class=n>Cosine</th><th class=n>SQNR dB</th><th class=n>Largest difference</th></tr>\n");
    for (size_t i = 0; i < r->accuracy.row.len; i++) {
        const struct wml_accuracy_row *o = &r->accuracy.row.at[i];
        wml_buf_cstr(b, "<tr>");
        wml_html_cell(b, o->name);
        if (o->comparable) wml_buf_fmt(b, "<td class=n>%.6f</td>", o->c.cosine);
        else wml_buf_cstr(b, "<td class=n></td>");
        wml_html_ratio_cell(b, o->comparable, o->c.sqnr_db);
        if (o->comparable) wml_buf_fmt(b, "<td class=n>%.3g</td></tr>\n", o->c.max_abs);
        else wml_buf_cstr(b, "<td class=n></td></tr>\n");
    }
    wml_buf_cstr(b, "</table>\n");
}

/* The bar is the noise that the tensor's own integers make, on a scale of decibels: longer is worse. */
static void tensors(const struct wml_quantize_run *r, struct wml_buf *b)
{
    size_t n = WML_MIN(r->rank.row.len, (size_t)MOST_ROWS);
    wml_buf_cstr(b, "<h2>Tensors that lose most</h2>\n");
    if (!n) {
        wml_buf_cstr(b, "<p class=sub>The result has no QuantizeLinear and no DequantizeLinear: there is nothing to rank.</p>\n");
        return;
    }
    wml_buf_fmt(b, "<p class=sub>The %zu worst of %zu, over %zu samples. Own: what the integers of this tensor cost by themselves. Total: the "
                   "float model's value against this one's, with all that was lost before. Decibels: 20 is one part in ten, 40 one in a hundred.</p>\n",
                n, r->rank.row.len, r->rank.samples);
    wml_buf_cstr(b, "<table><tr><th>Tensor</th><th>Kind</th><th>Type</th><th>Operator</th><th class=n>Own dB</th><th class=n>Total dB</th>"
                    "<th style=\"width:20%\"></th></tr>\n");
    for (size_t i = 0; i < n; i++) {
        const struct wml_rank_row *t = &r->rank.row.at[i];
        wml_buf_cstr(b, "<tr>");
        wml_html_cell(b, t->name);
        wml_html_cell(b, t->kind);
        wml_html_cell(b, t->type);
        wml_html_cell(b, t->op_type);
        wml_html_ratio_cell(b, t->own.n > 0, t->own.sqnr_db);
        wml_html_ratio_cell(b, t->has_total && t->total.n, t->total.sqnr_db);
        double width = t->own.n && !isinf(t->own.sqnr_db) ? 100 - fmin(fmax(t->own.sqnr_db, 0), 100) : 0;
        wml_buf_fmt(b, "<td><div class=bar style=\"width:%.0f%%\"></div></td></tr>\n", width);
    }
    wml_buf_cstr(b, "</table>\n");
}

static void row(struct wml_buf *b, const char *label, const char *value)
{
    if (!value || !*value) return;
    wml_buf_fmt(b, "<tr><th>%s</th>", label);
    wml_html_cell(b, value);
    wml_buf_cstr(b, "</tr>\n");
}

static void identity(const struct wml_quantize_run *r, struct wml_buf *b)
{
    char sizes[80];
    struct wml_buf target = {0}, left = {0};
    snprintf(sizes, sizeof sizes, "%.1f MB, before %.1f MB", (double)r->staged.bytes_after / 1048576, (double)r->staged.bytes_before / 1048576);
    wml_buf_cstr(b, "<h2>What was done</h2>\n<table>\n");
    row(b, "Source", r->args->model);
    row(b, "Result", r->staged.output);
    row(b, "Precision", r->precision);
    row(b, "Rules of", wml_quantize_rules(r));
    if (r->args->has_target) {
        wml_quantize_target_line(r, &target);
        wml_quantize_left_line(r, &left);
        row(b, "Target", wml_buf_text(&target));
        row(b, "Left float", wml_buf_text(&left));
    }
    row(b, "Ranges", r->args->method);
    row(b, "Calibrated with", r->calibration.data);
    row(b, "Size", sizes);
    wml_buf_cstr(b, "</table>\n");
    wml_buf_release(&target);
    wml_buf_release(&left);
}

static void page(const struct wml_quantize_run *r, struct wml_buf *b)
{
    struct wml_str name = wml_path_name(wml_str(r->staged.output));
    wml_buf_cstr(b, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\n<title>");
    wml_html_escape(b, name);
    wml_buf_fmt(b, " - winml quantize</title>\n<style>%s</style>\n<main><h1>", wml_html_style);
    wml_html_escape(b, name);
    wml_buf_cstr(b, "</h1>\n<p class=sub>");
    wml_html_escape(b, wml_str(r->precision));
    for (size_t i = 0; i < r->warning.len; i++) {
        wml_buf_cstr(b, "<br><span class=warn>");
        wml_html_escape(b, wml_str(r->warning.at[i]));
        wml_buf_cstr(b, "</span>");
    }
    wml_buf_cstr(b, "</p>\n");
    outputs(r, b);
    wml_mixed_html(&r->mixed, b);
    tensors(r, b);
    identity(r, b);
    wml_buf_cstr(b, "</main></html>\n");
}

bool wml_quantize_html(struct wml_quantize_run *r, struct wml_err *err)
{
    struct wml_buf text = {0};
    if (!r->args->html) return true;
    page(r, &text);
    bool ok = wml_out_open(&r->html, r->args->html, err) && wml_out_write(&r->html, text.ptr, text.len, err) && wml_out_finish(&r->html, err);
    wml_buf_release(&text);
    return ok;
}
