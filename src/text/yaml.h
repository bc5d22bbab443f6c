/* text/yaml.h - the small part of YAML that config files use: mappings of names to booleans, numbers and words,
 * nested by indentation. */
#ifndef WML_TEXT_YAML_H
#define WML_TEXT_YAML_H

#include "text/json.h"

/* Reads a file as the JSON document it means. Sequences, anchors, quotes over several lines and block texts are
 * refused; errors name the line. An empty file is an empty mapping. */
bool wml_yaml_load(const char *path, struct wml_json_doc **out, struct wml_err *err);
bool wml_yaml_parse(struct wml_str text, struct wml_json_doc **out, struct wml_err *err);

#endif
