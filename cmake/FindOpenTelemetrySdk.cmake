# Finds OpenTelemetry's SDK with its exporters by HTTP, for weir's own tests and examples: OpenTelemetrySdk_FOUND, and the
# target weir_opentelemetry_sdk. By its libraries, since its package file asks for more than these need: see
# FindOpenTelemetryApi.cmake.
set(OpenTelemetrySdk_needed)
foreach(name IN ITEMS trace metrics logs resources common exporter_otlp_http exporter_otlp_http_metric
    exporter_otlp_http_client otlp_recordable proto http_client_curl)
  # A static one would want protobuf and curl named, too.
  find_library(OpenTelemetrySdk_${name}_LIBRARY
    "${CMAKE_SHARED_LIBRARY_PREFIX}opentelemetry_${name}${CMAKE_SHARED_LIBRARY_SUFFIX}")
  mark_as_advanced(OpenTelemetrySdk_${name}_LIBRARY)
  list(APPEND OpenTelemetrySdk_needed OpenTelemetrySdk_${name}_LIBRARY)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenTelemetrySdk REQUIRED_VARS ${OpenTelemetrySdk_needed})

if(OpenTelemetrySdk_FOUND AND NOT TARGET weir_opentelemetry_sdk)
  add_library(weir_opentelemetry_sdk INTERFACE)
  target_link_libraries(weir_opentelemetry_sdk INTERFACE weir::opentelemetry)
  foreach(library IN LISTS OpenTelemetrySdk_needed)
    target_link_libraries(weir_opentelemetry_sdk INTERFACE "${${library}}")
  endforeach()
  # Their own libraries are beside them, where they were fetched.
  cmake_path(GET OpenTelemetrySdk_trace_LIBRARY PARENT_PATH OpenTelemetrySdk_folder)
  target_link_options(weir_opentelemetry_sdk INTERFACE
    "LINKER:--disable-new-dtags,-rpath,${OpenTelemetrySdk_folder},-rpath-link,${OpenTelemetrySdk_folder}")
  unset(OpenTelemetrySdk_folder)
endif()
unset(OpenTelemetrySdk_needed)
