# The larger examples as their users see them. Included by test/CMakeLists.txt.
if(NOT WEIR_BUILD_EXAMPLES)
  return()
endif()
if(NOT TARGET weir::sqlite)
  message(STATUS "weir: the tests of gateway and outbox are left out: there is no weir::sqlite")
  return()
endif()

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
