# vitrove_part(NAME LINK ... PRIVATE ...): one part of the house is one folder and one static
# library vitrove_NAME. Arrows between parts run one way (design section 2); LINK names the parts
# and libraries that its headers need, PRIVATE those that only its sources need.
function(vitrove_part name)
  cmake_parse_arguments(PART "" "" "LINK;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
  if(NOT sources)  # a part whose first file is still to come
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp" "")
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp")
  endif()
  add_library(vitrove_${name} STATIC ${sources})
  set_target_properties(vitrove_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(vitrove_${name}
    PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(vitrove_${name} PUBLIC ${PART_LINK}
                        PRIVATE "$<BUILD_INTERFACE:vitrove_options>" ${PART_PRIVATE})
endfunction()
