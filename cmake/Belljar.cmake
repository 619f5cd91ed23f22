# Build rules shared by every directory: one static library and one test program per directory of src/.

add_library(belljar_options INTERFACE)
# For quoted includes only: src/linux and src/net must not stand in for <linux/…> and <net/…>.
target_compile_options(belljar_options INTERFACE "SHELL:-iquote ${CMAKE_SOURCE_DIR}/src")
target_compile_options(belljar_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough
  -Werror -fno-strict-aliasing -ffunction-sections -fdata-sections -fstack-protector-strong)
if(CMAKE_UNITY_BUILD)
  # The presets compile sources in batches, a third of the time that each by itself takes. A local name may be that of a
  # constant of the source before it: with -DCMAKE_UNITY_BUILD=OFF the compiler looks for hidden names too.
  target_compile_options(belljar_options INTERFACE -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # nor is a source that another one includes a header
endif()
target_link_options(belljar_options INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(belljar_options INTERFACE _FORTIFY_SOURCE=2)
endif()

# For sources of tests: half of what a clean build compiles, and compiled in half the time. The option for a definition
# that needs an optimising compiler comes after the definition.
add_library(belljar_test_options INTERFACE)
target_compile_options(belljar_test_options INTERFACE -O0 -U_FORTIFY_SOURCE)

option(BELLJAR_SANITIZE "The flags hold sanitizers; belljar-guest is built without them" OFF)

find_program(BELLJAR_MOLD mold)
if(BELLJAR_MOLD)
  target_link_options(belljar_options INTERFACE -fuse-ld=mold)
endif()
find_program(BELLJAR_CCACHE ccache)
if(BELLJAR_CCACHE)
  # What it asks for where headers are precompiled; the sources have no __TIME__.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${BELLJAR_CCACHE})
endif()

# belljar_test_headers(NAME OWNER): precompiles for the program NAME what nearly every test includes: a third of what tests
# take to compile. OWNER, a program with the same options, does it for the others; the first one is its own.
function(belljar_test_headers name owner)
  if(name STREQUAL owner)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <algorithm> <array>
      <chrono> <filesystem> <fstream> <functional> <map> <sstream> <string> <thread> <vector>)
    # Or ccache would never see the same one twice.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  else()
    target_precompile_headers(${name} REUSE_FROM ${owner})
  endif()
endfunction()

# belljar_library(NAME SOURCES a.cc b.cc DEPS belljar_base ... TESTS a_test.cc ... ALONE a_test.cc ... TEST_DEPS ...)
# Makes the static library belljar_NAME and, with tests, the program NAME_test whose cases ctest discovers.
# ALONE: tests that keep a translation unit of their own where sources are compiled together, since
# their helpers have the names of another test's.
function(belljar_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS;ALONE;TEST_DEPS" ${ARGN})
  add_library(belljar_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(belljar_${name} PUBLIC belljar_options ${ARG_DEPS})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE absolute)
  set_property(GLOBAL PROPERTY belljar_${name}_sources ${absolute})
  if(BELLJAR_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_link_libraries(${name}_test PRIVATE belljar_${name} belljar_test_options ${ARG_TEST_DEPS}
      GTest::gtest_main GTest::gmock)
    belljar_test_headers(${name}_test base_test)
    gtest_discover_tests(${name}_test PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# belljar_bubblewraps_test(NAME FILTER): cases of a program once more, each with the bubblewrap of other suites of Debian's.
# ./dev fetches these; it leaves out the cases of one that is not to be had, by the label, and says so.
set(BELLJAR_OTHER_SUITES trixie sid)
function(belljar_bubblewraps_test name filter)
  foreach(suite IN LISTS BELLJAR_OTHER_SUITES)
    gtest_discover_tests(${name} TEST_PREFIX Bwrap-${suite}. TEST_LIST ${name}_by_${suite} TEST_FILTER "${filter}"
      PROPERTIES LABELS bubblewrap-of-${suite} ENVIRONMENT BELLJAR_TEST_MODE=bwrap-${suite} DISCOVERY_TIMEOUT 60)
  endforeach()
endfunction()
