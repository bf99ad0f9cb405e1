# Everything that is not the cache itself comes from libraries; Debian 12 ships them all but ONNX
# Runtime, whose headers scripts/setup.sh fetches and whose library is opened at run time.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(SPNG REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(FFMPEG REQUIRED IMPORTED_TARGET libavformat>=59.27 libavcodec>=59.37
                  libavutil>=57.28 libswscale>=6.7)
find_package(GIF 5.1 REQUIRED)
find_package(TIFF 4.5 REQUIRED)
find_package(CURL REQUIRED)
find_package(ZLIB REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

if(VITROVE_BUILD_SERVER)
  find_package(Boost 1.75 REQUIRED)  # the first with Boost.JSON
  find_package(prometheus-cpp REQUIRED CONFIG)
  find_package(CLI11 REQUIRED)
  pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
endif()

# Only for ranks that talk over Gloo; a library of its own, left out where there is none.
find_path(GLOO_INCLUDE_DIR gloo/rendezvous/context.h)
find_library(GLOO_LIBRARY gloo)
if(GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  set(VITROVE_WITH_GLOO ON)
endif()

find_path(ONNXRUNTIME_INCLUDE_DIR onnxruntime_c_api.h
          HINTS "${VITROVE_DEPS_DIR}/onnxruntime/include" PATH_SUFFIXES onnxruntime
          onnxruntime/core/session)
if(NOT ONNXRUNTIME_INCLUDE_DIR)
  message(FATAL_ERROR "ONNX Runtime headers not found: run scripts/setup.sh build")
endif()

if(VITROVE_BUILD_TESTS OR VITROVE_FUZZ)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(VITROVE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
