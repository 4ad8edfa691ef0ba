# Finds the NATS C client: cnats_FOUND, cnats_VERSION, and the target cnats::nats, unless the project has one. By its
# header and library, and not by the package file that it brings: Debian's names files that are not installed.
find_path(cnats_INCLUDE_DIR nats/nats.h)
find_library(cnats_LIBRARY NAMES nats)
mark_as_advanced(cnats_INCLUDE_DIR cnats_LIBRARY)

set(cnats_VERSION)
if(cnats_INCLUDE_DIR AND EXISTS "${cnats_INCLUDE_DIR}/nats/version.h")
  file(STRINGS "${cnats_INCLUDE_DIR}/nats/version.h" cnats_version_line REGEX "#define NATS_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" cnats_VERSION "${cnats_version_line}")
  unset(cnats_version_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cnats
  REQUIRED_VARS cnats_LIBRARY cnats_INCLUDE_DIR VERSION_VAR cnats_VERSION)

if(cnats_FOUND AND NOT TARGET cnats::nats)
  add_library(cnats::nats UNKNOWN IMPORTED)
  set_target_properties(cnats::nats PROPERTIES
    IMPORTED_LOCATION "${cnats_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${cnats_INCLUDE_DIR}")
endif()
