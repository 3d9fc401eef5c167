# `cmake --install`: headers, library, and the files by which CMake and pkg-config find them.
include(CMakePackageConfigHelpers)
set(locant_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/locant)

install(TARGETS locant EXPORT locant-targets FILE_SET HEADERS)
install(EXPORT locant-targets NAMESPACE locant:: DESTINATION ${locant_cmake_dir})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/locant-config.cmake.in ${PROJECT_BINARY_DIR}/locant-config.cmake
  INSTALL_DESTINATION ${locant_cmake_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change interfaces, so 0.2 does not serve a request for 0.1.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/locant-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/locant-config.cmake ${PROJECT_BINARY_DIR}/locant-config-version.cmake
  DESTINATION ${locant_cmake_dir})

# Paths from the place of the .pc file itself: an installed tree can be moved.
file(RELATIVE_PATH locant_prefix_from_pc
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(BUILD_SHARED_LIBS)
  set(locant_pc_cflags " -DLOCANT_SHARED")
  set(locant_pc_needs "Requires.private: libhwy")
else()
  set(locant_pc_needs "Requires: libhwy")  # a static library brings nothing along
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/locant.pc.in ${PROJECT_BINARY_DIR}/locant.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/locant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
