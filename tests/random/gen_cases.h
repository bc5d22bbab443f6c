/* gen_cases.h - graphs of tests/passes as seeds. */
#ifndef WML_TESTS_RANDOM_GEN_CASES_H
#define WML_TESTS_RANDOM_GEN_CASES_H

#include "gen.h"
#include "passes/passes.h"

struct gen_cases;
/* An empty list when the folder cannot be read. */
struct gen_cases *gen_cases_open(const char *folder);
void gen_cases_close(struct gen_cases *c);
size_t gen_cases_count(const struct gen_cases *c);
/* Fills g as gen_graph does, and says which pass the case is of. false: it cannot be fed; release g all the same. */
bool gen_from_case(struct gen *g, const struct gen_cases *cases, const struct wml_pass **pass);

#endif
