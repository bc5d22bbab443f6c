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

# stb_image (Debian: libstb-dev): its inflate reads compressed .npz members.
find_path(WML_STB_INCLUDE stb_image.h PATH_SUFFIXES stb NO_CMAKE_FIND_ROOT_PATH)
if(NOT WML_STB_INCLUDE)
    message(FATAL_ERROR "stb_image.h not found: run scripts/setup, or install libstb-dev")
endif()
add_library(wml_stb INTERFACE)
target_include_directories(wml_stb SYSTEM INTERFACE ${WML_STB_INCLUDE})

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
