/* Style and escaping of the HTML reports. */
#include "flow/html.h"

#include <math.h>

const char wml_html_style[] =
    ":root{--bg:#fff;--fg:#1b1f24;--dim:#667;--line:#d8dde3;--card:#f6f8fa;--a:#2563eb;--b:#93c5fd;--warn:#b45309}"
    "@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--fg:#e6e9ee;--dim:#98a2b0;--line:#2b323b;--card:#171d24;"
    "--a:#60a5fa;--b:#1e3a8a;--warn:#fbbf24}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}"
    "main{max-width:960px;margin:0 auto;padding:32px 20px 64px}h1{font-size:24px;margin:0}h2{font-size:17px;margin:36px 0 10px}"
    "small{color:var(--dim);font-weight:400;font-size:13px}.sub{color:var(--dim);margin:4px 0 20px;overflow-wrap:anywhere}.warn{color:var(--warn);font-weight:600}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(100px,1fr));gap:10px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 10px}"
    ".card b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.card span{color:var(--dim);font-size:12px}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}td,th{text-align:left;padding:5px 10px 5px 0;"
    "border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:500;font-size:13px}"
    "td.n,th.n{text-align:right;white-space:nowrap}.bar{background:var(--b);height:8px;border-radius:4px;min-width:1px;margin-top:8px}"
    "svg{width:100%;height:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}"
    "svg text{fill:var(--dim);font-size:11px}svg .grid{stroke:var(--line)}svg .l{fill:none;stroke:var(--a);stroke-width:1.5}"
    "svg .d{fill:var(--a)}svg .h{fill:var(--a)}svg .m{stroke:var(--warn);stroke-dasharray:4 3}";

void wml_html_escape(struct wml_buf *b, struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '&') wml_buf_cstr(b, "&amp;");
        else if (c == '<') wml_buf_cstr(b, "&lt;");
        else if (c == '>') wml_buf_cstr(b, "&gt;");
        else if (c == '"') wml_buf_cstr(b, "&quot;");
        else if ((unsigned char)c < 0x20 && c != '\n' && c != '\t') wml_buf_char(b, ' ');
        else wml_buf_char(b, c);
    }
}

void wml_html_cell(struct wml_buf *b, const char *text)
{
    wml_buf_cstr(b, "<td>");
    wml_html_escape(b, wml_str(text));
    wml_buf_cstr(b, "</td>");
}

void wml_html_ratio_cell(struct wml_buf *b, bool known, double db)
{
    if (!known) wml_buf_cstr(b, "<td class=n></td>");
    else if (isinf(db)) wml_buf_fmt(b, "<td class=n>%s</td>", db > 0 ? "exact" : "-");
    else wml_buf_fmt(b, "<td class=n>%.2f</td>", db);
}
