# Windows arm64 by zig cc.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(WML_ZIG_TARGET aarch64-windows-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
