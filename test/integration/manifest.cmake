# The main job: its tests that need more than a source file. Included by test/CMakeLists.txt.
if(NOT WEIR_BUILD_EXAMPLES)
  return()
endif()

# A unit test like the others, but for OpenSSL.
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
add_executable(unit.manifest_digest ${CMAKE_CURRENT_LIST_DIR}/../unit/manifest/digest.cpp)
target_link_libraries(unit.manifest_digest PRIVATE weir_test_main OpenSSL::Crypto)
target_precompile_headers(unit.manifest_digest REUSE_FROM weir_test_precompiled)
add_test(NAME unit.manifest_digest
  COMMAND unit.manifest_digest --log_level=test_suite --color_output=no)
set_tests_properties(unit.manifest_digest PROPERTIES
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
    LABELS integration TIMEOUT 600 COST 100 ENVIRONMENT "${environment}") # long: begins first
endif()
