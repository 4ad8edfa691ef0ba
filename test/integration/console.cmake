# weirctl: its tests, and the program that fills stores for it. Included by test/CMakeLists.txt.
if(NOT TARGET weirctl_fill AND WEIR_BUILD_EXAMPLES)
  find_package(CLI11 QUIET)
  if(CLI11_FOUND) # example/ says it where it is not
    add_executable(weirctl_fill ${CMAKE_CURRENT_LIST_DIR}/console/fill.cpp)
    weir_link(weirctl_fill)
    set(stores)
    foreach(store IN ITEMS sqlite redis postgres nats)
      if(TARGET weir::${store})
        string(TOUPPER ${store} name)
        weir_link(weirctl_fill ${store})
        target_compile_definitions(weirctl_fill PRIVATE CONSOLE_WITH_${name})
        list(APPEND stores ${store})
      endif()
    endforeach()
    list(JOIN stores "," stores)

    set(environment "${test_environment}")
    if(weir_nats_server)
      list(APPEND environment "WEIR_NATS_SERVER=${weir_nats_server}")
    endif()
    set(console_tests weirctl)
    if(NOT WEIR_SANITIZE) # what it would add there, unit.console does
      list(APPEND console_tests console_page)
    endif()
    foreach(name IN LISTS console_tests)
      add_custom_target(integration.${name}) # what has to be built for the test of this name
      add_dependencies(integration.${name} weirctl weirctl_fill)
      add_test(NAME integration.${name}
        COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/${name}.py $<TARGET_FILE:weirctl>
          $<TARGET_FILE:weirctl_fill> --stores "${stores}")
      set_tests_properties(integration.${name} PROPERTIES
        LABELS integration TIMEOUT 600 ENVIRONMENT "${environment}")
    endforeach()
    if(TEST integration.console_page)
      set_tests_properties(integration.console_page PROPERTIES TIMEOUT 1500)
    endif()
  endif()
endif()
