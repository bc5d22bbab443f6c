/* sysinfo/registry_win.c - values of the Windows registry as UTF-8. */
#include "sysinfo/registry_win.h"

bool wml_reg_text(HKEY key, const wchar_t *name, struct wml_buf *out)
{
    wchar_t wide[1024];
    char text[3 * WML_COUNT(wide)];
    DWORD type = 0, bytes = (DWORD)(sizeof wide - sizeof *wide);
    wml_buf_clear(out);
    if (RegQueryValueExW(key, name, NULL, &type, (BYTE *)wide, &bytes) != ERROR_SUCCESS) return false;
    if (type != REG_SZ && type != REG_EXPAND_SZ && type != REG_MULTI_SZ) return false;
    wide[bytes / sizeof *wide] = L'\0';
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)sizeof text, NULL, NULL);
    if (n > 1) wml_buf_add(out, text, (size_t)n - 1);
    return out->len > 0;
}

bool wml_reg_number(HKEY key, const wchar_t *name, uint64_t *out)
{
    unsigned char raw[8] = {0};
    DWORD type = 0, bytes = sizeof raw;
    if (RegQueryValueExW(key, name, NULL, &type, raw, &bytes) != ERROR_SUCCESS) return false;
    if (bytes != 4 && bytes != 8) return false;
    uint64_t v = 0;
    for (DWORD i = bytes; i-- > 0;) v = v << 8 | raw[i];
    *out = v;
    return true;
}
