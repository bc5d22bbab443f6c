/* demo_child.h - a child process and how it ended. */
#ifndef VNPU_DEMO_CHILD_H
#define VNPU_DEMO_CHILD_H

#include <stdbool.h>

enum demo_end { DEMO_EXITED, DEMO_CRASHED, DEMO_ABORTED, DEMO_KILLED, DEMO_HUNG };

/* argv as for execv, at most seven entries and NULL. A child that is there after limit_ms is
 * killed. *code: exit code or signal. */
enum demo_end demo_child(const char *const *argv, unsigned limit_ms, int *code);

#endif
