# Traces as a receiver of OTLP gets them. Included by test/CMakeLists.txt.
if(NOT TARGET weir_opentelemetry_sdk OR NOT TARGET weir::sqlite)
  message(STATUS "weir: the tests of traces are left out: there is no OpenTelemetry SDK, or no weir::sqlite")
  return()
endif()
if(WEIR_SANITIZE) # which the SDK is not built with
  message(STATUS "weir: the tests of traces are left out: OpenTelemetry's SDK has no sanitizer")
  return()
endif()

add_executable(traces_scenarios ${CMAKE_CURRENT_LIST_DIR}/traces/scenarios.cpp)
target_link_libraries(traces_scenarios PRIVATE weir_opentelemetry_sdk)
weir_link(traces_scenarios sqlite)
add_custom_target(integration.traces) # what has to be built for the test of this name
add_dependencies(integration.traces traces_scenarios)
set(programs --scenarios $<TARGET_FILE:traces_scenarios>)
if(WEIR_BUILD_EXAMPLES)
  add_dependencies(integration.traces example.tracing)
  list(APPEND programs --example $<TARGET_FILE:example.tracing>)
endif()
add_test(NAME integration.traces
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/traces/traces.py ${programs})
set_tests_properties(integration.traces PROPERTIES LABELS "integration;everyday" TIMEOUT 300)
