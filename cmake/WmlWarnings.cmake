# Warnings of the house; every one is an error. -Wconversion holds where bytes become numbers.
set(WML_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
    -Wcast-qual -Wpointer-arith -Wformat=2 -Wvla -Wundef -Wimplicit-fallthrough -Werror)
set(WML_CONVERSION_FOLDERS base onnx weights text task)

if(WML_SANITIZE)
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
    if(NOT WIN32)
        # ORT is C++ and comes by dlopen: the sanitizer finds __cxa_throw only when libstdc++ is there first.
        add_link_options(-Wl,--no-as-needed -lstdc++ -Wl,--as-needed)
    endif()
elseif(WML_TSAN)
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
endif()
if(WML_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
