/* tok/bytes.c - GPT-2's alphabet: every byte as a printable character, so that byte strings are words. Printable Latin-1
 * bytes stand for themselves, the others for U+0100 and up, in order. */
#include "tok/internal.h"

static bool stands_for_itself(unsigned c)
{
    return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

uint32_t wml_tok_byte_char(unsigned char byte)
{
    if (stands_for_itself(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    return byte == 0xad ? 0x143 : 0x100u + 0x21 + (byte - 0x7fu);
}

int wml_tok_char_byte(uint32_t ch)
{
    if (ch < 0x100) return stands_for_itself(ch) ? (int)ch : -1;
    if (ch <= 0x120) return (int)(ch - 0x100);
    if (ch == 0x143) return 0xad;
    return ch > 0x120 && ch < 0x143 ? (int)(ch - 0x121 + 0x7f) : -1;
}

void wml_tok_put_bytes(struct wml_str s, struct wml_buf *out)
{
    size_t done = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c > ' ' && c < 0x7f) continue;
        wml_buf_add(out, s.ptr + done, i - done);
        wml_utf8_put(out, wml_tok_byte_char(c));
        done = i + 1;
    }
    wml_buf_add(out, s.ptr + done, s.len - done);
}
