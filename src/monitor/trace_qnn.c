/* The profiling CSV of the QNN EP.
 *
 *     Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier
 *     0,BACKEND,334471462,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)     opens a block
 *     0,NODE,555236,CYCLES,BACKEND,SUB-EVENT,Conv@0_token_1:OpId_23 (cycles)
 *     0,BACKEND,1982974,US,BACKEND,ROOT,Accelerator (execute) time                    closes it
 *
 * One block per partition and run, partitions in the same order in every run. Operator ids repeat between
 * partitions, so a row is (partition, id). A cycle count becomes time by its own block's totals. */
#include "monitor/trace.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/num.h"
#include "text/csv.h"

enum { MAX_BLOCK_NODES = 1 << 20, MAX_BLOCKS = 1 << 20, MAX_PARTITIONS = 1000 };

struct node {
    struct wml_str name;
    int64_t id;
    double cycles;
};

struct block {
    WML_VEC(struct node) node;
    double cycles, us;
    uint64_t shape; /* hash of the operators' ids and names: tells partitions apart */
};

struct reader {
    struct wml_trace *t;
    WML_VEC(struct block) block;
    struct block open;
    bool is_open;
    size_t message, time, unit, level, id; /* columns */
    double hvx_sum, finalize, execute_sum;
    size_t n_hvx, n_execute;
};

/* "name_token_1_2:OpId_23 (cycles)" -> name and 23. */
static bool split_identifier(struct wml_str s, struct wml_str *name, int64_t *id)
{
    struct wml_str mark = WML_STR("OpId_"), digits;
    if (!wml_str_ends(s, " (cycles)")) return false;
    s = wml_str_sub(s, 0, s.len - 9);
    size_t at = SIZE_MAX;
    for (size_t i = 0; i + mark.len <= s.len; i++)
        if (memcmp(s.ptr + i, mark.ptr, mark.len) == 0) at = i;
    if (at == SIZE_MAX || at == 0 || (s.ptr[at - 1] != ':' && s.ptr[at - 1] != ' ')) return false;
    digits = wml_str_sub(s, at + mark.len, s.len);
    if (!wml_parse_i64(digits, id)) return false;
    *name = wml_str_sub(s, 0, at - 1);
    return true;
}

/* Cuts a trailing _token_<d> or _token_<d>_<d>. */
struct wml_str wml_qnn_name(struct wml_str s)
{
    struct wml_str mark = WML_STR("_token");
    size_t n = s.len;
    while (n && (isdigit((unsigned char)s.ptr[n - 1]) || s.ptr[n - 1] == '_')) n--;
    bool token = n < s.len && s.ptr[n] == '_' && n + 1 < s.len && n >= mark.len && memcmp(s.ptr + n - mark.len, mark.ptr, mark.len) == 0;
    return token ? wml_str_sub(s, 0, n - mark.len) : s;
}

static bool find_columns(struct reader *r, const struct wml_csv *c, struct wml_err *err)
{
    static const char *const name[] = {"Message", "Time", "Unit of Measurement", "Event Level", "Event Identifier"};
    size_t *column[] = {&r->message, &r->time, &r->unit, &r->level, &r->id};
    for (size_t i = 0; i < WML_COUNT(name); i++) {
        *column[i] = wml_csv_find(c, name[i]);
        if (*column[i] == SIZE_MAX) return wml_fail(err, WML_E_FORMAT, "the profiling CSV has no column '%s'", name[i]);
    }
    return true;
}

static void close_block(struct reader *r)
{
    if (r->is_open && r->open.node.len && r->open.us > 0 && r->block.len < MAX_BLOCKS) {
        WML_PUSH(&r->block, r->open);
    } else {
        if (r->is_open && r->open.node.len) r->t->dropped++;
        WML_VEC_RELEASE(&r->open.node);
    }
    r->open = (struct block){0};
    r->is_open = false;
}

static void take_node(struct reader *r, struct wml_str id, double cycles)
{
    struct node n = {.cycles = cycles};
    if (!split_identifier(id, &n.name, &n.id)) return;
    if (!r->is_open || r->open.node.len >= MAX_BLOCK_NODES) {
        r->t->dropped++;
        return;
    }
    n.name = wml_arena_str(&r->t->arena, wml_qnn_name(n.name));
    WML_PUSH(&r->open.node, n);
    r->t->node_rows++;
}

static void take_root(struct reader *r, struct wml_str message, struct wml_str id, bool cycles, double v)
{
    if (cycles && wml_str_is(id, "Accelerator (execute) time (cycles)")) {
        close_block(r);
        r->is_open = true;
        r->open.cycles = v;
    } else if (wml_str_is(id, "Accelerator (execute) time")) {
        if (r->is_open) r->open.us = v;
        close_block(r);
    } else if (wml_str_starts(id, "Number of HVX threads")) {
        r->hvx_sum += v;
        r->n_hvx++;
    } else if (wml_str_is(message, "FINALIZE") || wml_str_is(message, "INIT")) {
        r->finalize += v;
    } else if (wml_str_is(message, "EXECUTE")) {
        r->execute_sum += v;
        r->n_execute++;
    }
}

static bool read_rows(struct reader *r, struct wml_str csv, struct wml_err *err)
{
    struct wml_csv c;
    struct wml_err bad = {0};
    wml_csv_init(&c, csv);
    bool any = wml_csv_next(&c, &bad), ok = any && find_columns(r, &c, err);
    if (!any && bad.code == WML_OK) wml_fail(&bad, WML_E_FORMAT, "the profiling CSV is empty");
    size_t most = WML_MAX(WML_MAX(r->message, r->time), WML_MAX(WML_MAX(r->unit, r->level), r->id));
    while (ok && wml_csv_next(&c, &bad)) {
        double v;
        if (c.field.len <= most || !wml_parse_f64(wml_str_trim(c.field.at[r->time]), &v)) {
            r->t->dropped++;
            continue;
        }
        struct wml_str message = c.field.at[r->message], level = c.field.at[r->level], id = wml_str_trim(c.field.at[r->id]);
        bool cycles = wml_str_is(c.field.at[r->unit], "CYCLES");
        if (wml_str_is(level, "ROOT")) take_root(r, message, id, cycles, v);
        else if (wml_str_is(message, "NODE") && cycles) take_node(r, id, v);
    }
    if (bad.code != WML_OK) {
        if (err) *err = bad;
        ok = false;
    }
    wml_csv_release(&c);
    return ok;
}

static void find_shape(struct block *b)
{
    struct wml_buf text = {0};
    for (size_t i = 0; i < b->node.len; i++)
        wml_buf_fmt(&text, "%" PRId64 " %.*s\n", b->node.at[i].id, WML_ARG(b->node.at[i].name));
    b->shape = wml_hash(text.ptr, text.len, 0);
    wml_buf_release(&text);
}

/* Blocks repeat after this many: the smallest period of their shapes, or their number when there is none. */
static size_t find_period(const struct reader *r)
{
    for (size_t p = 1; p < r->block.len; p++) {
        size_t i = p;
        while (i < r->block.len && r->block.at[i].shape == r->block.at[i - p].shape) i++;
        if (i == r->block.len) return p;
        if (p >= MAX_PARTITIONS) break;
    }
    return r->block.len;
}

/* Partitions per run. Lost blocks at the end do not matter, equal partitions are told by the number of runs. */
static size_t find_partitions(const struct reader *r, size_t runs)
{
    size_t n = r->block.len, period = n ? find_period(r) : 0;
    if (!n || !runs) return n ? period : 0;
    if (period == n && n >= runs) period = 1; /* no pattern */
    size_t times = (n + runs * period / 2) / (runs * period);
    return period * WML_MAX(times, (size_t)1);
}

/* run: from 0, without warmup. */
static void add_node(struct reader *r, struct wml_map *index, const struct block *b, const struct node *n, size_t run,
                     size_t partition, const char *ep)
{
    struct wml_trace *t = r->t;
    struct wml_str key = wml_arena_fmt(&t->arena, "%zu:%" PRId64, partition, n->id);
    uintptr_t at = (uintptr_t)wml_map_get(index, key);
    if (!at) {
        struct wml_trace_row row = {.name = n->name, .ep = wml_str(ep), .partition = partition, .op_id = n->id, .start_us = -1};
        WML_PUSH(&t->row, row);
        at = t->row.len;
        wml_map_put(index, key, (void *)at);
    }
    struct wml_trace_row *row = &t->row.at[at - 1];
    double us = b->cycles > 0 ? n->cycles * b->us / b->cycles : 0;
    if (row->sample_us.len > run) row->sample_us.at[row->sample_us.len - 1] += us; /* listed twice in a block */
    else WML_PUSH(&row->sample_us, us);
    row->duration_us += us / (double)t->runs;
    row->cycles += n->cycles / (double)t->runs;
}

/* Blocks of warmup runs go; an incomplete last run goes. */
static void add_up(struct reader *r, size_t warmup, size_t runs, const char *ep)
{
    struct wml_trace *t = r->t;
    struct wml_map index = {0};
    for (size_t i = 0; i < r->block.len; i++) find_shape(&r->block.at[i]);
    size_t per_run = find_partitions(r, runs);
    t->partitions = per_run;
    t->blocks = r->block.len;
    size_t whole = per_run ? r->block.len / per_run : 0;
    if (runs) whole = WML_MIN(whole, runs);
    t->dropped += r->block.len - whole * per_run;
    t->runs = whole > warmup ? whole - warmup : 0;
    for (size_t run = warmup; run < whole; run++)
        for (size_t p = 0; p < per_run; p++) {
            const struct block *b = &r->block.at[run * per_run + p];
            t->accel_cycles += b->cycles / (double)t->runs;
            t->accel_us += b->us / (double)t->runs;
            for (size_t k = 0; k < b->node.len; k++) add_node(r, &index, b, &b->node.at[k], run - warmup, p, ep);
        }
    wml_map_release(&index);
}

bool wml_trace_qnn(struct wml_str csv, size_t warmup, size_t runs, const char *ep, struct wml_trace *out,
                   struct wml_err *err)
{
    struct reader r = {.t = out};
    bool ok = read_rows(&r, csv, err);
    close_block(&r);
    if (ok) add_up(&r, warmup, runs, ep);
    out->hvx_threads = r.n_hvx ? r.hvx_sum / (double)r.n_hvx : 0;
    out->finalize_us = r.finalize;
    out->execute_us = r.n_execute ? r.execute_sum / (double)r.n_execute : 0;
    out->total_us = out->accel_us;
    for (size_t i = 0; i < r.block.len; i++) WML_VEC_RELEASE(&r.block.at[i].node);
    WML_VEC_RELEASE(&r.block);
    return ok;
}
