# The stores on an engine: each is a target of its own, weir::<store>, which links weir::weir and the engine's client
# library, and exists only where that library is found. weir's own build and the installed package make them here, in the
# project that uses them, from what is there.
#
# weir::console is what weir/console.hpp needs, which is nothing more than weir::weir.
#
# weir::opentelemetry is what weir/observe/opentelemetry.hpp needs, in the same way: OpenTelemetry's API.
#
# And what of weir need not be compiled with each file that includes it: weir::compiled, weir::compiled_console and
# weir::compiled_<store> are static libraries of it, compiled in that project, with its options, if something links them.
# Whoever links one of them has WEIR_SEPARATE_COMPILATION defined, and needs that of each part that is used.
#
# Takes weir_FIND_COMPONENTS: looks for what these need, or, where there are none, for everything.
# Sets weir_<component>_missing: what is needed and was not found.

set(weir_wanted ${weir_FIND_COMPONENTS})
if(NOT weir_wanted)
  set(weir_wanted sqlite redis postgres nats opentelemetry)
endif()

# Makes weir::NAME of HEADER, which links LIBRARIES.
function(weir_add_compiled name header) # LIBRARIES...
  set(source "${CMAKE_CURRENT_BINARY_DIR}/weir_${name}.cpp")
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  add_library(weir_${name} STATIC EXCLUDE_FROM_ALL ${source})
  add_library(weir::${name} ALIAS weir_${name})
  set_target_properties(weir_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  target_compile_definitions(weir_${name} PUBLIC WEIR_SEPARATE_COMPILATION)
  target_link_libraries(weir_${name} PUBLIC ${ARGN})
endfunction()

# Makes weir::PART of headers, which links LIBRARIES. Imported, as weir::weir of an installation is: a library that links
# it can be exported.
function(weir_add_headers part) # LIBRARIES...
  add_library(weir::${part} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(weir::${part} INTERFACE weir::weir ${ARGN})
endfunction()

# Makes weir::PART, which links LIBRARIES, and weir::compiled_PART of the header FOLDER/src.hpp.
function(weir_add_part part folder) # LIBRARIES...
  weir_add_headers(${part} ${ARGN})
  weir_add_compiled(compiled_${part} ${folder}/src.hpp weir::compiled weir::${part})
endfunction()

# Makes weir::STORE and weir::compiled_STORE.
function(weir_add_store store) # LIBRARIES...
  weir_add_part(${store} weir/store/${store} ${ARGN})
endfunction()

if(NOT TARGET weir::compiled)
  weir_add_compiled(compiled weir/src.hpp weir::weir)
  weir_add_part(console weir/console)
endif()

if("sqlite" IN_LIST weir_wanted AND NOT TARGET weir::sqlite)
  find_package(SQLite3 3.37 QUIET) # the first with STRICT tables
  if(SQLite3_FOUND)
    weir_add_store(sqlite SQLite::SQLite3)
  else()
    set(weir_sqlite_missing "SQLite 3.37 or later (SQLite3)")
  endif()
endif()

if("redis" IN_LIST weir_wanted AND NOT TARGET weir::redis)
  find_package(OpenSSL QUIET COMPONENTS SSL Crypto)
  if(OpenSSL_FOUND)
    weir_add_store(redis OpenSSL::SSL OpenSSL::Crypto)
  else()
    set(weir_redis_missing "OpenSSL (OpenSSL)")
  endif()
endif()

if("postgres" IN_LIST weir_wanted AND NOT TARGET weir::postgres)
  find_package(PostgreSQL 14 QUIET) # libpq, the first with pipelines
  if(PostgreSQL_FOUND)
    weir_add_store(postgres PostgreSQL::PostgreSQL)
  else()
    set(weir_postgres_missing "libpq 14 or later (PostgreSQL)")
  endif()
endif()

if("nats" IN_LIST weir_wanted AND NOT TARGET weir::nats)
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
  find_package(cnats 3.4 QUIET MODULE)
  list(POP_FRONT CMAKE_MODULE_PATH)
  if(cnats_FOUND)
    weir_add_store(nats cnats::nats)
  else()
    set(weir_nats_missing "the NATS C client 3.4 or later (cnats)")
  endif()
endif()

if("opentelemetry" IN_LIST weir_wanted AND NOT TARGET weir::opentelemetry)
  # Its own package file brings gRPC and protobuf with it: for who asks for it by name only.
  if("opentelemetry" IN_LIST weir_FIND_COMPONENTS AND NOT TARGET opentelemetry-cpp::api
      AND NOT TARGET opentelemetry-cpp::opentelemetry-cpp)
    find_package(opentelemetry-cpp 1.19 QUIET CONFIG)
  endif()
  if(NOT TARGET opentelemetry-cpp::api AND NOT TARGET opentelemetry-cpp::opentelemetry-cpp)
    list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
    find_package(OpenTelemetryApi 1.19 QUIET MODULE)
    list(POP_FRONT CMAKE_MODULE_PATH)
  endif()
  set(weir_otel opentelemetry-cpp::api)
  if(NOT TARGET ${weir_otel})
    set(weir_otel opentelemetry-cpp::opentelemetry-cpp) # Conan's, which has no other
  endif()
  if(TARGET ${weir_otel})
    weir_add_headers(opentelemetry ${weir_otel})
  else()
    set(weir_opentelemetry_missing "OpenTelemetry's C++ API 1.19 or later (opentelemetry-cpp)")
  endif()
  unset(weir_otel)
endif()

unset(weir_wanted)
