# vitrove::vitrove: one static library out of the core parts, with headers and a CMake package.
set(objects)
foreach(part IN LISTS VITROVE_CORE_PARTS)
  list(APPEND objects "$<TARGET_OBJECTS:vitrove_${part}>")
endforeach()
add_library(vitrove STATIC ${objects})
add_library(vitrove::vitrove ALIAS vitrove)
target_compile_features(vitrove PUBLIC cxx_std_20)
set_target_properties(vitrove PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(vitrove PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(vitrove PUBLIC Threads::Threads ${CMAKE_DL_LIBS}
  PRIVATE OpenSSL::SSL OpenSSL::Crypto spdlog::spdlog JPEG::JPEG CURL::libcurl ZLIB::ZLIB
  GIF::GIF TIFF::TIFF "$<BUILD_INTERFACE:PkgConfig::SPNG>" "$<BUILD_INTERFACE:PkgConfig::WEBP>"
  "$<BUILD_INTERFACE:PkgConfig::FFMPEG>")
if(VITROVE_SANITIZE)
  target_link_options(vitrove PUBLIC "$<BUILD_INTERFACE:-fsanitize=${VITROVE_SANITIZE}>")
endif()

# vitrove::gloo beside it, a component of the package that is there when it was built with Gloo:
# whoever does without links nothing of it.
if(TARGET vitrove_gloo)
  add_library(vitrove_gloo_package STATIC "$<TARGET_OBJECTS:vitrove_gloo>")
  add_library(vitrove::gloo ALIAS vitrove_gloo_package)
  set_target_properties(vitrove_gloo_package PROPERTIES
    LINKER_LANGUAGE CXX EXPORT_NAME gloo OUTPUT_NAME vitrove_gloo)
  target_link_libraries(vitrove_gloo_package PUBLIC vitrove
                        PRIVATE "$<BUILD_INTERFACE:${GLOO_LIBRARY}>")
  install(TARGETS vitrove_gloo_package EXPORT vitroveGlooTargets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT vitroveGlooTargets NAMESPACE vitrove::
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/vitrove")
else()
  set(headers_left_out PATTERN gloo_collectives.h EXCLUDE)
endif()

include(CMakePackageConfigHelpers)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/vitroveConfig.cmake.in" "${PROJECT_BINARY_DIR}/vitroveConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/vitrove")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/vitroveConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(TARGETS vitrove EXPORT vitroveTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/vitrove"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${headers_left_out})
install(EXPORT vitroveTargets NAMESPACE vitrove::
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/vitrove")
install(FILES "${PROJECT_BINARY_DIR}/vitroveConfig.cmake"
              "${PROJECT_BINARY_DIR}/vitroveConfigVersion.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/vitrove")
install(TARGETS vitrove_mooncake_helper
        RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/vitrove")
if(TARGET vitrove_cli)
  install(TARGETS vitrove_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
