/* worker/wire.h - what parent and child say to each other. Internal to src/worker.
 *
 * stdin    {"reply":FILE,"cache":DIR,"level":2,"native":false,"request":{...}}, to the end; with the argument "talk" it is
 *          one line, and lines for the job follow
 * channel  {"phase":"load"} | {"log":"text","level":1} | {"progress":"Running","item":..,"done":1,
 *          "total":9,"unit":"runs"} | {"progress":null} | {"event":{...}} | {"replied":true}, one per line
 * FILE     {"ok":true,"reply":{...}} | {"ok":false,"code":"load","msg":"..","hint":"..","reply":{...}} */
#ifndef WML_WORKER_WIRE_H
#define WML_WORKER_WIRE_H

#include "text/json.h"
#include "worker/worker.h"

const struct wml_job *wml_job_find(const char *name);
/* Writes the envelope of a reply; err NULL or code WML_OK: it went well. reply may be empty. */
void wml_wire_reply(struct wml_buf *out, struct wml_str reply, const struct wml_err *err);
/* Takes an envelope apart: false with the job's own error when it says so. On success and on failure
 * *reply is a document of the inner reply, or NULL when it has none. */
bool wml_wire_read(struct wml_str envelope, struct wml_json_doc **reply, struct wml_err *err);

#endif
