# What `cmake --install` puts where. Every path in what is installed is relative to where it lies,
# so the tree may be moved, and DESTDIR and --prefix work.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(LUMA_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/luma)
set(LUMA_PCDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/lumaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/lumaConfig.cmake
  INSTALL_DESTINATION ${LUMA_CMAKEDIR}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lumaConfigVersion.cmake
  COMPATIBILITY ${LUMA_COMPATIBILITY})

file(RELATIVE_PATH LUMA_PREFIX_FROM_PC
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" LUMA_PREFIX_FROM_PC ${LUMA_PREFIX_FROM_PC})
file(RELATIVE_PATH LUMA_LIBDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH LUMA_INCLUDEDIR_FROM_PREFIX
     ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
list(TRANSFORM LUMA_STATIC_LIBRARIES PREPEND -l OUTPUT_VARIABLE LUMA_PC_STATIC_LIBRARIES)
list(JOIN LUMA_PC_STATIC_LIBRARIES " " LUMA_PC_STATIC_LIBRARIES)
configure_file(cmake/luma.pc.in ${CMAKE_CURRENT_BINARY_DIR}/luma.pc @ONLY)

install(FILES include/luma.h include/luma.hpp TYPE INCLUDE)
install(FILES ${LUMA_LIBDIR}/${LUMA_SHARED_FILE} ${LUMA_LIBDIR}/${LUMA_SONAME}
              ${LUMA_LIBDIR}/libluma.so ${LUMA_LIBDIR}/libluma.a TYPE LIB)
if(LUMA_TOOLS)
  install(PROGRAMS ${LUMA_CARGO_OUT}/luma TYPE BIN)
  install(FILES ${LUMA_CARGO_OUT}/libluma_interpose.so TYPE LIB)
endif()
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lumaConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/lumaConfigVersion.cmake cmake/lumaTargets.cmake
        DESTINATION ${LUMA_CMAKEDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/luma.pc DESTINATION ${LUMA_PCDIR})
