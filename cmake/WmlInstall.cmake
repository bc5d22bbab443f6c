# What winml needs to run: the program, ONNX Runtime where the program looks first, completion, licences.
if(WIN32 AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(WML_ORT_RUNTIME ${WINML_DEPS}/ort/win-arm64/onnxruntime.dll)
elseif(WIN32)
    set(WML_ORT_RUNTIME ${WINML_DEPS}/ort/win-x64/onnxruntime.dll)
else()
    find_file(WML_ORT_RUNTIME libonnxruntime.so
        HINTS $ENV{ONNXRUNTIME_ROOT}/lib $ENV{ONNXRUNTIME_ROOT} ${WINML_DEPS}/ort/linux-x64
        PATHS /usr/local/lib /usr/lib PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE})
endif()
if(EXISTS ${WML_ORT_RUNTIME})
    get_filename_component(runtime ${WML_ORT_RUNTIME} REALPATH) # not the link that a system has
    get_filename_component(name ${WML_ORT_RUNTIME} NAME)
    if(WIN32)
        install(FILES ${runtime} DESTINATION bin)
    else()
        install(FILES ${runtime} DESTINATION lib/winml RENAME ${name})
    endif()
else()
    install(CODE "message(STATUS \"No ONNX Runtime installed: winml takes the one that its system loader finds\")")
endif()

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/winml/licenses RENAME winml.txt)
install(FILES ${WINML_DEPS}/ort/LICENSE DESTINATION share/winml/licenses RENAME onnxruntime.txt OPTIONAL)
install(FILES ${WINML_DEPS}/ort/ThirdPartyNotices.txt DESTINATION share/winml/licenses
    RENAME onnxruntime-third-party.txt OPTIONAL)
install(FILES ${WINML_DEPS}/pcre2/LICENCE.md DESTINATION share/winml/licenses RENAME pcre2.txt OPTIONAL)
install(FILES ${WINML_DEPS}/pcre2/deps/sljit/LICENSE DESTINATION share/winml/licenses RENAME sljit.txt OPTIONAL)
install(FILES ${WINML_DEPS}/yyjson/LICENSE DESTINATION share/winml/licenses RENAME yyjson.txt OPTIONAL)

if(NOT CMAKE_CROSSCOMPILING)
    install(CODE "
        set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
        foreach(pair bash:share/bash-completion/completions/winml zsh:share/zsh/site-functions/_winml
                     fish:share/fish/vendor_completions.d/winml.fish)
            string(REPLACE \":\" \";\" pair \${pair})
            list(GET pair 0 shell)
            list(GET pair 1 file)
            get_filename_component(dir \"\${prefix}/\${file}\" DIRECTORY)
            file(MAKE_DIRECTORY \"\${dir}\")
            message(STATUS \"Installing: \${prefix}/\${file}\")
            execute_process(COMMAND \"\${prefix}/bin/winml\" completion \${shell} OUTPUT_FILE \"\${prefix}/\${file}\")
        endforeach()")
endif()
