# The main job: its tests that need more than a source file. Included by test/CMakeLists.txt.
if(NOT WEIR_BUILD_EXAMPLES)
  return()
endif()
find_package(CLI11 QUIET)
find_package(OpenSSL QUIET COMPONENTS Crypto)
if(NOT CLI11_FOUND OR NOT OpenSSL_FOUND) # example/ says so
  return()
endif()

# A unit test like the others, but for OpenSSL and CLI11.
add_executable(unit.manifest ${CMAKE_CURRENT_LIST_DIR}/../unit/manifest/manifest.cpp)
target_link_libraries(unit.manifest PRIVATE weir_test_main OpenSSL::Crypto CLI11::CLI11)
weir_link(unit.manifest)
target_precompile_headers(unit.manifest REUSE_FROM weir_test_precompiled)
add_test(NAME unit.manifest COMMAND unit.manifest --log_level=test_suite --color_output=no)
set_tests_properties(unit.manifest PROPERTIES
  LABELS unit TIMEOUT 300 ENVIRONMENT "${test_environment}")

# The program against find and sha256sum.
if(Python3_FOUND)
  add_custom_target(integration.manifest) # what has to be built for the test of this name
  add_dependencies(integration.manifest manifest)
  # The servers for whose stores the program is built; what is left out has been said.
  set(servers)
  foreach(store redis postgres nats)
    if(TARGET weir::${store})
      list(APPEND servers ${store})
    endif()
  endforeach()
  list(JOIN servers "," servers)
  add_test(NAME integration.manifest
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/manifest.py $<TARGET_FILE:manifest>
      --servers "${servers}")
  set(environment "${test_environment}")
  if(weir_nats_server)
    list(APPEND environment "WEIR_NATS_SERVER=${weir_nats_server}")
  endif()
  set_tests_properties(integration.manifest PROPERTIES
    LABELS integration TIMEOUT 600 ENVIRONMENT "${environment}")
endif()
