/* report/text.c - a report for people: headings, aligned rows, tables without lines around them. Rows are
 * indented by two columns under their heading; long values wrap at blanks under their own column, long
 * table cells lose their left end, since the tail of a path or of a node name tells them apart. Control
 * characters of the data never reach the terminal. */
#include "report/render.h"

#include "report/tree.h"
#include "text/words.h"

enum { INDENT = 2, MAX_LABEL = 32, MIN_VALUE = 24, MIN_CELL = 10, SPACE = 2 };

struct text { /* one rendering */
    struct wml_buf *out;
    bool colour;
    unsigned width;
    bool gap;     /* an empty line is due before the next line */
    bool started;
    struct wml_buf word; /* scratch */
};

static const char *tone_code(enum wml_tone tone)
{
    switch (tone) {
    case WML_TONE_GOOD: return "\x1b[32m";
    case WML_TONE_WARN: return "\x1b[33m";
    case WML_TONE_BAD: return "\x1b[31m";
    case WML_TONE_VALUE: return "\x1b[36m";
    case WML_TONE_DIM: return "\x1b[2m";
    default: return NULL;
    }
}

static void put_coloured(struct text *t, const char *code, struct wml_str s)
{
    bool on = t->colour && code && s.len;
    if (on) wml_buf_cstr(t->out, code);
    wml_buf_str(t->out, s);
    if (on) wml_buf_cstr(t->out, "\x1b[0m");
}

static void put_blanks(struct text *t, size_t n)
{
    for (size_t i = 0; i < n; i++) wml_buf_char(t->out, ' ');
}

static void start_line(struct text *t, unsigned indent)
{
    if (t->gap && t->started) wml_buf_char(t->out, '\n');
    t->gap = false;
    t->started = true;
    put_blanks(t, indent);
}

/* How much of s fits `columns`: up to a blank or line end, or the whole first word when it is longer, so
 * that paths stay in one piece for copying. *next is where the following line begins. */
static size_t line_end(struct wml_str s, size_t columns, size_t *next)
{
    size_t newline = wml_str_find(s, '\n');
    struct wml_str line = wml_str_sub(s, 0, newline);
    *next = newline == SIZE_MAX ? s.len : newline + 1;
    size_t fits = wml_utf8_prefix(line, columns);
    if (fits >= line.len) return line.len;
    size_t blank = wml_str_rfind(wml_str_sub(line, 0, fits + 1), ' ');
    if (blank == SIZE_MAX || wml_str_trim(wml_str_sub(line, 0, blank)).len == 0) {
        size_t after = wml_str_find(wml_str_sub(line, fits, line.len), ' ');
        if (after == SIZE_MAX) return line.len;
        blank = fits + after;
    }
    *next = blank + 1;
    return blank;
}

static void put_wrapped(struct text *t, const char *code, struct wml_str s, size_t column)
{
    size_t columns = t->width > column + MIN_VALUE ? t->width - column : MIN_VALUE;
    for (bool first = true; first || s.len; first = false) {
        size_t next, end = line_end(s, columns, &next);
        struct wml_str line = wml_str_sub(s, 0, end);
        while (line.len && line.ptr[line.len - 1] == ' ') line.len--;
        if (!first) put_blanks(t, line.len ? column : 0);
        put_coloured(t, code, line);
        wml_buf_char(t->out, '\n');
        s = wml_str_sub(s, next, s.len);
    }
}

static bool is_row(const struct wml_item *it)
{
    return it->label && it->kind != WML_ITEM_LINE && it->kind != WML_ITEM_GAP &&
           (!wml_item_is_container(it) || wml_item_is_flat(it));
}

/* An object without a title: its rows join those of its parent. */
static bool is_joined(const struct wml_item *it)
{
    return it->kind == WML_ITEM_OBJECT && !it->label;
}

static size_t label_width(const struct wml_item *in)
{
    size_t width = 0;
    for (const struct wml_item *it = in->first; it; it = it->next) {
        size_t w = is_joined(it) ? label_width(it) : is_row(it) ? wml_utf8_width(wml_str(it->label)) : 0;
        if (w <= MAX_LABEL) width = WML_MAX(width, w);
    }
    return width;
}

static void put_row(struct text *t, const struct wml_item *it, unsigned indent, size_t labels)
{
    struct wml_str label = wml_str(it->label);
    size_t width = wml_utf8_width(label);
    start_line(t, indent);
    put_coloured(t, "\x1b[2m", label);
    put_blanks(t, (width < labels ? labels - width : 0) + SPACE);
    wml_buf_clear(&t->word);
    wml_item_text(it, &t->word);
    put_wrapped(t, tone_code(it->tone), wml_buf_view(&t->word), indent + WML_MAX(labels, width) + SPACE);
}

/* --- tables --- */

struct grid {
    struct wml_arena arena;
    const struct wml_item *table;
    size_t n_columns, n_rows;
    const struct wml_column **column;
    struct wml_str *cell;     /* by row, then column; absent: empty */
    const enum wml_tone *tone;
    size_t *width;
};

static struct wml_str cell_text(struct text *t, struct grid *g, const struct wml_item *cell)
{
    wml_buf_clear(&t->word);
    wml_item_text(cell, &t->word);
    for (size_t i = 0; i < t->word.len; i++)
        if (t->word.ptr[i] == '\n') t->word.ptr[i] = ' ';
    return wml_arena_str(&g->arena, wml_buf_view(&t->word));
}

static void fill_grid(struct text *t, struct grid *g, const struct wml_item *table)
{
    g->table = table;
    g->column = WML_NEW_ARRAY(&g->arena, const struct wml_column *, table->n_columns);
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->column[i].label) g->column[g->n_columns++] = &table->column[i];
    g->n_rows = table->limit ? WML_MIN(table->limit, table->n) : table->n;
    size_t n = wml_array_size(g->n_rows, g->n_columns);
    g->cell = WML_NEW_ARRAY(&g->arena, struct wml_str, n);
    enum wml_tone *tone = WML_NEW_ARRAY(&g->arena, enum wml_tone, n);
    g->width = WML_NEW_ARRAY(&g->arena, size_t, g->n_columns);
    for (size_t c = 0; c < g->n_columns; c++)
        g->width[c] = wml_utf8_width(wml_str(g->column[c]->label));
    const struct wml_item *row = table->first;
    for (size_t r = 0; r < g->n_rows; r++, row = row->next) {
        for (size_t c = 0; c < g->n_columns; c++) {
            const struct wml_item *cell = wml_row_cell(row, g->column[c]);
            if (!cell) continue;
            struct wml_str text = cell_text(t, g, cell);
            size_t w = wml_utf8_width(text), max = g->column[c]->max_width;
            g->cell[r * g->n_columns + c] = text;
            tone[r * g->n_columns + c] = cell->tone;
            g->width[c] = WML_MAX(g->width[c], max ? WML_MIN(w, max) : w);
        }
    }
    g->tone = tone;
}

/* Takes columns from the widest texts until the table fits. Numbers are never cut. */
static void fit_grid(struct grid *g, size_t columns)
{
    for (;;) {
        size_t sum = g->n_columns ? SPACE * (g->n_columns - 1) : 0, widest = SIZE_MAX;
        for (size_t c = 0; c < g->n_columns; c++) {
            sum += g->width[c];
            size_t least = WML_MAX(MIN_CELL, wml_utf8_width(wml_str(g->column[c]->label)));
            if (!g->column[c]->right && g->width[c] > least &&
                (widest == SIZE_MAX || g->width[c] > g->width[widest]))
                widest = c;
        }
        if (sum <= columns || widest == SIZE_MAX) return;
        g->width[widest]--;
    }
}

/* The longest tail of s that fits after "...". */
static struct wml_str tail(struct wml_str s, size_t columns)
{
    size_t width = wml_utf8_width(s), at = 0;
    while (at < s.len && width > columns) {
        size_t end = at + 1;
        while (end < s.len && ((unsigned char)s.ptr[end] & 0xc0) == 0x80) end++;
        width -= WML_MIN(width, wml_utf8_width(wml_str_sub(s, at, end)));
        at = end;
    }
    return wml_str_sub(s, at, s.len);
}

static void put_cell(struct text *t, const struct grid *g, size_t c, struct wml_str s, const char *code)
{
    size_t room = g->width[c], width = wml_utf8_width(s);
    bool cut = width > room && room > 3;
    if (cut) {
        s = tail(s, room - 3);
        width = wml_utf8_width(s) + 3;
    }
    size_t pad = width < room ? room - width : 0;
    if (g->column[c]->right) put_blanks(t, pad);
    if (cut) put_coloured(t, "\x1b[2m", WML_STR("..."));
    put_coloured(t, code, s);
    if (!g->column[c]->right && c + 1 < g->n_columns) put_blanks(t, pad);
}

static void end_line(struct text *t)
{
    while (t->out->len && t->out->ptr[t->out->len - 1] == ' ') t->out->ptr[--t->out->len] = '\0';
    wml_buf_char(t->out, '\n');
}

static void put_table(struct text *t, const struct wml_item *table, unsigned indent)
{
    struct grid g = {0};
    fill_grid(t, &g, table);
    fit_grid(&g, t->width > indent ? t->width - indent : 1);
    start_line(t, indent);
    for (size_t c = 0; c < g.n_columns; c++) {
        if (c) put_blanks(t, SPACE);
        put_cell(t, &g, c, wml_str(g.column[c]->label), "\x1b[2m");
    }
    end_line(t);
    for (size_t r = 0; r < g.n_rows; r++) {
        start_line(t, indent);
        for (size_t c = 0; c < g.n_columns; c++) {
            size_t i = r * g.n_columns + c;
            if (c) put_blanks(t, SPACE);
            put_cell(t, &g, c, g.cell[i], tone_code(g.tone[i]));
        }
        end_line(t);
    }
    if (g.n_rows < table->n) {
        start_line(t, indent);
        wml_buf_clear(&t->word);
        wml_buf_cstr(&t->word, "... and ");
        wml_count_text(&t->word, table->n - g.n_rows);
        wml_buf_cstr(&t->word, " more");
        put_coloured(t, "\x1b[2m", wml_buf_view(&t->word));
        end_line(t);
    }
    wml_arena_release(&g.arena);
}

/* --- the walk --- */

static void put_children(struct text *t, const struct wml_item *in, unsigned indent, size_t labels);

static void put_heading(struct text *t, const char *title, unsigned indent)
{
    t->gap = true;
    start_line(t, indent);
    put_coloured(t, "\x1b[1m", wml_str(title));
    wml_buf_char(t->out, '\n');
}

/* Elements of an array of objects: one group of rows each. */
static void put_elements(struct text *t, const struct wml_item *array, unsigned indent)
{
    for (const struct wml_item *e = array->first; e; e = e->next) {
        if (!wml_item_is_visible(e)) continue;
        put_children(t, e, indent, label_width(e));
        t->gap = true;
    }
}

static void put_section(struct text *t, const struct wml_item *it, unsigned indent)
{
    if (it->label) {
        put_heading(t, it->label, indent);
        indent += INDENT;
    } else {
        t->gap = true;
    }
    if (it->kind == WML_ITEM_TABLE)
        put_table(t, it, indent);
    else if (it->kind == WML_ITEM_ARRAY)
        put_elements(t, it, indent);
    else
        put_children(t, it, indent, label_width(it));
    t->gap = true;
}

static void put_children(struct text *t, const struct wml_item *in, unsigned indent, size_t labels)
{
    for (const struct wml_item *it = in->first; it; it = it->next) {
        if (!wml_item_is_visible(it)) continue;
        if (it->kind == WML_ITEM_GAP) {
            t->gap = true;
        } else if (it->kind == WML_ITEM_LINE) {
            start_line(t, indent);
            wml_buf_clear(&t->word);
            wml_item_text(it, &t->word);
            put_wrapped(t, tone_code(it->tone), wml_buf_view(&t->word), indent);
        } else if (is_row(it)) {
            put_row(t, it, indent, labels);
        } else if (is_joined(it)) {
            put_children(t, it, indent, labels);
        } else {
            put_section(t, it, indent);
        }
    }
}

static void render_text(const struct wml_report *r, const struct wml_render_opts *o, struct wml_buf *out)
{
    const struct wml_item *root = wml_report_tree(r);
    struct text t = {.out = out, .colour = o->colour, .width = o->width ? o->width : 100};
    put_children(&t, root, 0, label_width(root));
    wml_buf_release(&t.word);
}

const struct wml_renderer wml_renderer_text = {
    .name = "text",
    .summary = "headings, rows and tables for people",
    .render = render_text,
};
