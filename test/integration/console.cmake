# weirctl: its test, and the program that fills stores for it. Included by test/CMakeLists.txt.
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

    add_custom_target(integration.weirctl) # what has to be built for the test of this name
    add_dependencies(integration.weirctl weirctl weirctl_fill)
    add_test(NAME integration.weirctl
      COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/weirctl.py $<TARGET_FILE:weirctl>
        $<TARGET_FILE:weirctl_fill> --stores "${stores}")
    set(environment "${test_environment}")
    if(weir_nats_server)
      list(APPEND environment "WEIR_NATS_SERVER=${weir_nats_server}")
    endif()
    set_tests_properties(integration.weirctl PROPERTIES
      LABELS integration TIMEOUT 600 COST 50 ENVIRONMENT "${environment}")
  endif()
endif()
