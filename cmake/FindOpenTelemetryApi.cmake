# Finds the headers of OpenTelemetry's C++ API: OpenTelemetryApi_FOUND, OpenTelemetryApi_VERSION, and the target
# opentelemetry-cpp::api, unless the project has one. Not by the package file that they bring: that asks for all that the
# SDK was built with (gRPC, Protobuf), and a library which makes spans needs none of it.
find_path(OpenTelemetryApi_INCLUDE_DIR opentelemetry/trace/tracer.h)
mark_as_advanced(OpenTelemetryApi_INCLUDE_DIR)

set(OpenTelemetryApi_VERSION)
set(OpenTelemetryApi_needed OpenTelemetryApi_INCLUDE_DIR)
set(OpenTelemetryApi_definitions)
if(OpenTelemetryApi_INCLUDE_DIR)
  file(STRINGS "${OpenTelemetryApi_INCLUDE_DIR}/opentelemetry/version.h" OpenTelemetryApi_line
    REGEX "#define OPENTELEMETRY_VERSION \"")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" OpenTelemetryApi_VERSION "${OpenTelemetryApi_line}")
  unset(OpenTelemetryApi_line)

  # An SDK that was built with Abseil has types of it in its interface. The file for pkg-config says so.
  file(GLOB OpenTelemetryApi_files
    "${OpenTelemetryApi_INCLUDE_DIR}/../lib*/pkgconfig/opentelemetry_api.pc"
    "${OpenTelemetryApi_INCLUDE_DIR}/../lib*/*/pkgconfig/opentelemetry_api.pc")
  foreach(file IN LISTS OpenTelemetryApi_files)
    file(STRINGS "${file}" OpenTelemetryApi_flags REGEX "^Cflags:")
    string(REGEX MATCHALL "-D[A-Z_]+=?[A-Za-z0-9]*" OpenTelemetryApi_definitions "${OpenTelemetryApi_flags}")
    unset(OpenTelemetryApi_flags)
  endforeach()
  unset(OpenTelemetryApi_files)
  if("-DHAVE_ABSEIL" IN_LIST OpenTelemetryApi_definitions)
    find_path(OpenTelemetryApi_ABSEIL_INCLUDE_DIR absl/types/variant.h)
    find_library(OpenTelemetryApi_ABSEIL_LIBRARY absl_bad_variant_access)
    mark_as_advanced(OpenTelemetryApi_ABSEIL_INCLUDE_DIR OpenTelemetryApi_ABSEIL_LIBRARY)
    list(APPEND OpenTelemetryApi_needed OpenTelemetryApi_ABSEIL_INCLUDE_DIR OpenTelemetryApi_ABSEIL_LIBRARY)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenTelemetryApi
  REQUIRED_VARS ${OpenTelemetryApi_needed} VERSION_VAR OpenTelemetryApi_VERSION)
unset(OpenTelemetryApi_needed)

if(OpenTelemetryApi_FOUND AND NOT TARGET opentelemetry-cpp::api)
  add_library(opentelemetry-cpp::api INTERFACE IMPORTED)
  target_include_directories(opentelemetry-cpp::api SYSTEM INTERFACE "${OpenTelemetryApi_INCLUDE_DIR}")
  target_compile_options(opentelemetry-cpp::api INTERFACE ${OpenTelemetryApi_definitions})
  if("-DHAVE_ABSEIL" IN_LIST OpenTelemetryApi_definitions)
    target_include_directories(opentelemetry-cpp::api SYSTEM INTERFACE "${OpenTelemetryApi_ABSEIL_INCLUDE_DIR}")
    target_link_libraries(opentelemetry-cpp::api INTERFACE "${OpenTelemetryApi_ABSEIL_LIBRARY}")
  endif()
endif()
unset(OpenTelemetryApi_definitions)
