# docs/alerts.yml: each alert once, by Prometheus' own rules. Included by test/CMakeLists.txt.
if(WEIR_SANITIZE) # half a minute of what other tests do, too
  return()
endif()
add_executable(integration.prometheus_alerts ${CMAKE_CURRENT_LIST_DIR}/alerts/states.cpp)
weir_link(integration.prometheus_alerts)
add_test(NAME integration.prometheus_alerts
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/alerts/prometheus_alerts.py
    $<TARGET_FILE:integration.prometheus_alerts>)
set_tests_properties(integration.prometheus_alerts PROPERTIES LABELS integration TIMEOUT 300)
