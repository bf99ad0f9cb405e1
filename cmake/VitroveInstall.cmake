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

include(CMakePackageConfigHelpers)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/vitroveConfig.cmake.in" "${PROJECT_BINARY_DIR}/vitroveConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/vitrove")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/vitroveConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(TARGETS vitrove EXPORT vitroveTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/vitrove"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
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
