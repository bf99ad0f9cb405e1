# What every target is compiled with: an interface target, so that nothing leaks into the
# directories of a project that adds us as a subdirectory.
add_library(vitrove_options INTERFACE)
target_compile_features(vitrove_options INTERFACE cxx_std_20)
target_compile_options(vitrove_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
  -Woverloaded-virtual -Wnull-dereference -Wno-missing-field-initializers
  $<$<BOOL:${VITROVE_WERROR}>:-Werror>
  -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees ghosts in inlined library code (its bugs 105329, 105651).
  target_compile_options(vitrove_options INTERFACE -Wno-restrict -Wno-null-dereference
                         -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized
                         -Wno-dangling-pointer)
  if(CMAKE_UNITY_BUILD)
    # A source is no longer the main file there, so its own types seem to be a header's.
    target_compile_options(vitrove_options INTERFACE -Wno-subobject-linkage)
  endif()
endif()

if(VITROVE_SANITIZE)
  set(flags -fsanitize=${VITROVE_SANITIZE} -fno-omit-frame-pointer -g1)
  if(VITROVE_SANITIZE MATCHES "undefined")
    list(APPEND flags -fno-sanitize-recover=all)
  endif()
  target_compile_options(vitrove_options INTERFACE ${flags} -Wno-tsan)
  target_link_options(vitrove_options INTERFACE ${flags})
endif()
if(VITROVE_FUZZ)
  target_compile_options(vitrove_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                         -fno-sanitize-recover=all -g1)
  target_link_options(vitrove_options INTERFACE -fsanitize=address,undefined)
endif()

find_program(VITROVE_CCACHE ccache)
if(VITROVE_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${VITROVE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${VITROVE_CCACHE}")
endif()
find_program(VITROVE_MOLD mold)
if(VITROVE_MOLD AND PROJECT_IS_TOP_LEVEL)
  add_link_options(-fuse-ld=mold)
endif()
