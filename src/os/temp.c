/* Names of private files and folders: prefix, place, process, number - ".winml-optimize-5d41402a-1234-7b3c9e01". A
 * process that was killed removes nothing; its name tells the next one that may. */
#include "os/temp_sys.h"

#include <inttypes.h>
#include <time.h>
#include "base/hash.h"
#include "base/num.h"
#include "os/file.h"
#include "os/out_sys.h"
#include "os/path.h"
#include "os/sys.h"

enum { HEX = 8, FOREIGN_DAYS = 1, TRIES = 100 };

struct search {
    const char *dir, *prefix;
    char place[HEX + 1]; /* ours */
};

static void find_place(char place[HEX + 1])
{
    char hex[WML_SHA256_HEX];
    struct wml_buf where = {0};
    struct wml_sha256 sha;
    wml_temp_where(&where);
    wml_sha256_init(&sha);
    wml_sha256_add(&sha, wml_buf_text(&where), where.len);
    wml_sha256_hex(&sha, hex);
    snprintf(place, HEX + 1, "%.*s", HEX, hex);
    wml_buf_release(&where);
}

static bool is_hex(struct wml_str s)
{
    bool ok = s.len == HEX;
    for (size_t i = 0; ok && i < HEX; i++) ok = s.ptr[i] && strchr("0123456789abcdef", s.ptr[i]) != NULL;
    return ok;
}

static bool is_old(const char *path)
{
    int64_t now = (int64_t)time(NULL), then = wml_file_info(path).modified_ns / 1000000000;
    return then > 0 && now - then > (int64_t)FOREIGN_DAYS * 24 * 60 * 60;
}

/* Processes of another machine, or of a container, cannot be asked about: theirs go after a day. */
static void remove_stale(void *arg, struct wml_str name)
{
    const struct search *s = arg;
    struct wml_str rest = wml_str_sub(name, strlen(s->prefix), name.len), place, process, number;
    struct wml_buf path = {0};
    int64_t pid = 0;
    if (!wml_str_split(&rest, '-', &place) || !wml_str_split(&rest, '-', &process) || !wml_str_split(&rest, '-', &number)) return;
    if (rest.ptr || !is_hex(place) || !is_hex(number) || !wml_parse_i64(process, &pid) || pid < 1) return;
    wml_path_join(&path, wml_str(s->dir), name);
    if (wml_str_is(place, s->place) ? !wml_temp_lives(pid) : is_old(wml_buf_text(&path))) wml_dir_remove(wml_buf_text(&path));
    wml_buf_release(&path);
}

/* A name in s->dir that nobody has, but for chance. */
static void new_name(const struct search *s, uint32_t attempt, struct wml_buf *path)
{
    struct wml_buf name = {0};
    const uint64_t chance[] = {wml_now_ns(), (uint64_t)wml_pid(), attempt, (uint64_t)(uintptr_t)path};
    wml_buf_fmt(&name, "%s%s-%d-%08" PRIx32, s->prefix, s->place, wml_pid(), (uint32_t)wml_hash(chance, sizeof chance, 0));
    wml_buf_clear(path);
    wml_path_join(path, wml_str(s->dir), wml_buf_view(&name));
    wml_buf_release(&name);
}

/* parent NULL: the system's folder, whose name is kept in room. What the dead left goes. */
static struct search begin(const char *parent, const char *prefix, struct wml_buf *room)
{
    if (parent) wml_buf_cstr(room, *parent ? parent : ".");
    else wml_path_temp(room);
    struct search s = {.dir = wml_buf_text(room), .prefix = prefix};
    find_place(s.place);
    wml_temp_each(s.dir, prefix, &s, remove_stale);
    return s;
}

bool wml_dir_temp(const char *parent, const char *prefix, struct wml_buf *path, struct wml_err *err)
{
    struct wml_buf dir = {0};
    struct search s = begin(parent, prefix, &dir);
    enum wml_temp_made made = WML_TEMP_TAKEN;
    for (uint32_t i = 0; made == WML_TEMP_TAKEN && i < TRIES; i++) {
        new_name(&s, i, path);
        made = wml_temp_make(wml_buf_text(path), s.dir, err);
    }
    if (made == WML_TEMP_TAKEN) wml_fail(err, WML_E_EXISTS, "make a folder in %s: all names are taken", s.dir);
    if (made == WML_TEMP_MADE) wml_out_remember(wml_buf_text(path));
    else wml_buf_clear(path);
    wml_buf_release(&dir);
    return made == WML_TEMP_MADE;
}

void wml_file_temp(const char *parent, const char *prefix, struct wml_buf *path)
{
    struct wml_buf dir = {0};
    struct search s = begin(parent, prefix, &dir);
    new_name(&s, 0, path);
    wml_out_remember(wml_buf_text(path));
    wml_buf_release(&dir);
}
