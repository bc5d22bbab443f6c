/* os/spawn_hear.h - what is heard of a child, the same on every system. Internal to src/os. */
#ifndef WML_OS_SPAWN_HEAR_H
#define WML_OS_SPAWN_HEAR_H

#include "os/spawn.h"

/* Once more than `limit` bytes are there, the newest `keep` stay. */
void wml_spawn_keep_tail(struct wml_buf *b, size_t keep, size_t limit);
/* Hands whole lines to on_line and keeps the rest; a rest of more than a MiB is dropped: no line of ours is that long.
 * *deadline: on a clock of wml_now_ns, moved when a listener says so. */
void wml_spawn_say_lines(struct wml_buf *line, const struct wml_child_hooks *hooks, uint64_t *deadline);

struct wml_spawn_silence { uint64_t heard_ns, told_ns; }; /* zero at the start; heard_ns: the last word */
/* Calls on_quiet when it is due: to be looked at once a second at least. */
void wml_spawn_tell_quiet(struct wml_spawn_silence *s, const struct wml_child_hooks *hooks);

#endif
