/* sysinfo/registry_win.h - values of the Windows registry as UTF-8. */
#ifndef WML_SYSINFO_REGISTRY_WIN_H
#define WML_SYSINFO_REGISTRY_WIN_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include "base/str.h"

/* A string value; replaces *out. false when it is not there. */
bool wml_reg_text(HKEY key, const wchar_t *name, struct wml_buf *out);
/* A number of 4 or 8 bytes, whatever its declared type. */
bool wml_reg_number(HKEY key, const wchar_t *name, uint64_t *out);

#endif
