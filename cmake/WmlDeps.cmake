# Parts that scripts/setup fetched: ORT headers and yyjson. The cache lies outside the tree.
set(WINML_DEPS "$ENV{WINML_DEPS}" CACHE PATH "Cache filled by scripts/setup")
if(NOT WINML_DEPS)
    if(DEFINED ENV{XDG_CACHE_HOME})
        set(WINML_DEPS "$ENV{XDG_CACHE_HOME}/winml-build")
    else()
        set(WINML_DEPS "$ENV{HOME}/.cache/winml-build")
    endif()
endif()

# An ONNX Runtime that the user names comes first, then the fetched one, then the system's.
find_path(WML_ORT_INCLUDE onnxruntime_c_api.h
    HINTS $ENV{ONNXRUNTIME_ROOT}/include ${WINML_DEPS}/ort/include
    PATH_SUFFIXES onnxruntime onnxruntime/core/session
    NO_CMAKE_FIND_ROOT_PATH)
if(NOT WML_ORT_INCLUDE)
    message(FATAL_ERROR "onnxruntime_c_api.h not found: run scripts/setup, or set ONNXRUNTIME_ROOT")
endif()
add_library(wml_ort_headers INTERFACE)
target_include_directories(wml_ort_headers SYSTEM INTERFACE ${WML_ORT_INCLUDE})

if(EXISTS ${WINML_DEPS}/yyjson/yyjson.c)
    add_library(wml_yyjson STATIC ${WINML_DEPS}/yyjson/yyjson.c)
    target_include_directories(wml_yyjson SYSTEM PUBLIC ${WINML_DEPS}/yyjson)
    target_compile_options(wml_yyjson PRIVATE -w)
    if(WML_SANITIZE) # UBSan costs a minute on this one file, which others test
        target_compile_options(wml_yyjson PRIVATE -fno-sanitize=undefined)
    endif()
else()
    find_path(WML_YYJSON_INCLUDE yyjson.h REQUIRED)
    find_library(WML_YYJSON_LIB yyjson REQUIRED)
    add_library(wml_yyjson INTERFACE)
    target_include_directories(wml_yyjson SYSTEM INTERFACE ${WML_YYJSON_INCLUDE})
    target_link_libraries(wml_yyjson INTERFACE ${WML_YYJSON_LIB})
endif()

# stb_image decodes pictures; its inflate reads compressed .npz members. Before 2.28 a JPEG can make it write out of bounds.
find_path(WML_STB_HEADERS stb_image.h HINTS ${WINML_DEPS}/stb PATH_SUFFIXES stb NO_CMAKE_FIND_ROOT_PATH)
if(NOT WML_STB_HEADERS)
    message(FATAL_ERROR "stb_image.h not found: run scripts/setup")
endif()
file(STRINGS ${WML_STB_HEADERS}/stb_image.h WML_STB_VERSION LIMIT_COUNT 1)
string(REGEX REPLACE ".* v([0-9.]+) .*" "\\1" WML_STB_VERSION "${WML_STB_VERSION}")
if(WML_STB_VERSION VERSION_LESS 2.28)
    message(FATAL_ERROR "${WML_STB_HEADERS}/stb_image.h is ${WML_STB_VERSION}, 2.28 or newer is needed: run scripts/setup, "
        "then configure with -U WML_STB_HEADERS")
endif()
add_library(wml_stb STATIC ${CMAKE_SOURCE_DIR}/cmake/stb_image.c)
target_include_directories(wml_stb SYSTEM PUBLIC ${WML_STB_HEADERS})
target_compile_definitions(wml_stb PUBLIC STBI_ONLY_JPEG STBI_ONLY_PNG STBI_ONLY_BMP STBI_ONLY_GIF STBI_NO_STDIO
    STBI_NO_LINEAR STBI_NO_HDR)

# PCRE2: patterns of tokenizers. Everything of the library in one archive: 8-bit, Unicode, just-in-time compiler.
if(EXISTS ${WINML_DEPS}/pcre2/src/pcre2.h)
    file(GLOB pcre2_sources ${WINML_DEPS}/pcre2/src/pcre2_*.c)
    add_library(wml_pcre2 STATIC ${pcre2_sources})
    target_include_directories(wml_pcre2 SYSTEM PUBLIC ${WINML_DEPS}/pcre2/src)
    target_compile_definitions(wml_pcre2 PUBLIC PCRE2_STATIC
        PRIVATE HAVE_CONFIG_H PCRE2_CODE_UNIT_WIDTH=8 SUPPORT_UNICODE SUPPORT_JIT)
    target_compile_options(wml_pcre2 PRIVATE -w)
    if(WML_SANITIZE)
        target_compile_options(wml_pcre2 PRIVATE -fno-sanitize=undefined)
    endif()
else()
    find_path(WML_PCRE2_INCLUDE pcre2.h)
    find_library(WML_PCRE2_LIB pcre2-8)
    if(NOT WML_PCRE2_INCLUDE OR NOT WML_PCRE2_LIB)
        message(FATAL_ERROR "PCRE2 not found: run scripts/setup, or install PCRE2 10.45 or newer")
    endif()
    add_library(wml_pcre2 INTERFACE)
    target_include_directories(wml_pcre2 SYSTEM INTERFACE ${WML_PCRE2_INCLUDE})
    target_link_libraries(wml_pcre2 INTERFACE ${WML_PCRE2_LIB})
endif()

# libcurl: its headers only, it is opened at run time. They are copied, since the folder that has them may have the
# system's own headers as well, which a build for another system must not see.
find_path(WML_CURL_HEADERS curl/curl.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include /usr/local/include
    PATH_SUFFIXES x86_64-linux-gnu aarch64-linux-gnu NO_CMAKE_FIND_ROOT_PATH)
if(NOT WML_CURL_HEADERS)
    message(FATAL_ERROR "curl/curl.h not found: run scripts/setup")
endif()
file(COPY ${WML_CURL_HEADERS}/curl DESTINATION ${CMAKE_BINARY_DIR}/include)
add_library(wml_curl_headers INTERFACE)
target_include_directories(wml_curl_headers SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/include)
