/* base/ban.h - functions that lose bounds or share hidden state. Using one is a compile error. */
#ifndef WML_BASE_BAN_H
#define WML_BASE_BAN_H

/* The headers that declare them come first, so that only our own uses are caught. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WML_BANNED(name) wml_banned_function_##name
#undef strcpy
#undef strcat
#undef sprintf
#undef vsprintf
#undef strncpy
#undef strtok
#undef atoi
#undef localtime
#define strcpy WML_BANNED(strcpy)
#define strcat WML_BANNED(strcat)
#define sprintf WML_BANNED(sprintf)
#define vsprintf WML_BANNED(vsprintf)
#define strncpy WML_BANNED(strncpy)
#define strtok WML_BANNED(strtok)
#define atoi WML_BANNED(atoi)
#define localtime WML_BANNED(localtime)

#endif
