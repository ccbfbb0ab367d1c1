# The targets luma::luma and luma::luma-static, for the build tree and for installed copies alike.
# Wants LUMA_LIBDIR, LUMA_INCLUDEDIR, LUMA_SHARED_FILE, LUMA_SONAME and LUMA_STATIC_LIBRARIES;
# LUMA_IMPORT_SCOPE is GLOBAL or nothing.
if(NOT TARGET luma::luma)
  add_library(luma::luma SHARED IMPORTED ${LUMA_IMPORT_SCOPE})
  set_target_properties(luma::luma PROPERTIES
    IMPORTED_LOCATION ${LUMA_LIBDIR}/${LUMA_SHARED_FILE}
    IMPORTED_SONAME ${LUMA_SONAME}
    INTERFACE_INCLUDE_DIRECTORIES ${LUMA_INCLUDEDIR})

  add_library(luma::luma-static STATIC IMPORTED ${LUMA_IMPORT_SCOPE})
  set_target_properties(luma::luma-static PROPERTIES
    IMPORTED_LOCATION ${LUMA_LIBDIR}/libluma.a
    INTERFACE_LINK_LIBRARIES "${LUMA_STATIC_LIBRARIES}"
    INTERFACE_INCLUDE_DIRECTORIES ${LUMA_INCLUDEDIR})
endif()
