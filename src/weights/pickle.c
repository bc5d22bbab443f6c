/* The pickle machine: a stack, a memo, opcodes of protocols 2 to 5 as Python writes them for dictionaries, lists, tuples,
 * numbers, strings and references to tensors. Opcodes: Python's pickletools. Text opcodes of protocol 0, objects (INST,
 * OBJ), extension codes and out-of-band buffers are refused.
 *
 * Memory follows the number of opcodes, which is bounded: each makes at most one value, and what is remembered is
 * numbered without large gaps. */
#include "weights/pickle.h"

#include <inttypes.h>

/* A tensor takes about 33 opcodes. */
enum { MAX_OPS = 1 << 23, MAX_NAME = 512, MEMO_GAP = 16 };

struct machine {
    struct wml_pickle_ctx *cx;
    struct wml_rd *r;
    WML_VEC(struct wml_pickle *) stack;
    WML_VEC(struct wml_pickle *) memo;
    struct wml_pickle *mark, *none, *no, *yes;
};

void wml_pickle_release(struct wml_pickle_ctx *cx)
{
    wml_map_release(&cx->storages);
    wml_arena_release(&cx->arena);
    *cx = (struct wml_pickle_ctx){0};
}

struct wml_pickle *wml_pickle_new(struct wml_pickle_ctx *cx, enum wml_pickle_kind kind)
{
    struct wml_pickle *v = WML_NEW(&cx->arena, struct wml_pickle);
    v->kind = kind;
    return v;
}

static bool push(struct machine *m, struct wml_pickle *v)
{
    WML_PUSH(&m->stack, v);
    return true;
}

/* Takes the topmost value, which must not be a mark; else NULL. */
static struct wml_pickle *pop(struct machine *m, struct wml_err *err)
{
    if (m->stack.len && m->stack.at[m->stack.len - 1] != m->mark) return m->stack.at[--m->stack.len];
    wml_fail(err, WML_E_FORMAT, "the pickle takes a value that is not there");
    return NULL;
}

/* Index of the first value above the topmost mark, which the caller takes off together with them. 0: there is none. */
static size_t find_mark(const struct machine *m, struct wml_err *err)
{
    for (size_t i = m->stack.len; i > 0; i--)
        if (m->stack.at[i - 1] == m->mark) return i;
    wml_fail(err, WML_E_FORMAT, "the pickle goes back to a mark that is not there");
    return 0;
}

static void add_items(struct machine *m, struct wml_pickle *to, size_t first)
{
    for (size_t i = first; i < m->stack.len; i++) WML_PUSH_IN(&m->cx->arena, &to->item, m->stack.at[i]);
}

/* The last n values become one of this kind. */
static bool collect(struct machine *m, enum wml_pickle_kind kind, size_t n, struct wml_err *err)
{
    if (m->stack.len < n) return wml_fail(err, WML_E_FORMAT, "the pickle takes more values than there are");
    for (size_t i = m->stack.len - n; i < m->stack.len; i++)
        if (m->stack.at[i] == m->mark) return wml_fail(err, WML_E_FORMAT, "the pickle takes a mark as a value");
    struct wml_pickle *v = wml_pickle_new(m->cx, kind);
    add_items(m, v, m->stack.len - n);
    m->stack.len -= n;
    return push(m, v);
}

static bool collect_marked(struct machine *m, enum wml_pickle_kind kind, struct wml_err *err)
{
    size_t first = find_mark(m, err);
    if (!first) return false;
    if (kind == WML_PICKLE_DICT && (m->stack.len - first) % 2)
        return wml_fail(err, WML_E_FORMAT, "the pickle has a key without its value");
    if (!collect(m, kind, m->stack.len - first, err)) return false;
    m->stack.at[first - 1] = m->stack.at[first];
    m->stack.len = first;
    return true;
}

/* Values from `first` go into the list or dictionary before `below`, which is where the mark stood, if there was one. */
static bool add_to(struct machine *m, enum wml_pickle_kind kind, size_t first, size_t below, struct wml_err *err)
{
    struct wml_pickle *to = below && m->stack.at[below - 1] != m->mark ? m->stack.at[below - 1] : NULL;
    if (!to || to->kind != kind)
        return wml_fail(err, WML_E_FORMAT, "the pickle puts items into something that is no %s",
                        kind == WML_PICKLE_DICT ? "dictionary" : "list");
    if (kind == WML_PICKLE_DICT && (m->stack.len - first) % 2)
        return wml_fail(err, WML_E_FORMAT, "the pickle has a key without its value");
    add_items(m, to, first);
    m->stack.len = below;
    return true;
}

static bool add_marked(struct machine *m, enum wml_pickle_kind kind, struct wml_err *err)
{
    size_t first = find_mark(m, err);
    return first && add_to(m, kind, first, first - 1, err);
}

/* The last n values, without a mark. */
static bool add_last(struct machine *m, enum wml_pickle_kind kind, size_t n, struct wml_err *err)
{
    for (size_t i = 1; i <= n; i++)
        if (m->stack.len < i || m->stack.at[m->stack.len - i] == m->mark)
            return wml_fail(err, WML_E_FORMAT, "the pickle takes a value that is not there");
    return add_to(m, kind, m->stack.len - n, m->stack.len - n, err);
}

/* --- constants --- */

static bool push_int(struct machine *m, int64_t number)
{
    struct wml_pickle *v = wml_pickle_new(m->cx, WML_PICKLE_INT);
    v->number = number;
    return push(m, v);
}

/* Little endian two's complement of any length. */
static bool push_long(struct machine *m, uint64_t n, struct wml_err *err)
{
    struct wml_span s;
    if (!wml_rd_bytes(m->r, n, &s, err)) return false;
    if (n > 8) {
        struct wml_pickle *v = wml_pickle_new(m->cx, WML_PICKLE_LONG);
        v->text = (struct wml_str){(const char *)s.ptr, s.len};
        return push(m, v);
    }
    uint64_t u = n && s.ptr[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = s.len; i-- > 0;) u = u << 8 | s.ptr[i];
    return push_int(m, (int64_t)u);
}

static bool push_text(struct machine *m, enum wml_pickle_kind kind, uint64_t n, struct wml_err *err)
{
    struct wml_span s;
    if (!wml_rd_bytes(m->r, n, &s, err)) return false;
    struct wml_pickle *v = wml_pickle_new(m->cx, kind);
    v->text = (struct wml_str){(const char *)s.ptr, s.len};
    return push(m, v);
}

/* Numbers after an opcode: 1, 2, 4 or 8 bytes. */
static bool read_number(struct machine *m, unsigned n, uint64_t *out, struct wml_err *err)
{
    struct wml_span s;
    if (!wml_rd_bytes(m->r, n, &s, err)) return false;
    *out = 0;
    for (size_t i = n; i-- > 0;) *out = *out << 8 | s.ptr[i];
    return true;
}

/* --- names, calls, memo --- */

static bool read_line(struct machine *m, struct wml_str *out, struct wml_err *err)
{
    const size_t most = WML_MIN(wml_rd_left(m->r), (size_t)MAX_NAME);
    const unsigned char *end = most ? memchr(m->r->p, '\n', most) : NULL;
    if (!end) return wml_fail(err, WML_E_FORMAT, "the pickle has a name without an end");
    *out = (struct wml_str){(const char *)m->r->p, (size_t)(end - m->r->p)};
    m->r->p = end + 1;
    return true;
}

static bool push_global(struct machine *m, struct wml_str module, struct wml_str name, struct wml_err *err)
{
    struct wml_pickle *v = NULL;
    return wml_pickle_find(m->cx, module, name, &v, err) && push(m, v);
}

static bool op_global(struct machine *m, struct wml_err *err)
{
    struct wml_str module, name;
    return read_line(m, &module, err) && read_line(m, &name, err) && push_global(m, module, name, err);
}

static bool op_stack_global(struct machine *m, struct wml_err *err)
{
    struct wml_pickle *name = pop(m, err), *module = name ? pop(m, err) : NULL;
    if (!module) return false;
    if (module->kind != WML_PICKLE_STR || name->kind != WML_PICKLE_STR)
        return wml_fail(err, WML_E_FORMAT, "the pickle names something by what is no text");
    return push_global(m, module->text, name->text, err);
}

static bool op_call(struct machine *m, struct wml_err *err)
{
    struct wml_pickle *args = pop(m, err), *fn = args ? pop(m, err) : NULL, *v = NULL;
    return fn && wml_pickle_call(m->cx, fn, args, &v, err) && push(m, v);
}

static bool op_persistent(struct machine *m, struct wml_err *err)
{
    struct wml_pickle *id = pop(m, err), *v = NULL;
    return id && wml_pickle_persistent(m->cx, id, &v, err) && push(m, v);
}

/* State of a dictionary (the versions of modules) or of a tensor says nothing about its elements. */
static bool op_build(struct machine *m, struct wml_err *err)
{
    struct wml_pickle *state = pop(m, err), *object = state ? pop(m, err) : NULL;
    if (!object) return false;
    if (object->kind != WML_PICKLE_DICT && object->kind != WML_PICKLE_TENSOR)
        return wml_fail(err, WML_E_UNSUPPORTED, "the pickle sets the state of an object");
    return push(m, object);
}

static bool remember(struct machine *m, uint64_t at, struct wml_err *err)
{
    struct wml_pickle *v = pop(m, err);
    if (!v) return false;
    push(m, v);
    if (at > m->memo.len + MEMO_GAP)
        return wml_fail(err, WML_E_FORMAT, "the pickle remembers a value under the number %" PRIu64 ", after %zu others", at, m->memo.len);
    while (m->memo.len <= at) WML_PUSH(&m->memo, (struct wml_pickle *)NULL);
    m->memo.at[at] = v;
    return true;
}

static bool recall(struct machine *m, uint64_t at, struct wml_err *err)
{
    if (at >= m->memo.len || !m->memo.at[at])
        return wml_fail(err, WML_E_FORMAT, "the pickle recalls value %" PRIu64 ", which it never remembered", at);
    return push(m, m->memo.at[at]);
}

static bool op_pop_mark(struct machine *m, struct wml_err *err)
{
    size_t first = find_mark(m, err);
    if (!first) return false;
    m->stack.len = first - 1;
    return true;
}

static bool op_pop(struct machine *m, struct wml_err *err)
{
    if (!m->stack.len) return wml_fail(err, WML_E_FORMAT, "the pickle takes a value that is not there");
    m->stack.len--;
    return true;
}

static bool op_dup(struct machine *m, struct wml_err *err)
{
    struct wml_pickle *v = pop(m, err);
    return v && push(m, v) && push(m, v);
}

/* --- opcodes --- */

/* Those that a number of n bytes follows: an argument, or the length of what follows. 0: others. */
static unsigned width_of(uint8_t op)
{
    switch (op) {
    case 'K': case 'h': case 'q': case 'U': case 'C': case 0x8a: case 0x8c: case 0x80: return 1;
    case 'M': return 2;
    case 'J': case 'j': case 'r': case 'T': case 'B': case 'X': case 0x8b: return 4;
    case 'G': case 0x8d: case 0x8e: case 0x95: case 0x96: return 8;
    default: return 0;
    }
}

static bool run_with_number(struct machine *m, uint8_t op, uint64_t n, struct wml_err *err)
{
    switch (op) {
    case 0x80: return n <= 5 || wml_fail(err, WML_E_UNSUPPORTED, "the pickle is of protocol %" PRIu64 ", those up to 5 are read", n);
    case 0x95: /* a frame says how much can be read ahead */
        return n <= wml_rd_left(m->r) || wml_fail(err, WML_E_FORMAT, "a frame of the pickle is cut");
    case 'K': case 'M': return push_int(m, (int64_t)n);
    case 'J': return push_int(m, (int32_t)(uint32_t)n);
    case 0x8a: case 0x8b: return push_long(m, n, err);
    case 'G': return push(m, wml_pickle_new(m->cx, WML_PICKLE_FLOAT)); /* no tensor needs its value */
    case 'U': case 'T': case 'X': case 0x8c: case 0x8d: return push_text(m, WML_PICKLE_STR, n, err);
    case 'B': case 'C': case 0x8e: case 0x96: return push_text(m, WML_PICKLE_BYTES, n, err);
    case 'h': case 'j': return recall(m, n, err);
    default: return remember(m, n, err); /* 'q', 'r' */
    }
}

static bool run_plain(struct machine *m, uint8_t op, struct wml_err *err)
{
    switch (op) {
    case '(': return push(m, m->mark);
    case '0': return op_pop(m, err);
    case '1': return op_pop_mark(m, err);
    case '2': return op_dup(m, err);
    case 'N': return push(m, m->none);
    case 0x88: return push(m, m->yes);
    case 0x89: return push(m, m->no);
    case ')': case 0x85: case 0x86: case 0x87: return collect(m, WML_PICKLE_TUPLE, op == ')' ? 0 : (size_t)op - 0x84, err);
    case 't': return collect_marked(m, WML_PICKLE_TUPLE, err);
    case ']': return collect(m, WML_PICKLE_LIST, 0, err);
    case 'l': return collect_marked(m, WML_PICKLE_LIST, err);
    case '}': return collect(m, WML_PICKLE_DICT, 0, err);
    case 'd': return collect_marked(m, WML_PICKLE_DICT, err);
    case 'a': return add_last(m, WML_PICKLE_LIST, 1, err);
    case 'e': return add_marked(m, WML_PICKLE_LIST, err);
    case 's': return add_last(m, WML_PICKLE_DICT, 2, err);
    case 'u': return add_marked(m, WML_PICKLE_DICT, err);
    case 'c': return op_global(m, err);
    case 'i': return op_global(m, err) && wml_fail(err, WML_E_UNSUPPORTED, "the pickle makes an object");
    case 0x93: return op_stack_global(m, err);
    case 'R': case 0x81: return op_call(m, err); /* NEWOBJ: the same for the classes that are known */
    case 'Q': return op_persistent(m, err);
    case 'b': return op_build(m, err);
    case 0x94: return remember(m, m->memo.len, err);
    default: return wml_fail(err, WML_E_UNSUPPORTED, "the pickle has opcode 0x%02x, which dictionaries of tensors do not need", op);
    }
}

static bool run(struct machine *m, struct wml_err *err)
{
    uint8_t op;
    for (size_t i = 0; i < MAX_OPS; i++) {
        const uint64_t at = wml_rd_offset(m->r);
        uint64_t n = 0;
        if (!wml_rd_u8(m->r, &op, err)) return wml_wrap(err, "the pickle is cut");
        if (op == '.') return true;
        const unsigned width = width_of(op);
        if ((width && !read_number(m, width, &n, err)) || !(width ? run_with_number(m, op, n, err) : run_plain(m, op, err)))
            return wml_wrap(err, "byte %" PRIu64, at);
    }
    return wml_fail(err, WML_E_UNSUPPORTED, "the pickle has more than %d opcodes: that is no dictionary of tensors", MAX_OPS);
}

bool wml_pickle_read(struct wml_pickle_ctx *cx, struct wml_rd *r, struct wml_pickle **out, struct wml_err *err)
{
    struct machine m = {.cx = cx, .r = r};
    m.mark = wml_pickle_new(cx, WML_PICKLE_MARK);
    m.none = wml_pickle_new(cx, WML_PICKLE_NONE);
    m.no = wml_pickle_new(cx, WML_PICKLE_BOOL);
    m.yes = wml_pickle_new(cx, WML_PICKLE_BOOL);
    m.yes->number = 1;
    *out = run(&m, err) ? pop(&m, err) : NULL;
    WML_VEC_RELEASE(&m.stack);
    WML_VEC_RELEASE(&m.memo);
    return *out != NULL;
}
