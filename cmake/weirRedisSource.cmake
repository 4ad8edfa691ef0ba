# Boost.Redis has to be compiled, once: in a library of its own, for whoever links weir::redis. It is
# made in the project that uses it, and compiled as that project is.
if(NOT TARGET weir_redis_source)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/weir_redis.cpp"
    CONTENT "#include \"weir/store/redis/src.hpp\"\n")
  add_library(weir_redis_source STATIC EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/weir_redis.cpp")
  target_link_libraries(weir_redis_source PUBLIC weir::weir OpenSSL::SSL OpenSSL::Crypto)
endif()
