# `cmake --install`: headers, libraries, and the files by which CMake and pkg-config find them.
include(CMakePackageConfigHelpers)
set(locant_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/locant)
# Paths from the place of a .pc file itself: an installed tree can be moved.
file(RELATIVE_PATH locant_prefix_from_pc
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

# install_library(TARGET EXPORT PC NEEDS DESCRIPTION): a component, in files of its own, so that who does
# not ask for it need not have what it needs.
function(install_library target export pc_name pc_needs pc_description)
  install(TARGETS ${target} EXPORT ${export} FILE_SET HEADERS)
  install(EXPORT ${export} NAMESPACE locant:: DESTINATION ${locant_cmake_dir})
  set(pc_library ${target})
  if(BUILD_SHARED_LIBS)
    set(pc_cflags " -DLOCANT_SHARED")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/locant.pc.in ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

if(BUILD_SHARED_LIBS)
  set(locant_pc_needs "Requires.private: libhwy")
else()
  set(locant_pc_needs "Requires: libhwy")  # a static library brings nothing along
endif()
install_library(locant locant-targets locant "${locant_pc_needs}" "${PROJECT_DESCRIPTION}")
if(TARGET locant_models)
  install_library(locant_models locant-models-targets locant-models "Requires: locant"
    "Hugging Face's checkpoints, run by locant")
endif()
if(TARGET locant_text)
  install_library(locant_text locant-text-targets locant-text
    "Requires: locant-models sentencepiece libutf8proc" "Tokenizers of checkpoints")
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/locant-config.cmake.in ${PROJECT_BINARY_DIR}/locant-config.cmake
  INSTALL_DESTINATION ${locant_cmake_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change interfaces, so 0.2 does not serve a request for 0.1.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/locant-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/locant-config.cmake ${PROJECT_BINARY_DIR}/locant-config-version.cmake
  DESTINATION ${locant_cmake_dir})

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
