# The larger examples as their users see them. Included by test/CMakeLists.txt.
if(NOT WEIR_BUILD_EXAMPLES OR NOT Python3_FOUND OR NOT TARGET weir::sqlite)
  return()
endif()

foreach(program IN ITEMS gateway outbox)
  add_custom_target(integration.${program}) # what has to be built for the test of this name
  add_dependencies(integration.${program} ${program})
  add_test(NAME integration.${program}
    COMMAND Python3::Interpreter
      ${CMAKE_CURRENT_LIST_DIR}/${program}.py $<TARGET_FILE:${program}>
      $<$<AND:$<STREQUAL:${program},gateway>,$<TARGET_EXISTS:weir::redis>>:--redis>
    COMMAND_EXPAND_LISTS)
  set_tests_properties(integration.${program} PROPERTIES
    LABELS integration TIMEOUT 600 ENVIRONMENT "${test_environment}")
endforeach()
