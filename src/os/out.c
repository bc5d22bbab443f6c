/* Output files, the part that is the same everywhere: gathering small pieces, names of temporary
 * neighbours. Names of open ones are kept in a small table so that a second Ctrl-C can remove them; it is
 * the one piece of state that outlives a call, since a signal handler can be handed nothing. */
#include "os/out.h"

#include <inttypes.h>
#include <stdatomic.h>
#include "os/path.h"
#include "os/sys.h"

enum { DIRECT = 1 << 20, MAX_OPEN = 64 };

static _Atomic(char *) open_temp[MAX_OPEN];

void wml_out_remember(char *temp)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&open_temp[i], &none, temp)) return;
    }
}

void wml_out_forget(char *temp)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *mine = temp;
        if (atomic_compare_exchange_strong(&open_temp[i], &mine, NULL)) return;
    }
}

void wml_out_remove_all(void)
{
    for (size_t i = 0; i < MAX_OPEN; i++) {
        char *temp = atomic_load(&open_temp[i]);
        if (temp) wml_file_remove(temp);
    }
}

void wml_out_temp_name(const struct wml_out *o, uint32_t random, struct wml_buf *out)
{
    struct wml_buf name = {0};
    struct wml_str base = wml_str_sub(wml_path_name(wml_str(o->path)), 0, 180);
    wml_buf_fmt(&name, ".%.*s.%d.%08" PRIx32 ".tmp", WML_ARG(base), wml_pid(), random);
    wml_path_join(out, wml_path_dir(wml_str(o->path)), wml_buf_view(&name));
    wml_buf_release(&name);
}

bool wml_out_fail_dir(const struct wml_out *o, struct wml_err *err)
{
    wml_fail(err, WML_E_IO, "%s is a folder, not a file", o->path);
    return wml_hint(err, "give a file name inside it");
}

bool wml_out_hint_dir(const struct wml_out *o, struct wml_err *err)
{
    struct wml_str dir = wml_path_dir(wml_str(o->path));
    return wml_hint(err, "the folder '%.*s' does not exist: make it first", WML_ARG(dir));
}

bool wml_out_flush(struct wml_out *o, struct wml_err *err)
{
    size_t n = o->n_pending;
    o->n_pending = 0;
    return wml_out_write_now(o, o->pending, n, err);
}

bool wml_out_write(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err)
{
    o->offset += n;
    if (n < DIRECT && o->n_pending + n <= WML_OUT_PENDING) {
        if (n) memcpy(o->pending + o->n_pending, bytes, n);
        o->n_pending += n;
        return true;
    }
    if (!wml_out_flush(o, err)) return false;
    if (n >= WML_OUT_PENDING) return wml_out_write_now(o, bytes, n, err);
    memcpy(o->pending, bytes, n);
    o->n_pending = n;
    return true;
}

bool wml_out_pad(struct wml_out *o, uint64_t to_offset, struct wml_err *err)
{
    static const unsigned char zero[4096];
    while (o->offset < to_offset)
        if (!wml_out_write(o, zero, (size_t)WML_MIN(to_offset - o->offset, sizeof zero), err)) return false;
    return true;
}
