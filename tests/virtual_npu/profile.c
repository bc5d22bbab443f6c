/* profile.c - a CSV file with the columns and messages of the QNN EP's.
 *
 * Times come from ORT itself: with level `detailed` each run of an inner session writes ORT's
 * profile, a JSON file with one event per node and line. Its node events are taken over and the
 * file is removed. The virtual clock runs at 1 GHz, so a cycle is a nanosecond; ORT counts whole
 * microseconds. */
#include "profile.h"
#include "sys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct vnpu_profile {
    const OrtApi *api;
    FILE *csv;
    enum vnpu_profiling level;
    char *prefix;  /* of ORT's profiles: path, beside the CSV file */
    size_t folder; /* length of its folder, separator included */
};

enum { FIRST_OP_ID = 10, NAME_ROOM = 512 }; /* 2 and 3 are the input and the output, as with QNN */

/* --- opening --- */

static OrtStatus *make_prefix(struct vnpu_profile *p, const char *csv)
{
    size_t n = strlen(csv), end = n;
    void *room;
    while (n > 0 && !vnpu_is_separator(csv[n - 1]))
        n--;
    p->folder = n;
    const char *dot = strrchr(csv + n, '.');
    if (dot != NULL) end = (size_t)(dot - csv);
    VNPU_TRY(vnpu_array(p->api, end + 64, 1, &room));
    p->prefix = room;
    snprintf(p->prefix, end + 64, "%.*s_vnpu_%llu_run", (int)end, csv,
             (unsigned long long)vnpu_process_id());
    return NULL;
}

OrtStatus *vnpu_profile_open(struct vnpu_ep *ep)
{
    const struct vnpu_options *o = &ep->options;
    void *room;
    if (o->profiling == VNPU_PROFILE_OFF || !o->csv || ep->profile != NULL) return NULL;
    VNPU_TRY(vnpu_array(ep->api, 1, sizeof(struct vnpu_profile), &room));
    struct vnpu_profile *p = room;
    p->api = ep->api;
    p->level = o->profiling;
    OrtStatus *st = make_prefix(p, o->profiling_file);
    if (st == NULL && (p->csv = vnpu_fopen(o->profiling_file, "wb")) == NULL)
        st = vnpu_fail(ep->api, "Failed to open profiling file %s", o->profiling_file);
    if (st != NULL) {
        vnpu_profile_close(p);
        return st;
    }
    fputs("Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,"
          "Event Level,Event Identifier\n", p->csv);
    ep->profile = p;
    return NULL;
}

void vnpu_profile_close(struct vnpu_profile *p)
{
    if (p == NULL) return;
    if (p->csv != NULL) fclose(p->csv);
    free(p->prefix);
    free(p);
}

/* --- rows --- */

static void put_row(struct vnpu_profile *p, const char *message, uint64_t value, const char *unit,
                    const char *level, const char *identifier)
{
    bool quote = strpbrk(identifier, ",\"") != NULL;
    fprintf(p->csv, "0,%s,%llu,%s,BACKEND,%s,%s", message, (unsigned long long)value, unit, level,
            quote ? "\"" : "");
    for (const char *c = identifier; *c != '\0'; c++) {
        if (*c == '"') fputc('"', p->csv);
        fputc(*c, p->csv);
    }
    fputs(quote ? "\"\n" : "\n", p->csv);
}

static void put_root(struct vnpu_profile *p, const char *message, uint64_t value, const char *unit,
                     const char *identifier)
{
    put_row(p, message, value, unit, "ROOT", identifier);
}

/* After every block of rows: whoever kills this process keeps what was measured. */
static OrtStatus *flush(struct vnpu_profile *p)
{
    if (fflush(p->csv) == 0 && !ferror(p->csv)) return NULL;
    return vnpu_fail(p->api, "cannot write the profiling file: is the disk full?");
}

OrtStatus *vnpu_profile_ready(struct vnpu_profile *p, bool loaded, uint64_t ns)
{
    if (p == NULL) return NULL;
    put_root(p, loaded ? "INIT" : "FINALIZE", ns / 1000u, "US",
             loaded ? "VNPU (load binary) time" : "VNPU (finalize) time");
    return flush(p);
}

/* --- ORT's profile of one run --- */

/* The text of a JSON string that starts at s, without its escapes; stops at the closing quote. */
static void unescape(const char *s, char *out, size_t size)
{
    size_t n = 0;
    for (; *s != '\0' && *s != '"' && n + 1 < size; s++) {
        if (*s == '\\' && s[1] != '\0' && s[1] != 'u') s++;
        out[n++] = *s;
    }
    out[n] = '\0';
}

/* What follows `"key" :` in a line, or NULL. */
static const char *find_value(const char *line, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "\"%s\"", key);
    const char *p = strstr(line, quoted);
    if (p == NULL) return NULL;
    p += strlen(quoted);
    while (isspace((unsigned char)*p) || *p == ':')
        p++;
    return p;
}

/* "…,"name" :"conv1_kernel_time",…,"dur" :12,…" of category Node: name and microseconds. */
static bool read_event(const char *line, char name[NAME_ROOM], uint64_t *us)
{
    static const char suffix[] = "_kernel_time";
    const char *category = find_value(line, "cat"), *text = find_value(line, "name");
    const char *duration = find_value(line, "dur");
    if (category == NULL || text == NULL || duration == NULL || *text != '"' ||
        strncmp(category, "\"Node\"", 6) != 0)
        return false;
    unescape(text + 1, name, NAME_ROOM);
    size_t n = strlen(name), tail = sizeof(suffix) - 1;
    if (n <= tail || strcmp(name + n - tail, suffix) != 0) return false;
    name[n - tail] = '\0';
    *us = strtoull(duration, NULL, 10);
    return true;
}

static bool read_line(FILE *f, struct vnpu_buf *line)
{
    int c;
    line->len = 0;
    while ((c = getc(f)) != EOF && c != '\n')
        vnpu_buf_add(line, &(char){(char)c}, 1);
    bool any = c != EOF || line->len > 0;
    vnpu_buf_add(line, "", 1);
    return any && !line->failed;
}

static void put_nodes(struct vnpu_profile *p, FILE *f)
{
    struct vnpu_buf line = {0};
    char name[NAME_ROOM], identifier[NAME_ROOM + 40];
    uint64_t us, id = FIRST_OP_ID;
    while (read_line(f, &line))
        if (read_event((const char *)line.ptr, name, &us)) {
            snprintf(identifier, sizeof(identifier), "%s:OpId_%llu (cycles)", name,
                     (unsigned long long)id++);
            put_row(p, "NODE", us * 1000u, "CYCLES", "SUB-EVENT", identifier);
        }
    vnpu_buf_release(&line);
}

/* Opens the file that ORT wrote for this run: it adds a date to the prefix. */
static OrtStatus *open_run(struct vnpu_profile *p, char **path, FILE **f)
{
    char name[NAME_ROOM], folder[4096];
    size_t n = strlen(p->prefix);
    void *room;
    *f = NULL;
    *path = NULL;
    snprintf(folder, sizeof(folder), "%.*s", (int)p->folder, p->folder > 0 ? p->prefix : "");
    VNPU_TRY(vnpu_array(p->api, n + NAME_ROOM, 1, &room));
    *path = room;
    if (vnpu_find_file(*folder != '\0' ? folder : ".", p->prefix + p->folder, name, sizeof(name))) {
        snprintf(*path, n + NAME_ROOM, "%s%s", folder, name);
        *f = vnpu_fopen(*path, "r");
    }
    return *f != NULL ? NULL
                      : vnpu_fail(p->api, "ORT wrote no profile of a run (%s_*.json)", p->prefix);
}

/* --- one run --- */

OrtStatus *vnpu_profile_start(struct vnpu_profile *p, OrtRunOptions **out)
{
    *out = NULL;
    if (p == NULL || p->level != VNPU_PROFILE_DETAILED) return NULL;
    void *native = vnpu_native_path(p->prefix);
    if (native == NULL) return vnpu_fail(p->api, "the path %s is not UTF-8", p->prefix);
    OrtStatus *st = p->api->CreateRunOptions(out);
    if (st == NULL) st = p->api->RunOptionsEnableProfiling(*out, native);
    free(native);
    return st;
}

/* Rows of a run that went well; of one that failed, ORT's file is only removed. */
static OrtStatus *put_detailed(struct vnpu_profile *p, bool failed, const struct vnpu_times *t)
{
    char *path;
    FILE *f;
    OrtStatus *st = open_run(p, &path, &f);
    if (st == NULL && !failed) {
        put_root(p, "BACKEND", t->run_ns + t->output_ns, "CYCLES",
                 "Accelerator (execute) time (cycles)");
        put_row(p, "NODE", 0, "CYCLES", "SUB-EVENT", "Input OpId_2 (cycles)");
        put_nodes(p, f);
        put_row(p, "NODE", t->output_ns, "CYCLES", "SUB-EVENT", "Output OpId_3 (cycles)");
    }
    if (f != NULL) {
        fclose(f);
        vnpu_remove(path);
    }
    free(path);
    return st;
}

OrtStatus *vnpu_profile_finish(struct vnpu_profile *p, OrtRunOptions *o, bool failed,
                               const struct vnpu_times *t)
{
    if (p == NULL || (failed && o == NULL)) return NULL;
    if (!failed) put_root(p, "BACKEND", 1, "COUNT", "Number of HVX threads used");
    if (o != NULL) {
        p->api->ReleaseRunOptions(o);
        VNPU_TRY(put_detailed(p, failed, t));
    }
    if (failed) return NULL;
    put_root(p, "BACKEND", (t->run_ns + t->output_ns) / 1000u, "US", "Accelerator (execute) time");
    put_root(p, "EXECUTE", t->total_ns / 1000u, "US", "VNPU (execute) time");
    return flush(p);
}
