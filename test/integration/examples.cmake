# The larger examples as their users see them. Included by test/CMakeLists.txt.
if(NOT WEIR_BUILD_EXAMPLES)
  return()
endif()

# Those that want a server, for the stores that there are.
set(programs)
set(targets)
foreach(program IN ITEMS redis_limiter postgres_transaction nats_owner)
  string(REGEX REPLACE "_.*" "" store ${program})
  if(TARGET weir::${store})
    list(APPEND programs --${store} $<TARGET_FILE:example.${program}>)
    list(APPEND targets example.${program})
  endif()
endforeach()
set(environment "${test_environment}")
if(weir_nats_server)
  list(APPEND environment "WEIR_NATS_SERVER=${weir_nats_server}")
endif()
if(programs)
  add_custom_target(integration.on_servers) # what has to be built for the test of this name
  add_dependencies(integration.on_servers ${targets})
  add_test(NAME integration.on_servers
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/on_servers.py ${programs})
  set_tests_properties(integration.on_servers PROPERTIES
    LABELS integration TIMEOUT 600 ENVIRONMENT "${environment}")
endif()

add_custom_target(integration.prometheus_parser) # what has to be built for the test of this name
add_dependencies(integration.prometheus_parser example.metrics)
add_test(NAME integration.prometheus_parser
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/prometheus_parser.py $<TARGET_FILE:example.metrics>)
set_tests_properties(integration.prometheus_parser PROPERTIES LABELS "integration;everyday" TIMEOUT 300)
add_custom_target(integration.prometheus_server) # what has to be built for the test of this name
add_dependencies(integration.prometheus_server example.metrics)
add_test(NAME integration.prometheus_server
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/prometheus_server.py $<TARGET_FILE:example.metrics>)
set_tests_properties(integration.prometheus_server PROPERTIES LABELS integration TIMEOUT 300)

if(NOT TARGET weir::sqlite)
  message(STATUS "weir: the tests of mail, gateway and outbox are left out: there is no weir::sqlite")
  return()
endif()

add_custom_target(integration.mail) # what has to be built for the test of this name
add_dependencies(integration.mail example.sqlite_mail)
add_test(NAME integration.mail
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/mail.py $<TARGET_FILE:example.sqlite_mail>)
set_tests_properties(integration.mail PROPERTIES LABELS integration TIMEOUT 600 ENVIRONMENT "${test_environment}")

foreach(program IN ITEMS gateway outbox)
  set(arguments)
  if(program STREQUAL "gateway" AND TARGET weir::redis)
    set(arguments --redis)
  endif()
  add_custom_target(integration.${program}) # what has to be built for the test of this name
  add_dependencies(integration.${program} ${program})
  add_test(NAME integration.${program}
    COMMAND Python3::Interpreter
      ${CMAKE_CURRENT_LIST_DIR}/${program}.py $<TARGET_FILE:${program}> ${arguments})
  set_tests_properties(integration.${program} PROPERTIES
    LABELS integration TIMEOUT 600 ENVIRONMENT "${test_environment}")
endforeach()
