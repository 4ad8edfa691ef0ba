# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

# Does what vcpkg does with a port, where there is no vcpkg.
#
# usage: cmake -D PORT_FOLDER=... -D VERSION=... -D WORK=... -D BOOST=... -D CXX=... -P vcpkg.cmake
#
# What its functions are to do is done in their place; the package is in WORK/package then.

set(PORT weir)
set(CURRENT_PACKAGES_DIR "${WORK}/package")

function(vcpkg_download_distfile out)
  cmake_parse_arguments(arg "" "URLS;FILENAME;SHA512" "" ${ARGN})
  file(DOWNLOAD "${arg_URLS}" "${WORK}/${arg_FILENAME}" EXPECTED_HASH "SHA512=${arg_SHA512}")
  set(${out} "${WORK}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
  cmake_parse_arguments(arg "" "ARCHIVE" "" ${ARGN})
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/source")
  file(GLOB folder "${WORK}/source/*")
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -G Ninja ${arg_OPTIONS}
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" "-DCMAKE_PREFIX_PATH=${BOOST}" "-DCMAKE_CXX_COMPILER=${CXX}"
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --install "${WORK}/build" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The files come to share/PORT: one folder less is between them and the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(arg "" "CONFIG_PATH" "" ${ARGN})
  set(to "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${to}")
  file(READ "${to}/weirTargets.cmake" targets)
  set(up [[get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)]])
  string(FIND "${targets}" "${up}\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "weirTargets.cmake does not look for its prefix")
  endif()
  string(LENGTH "${up}\n" length)
  math(EXPR behind "${at} + ${length}")
  string(SUBSTRING "${targets}" 0 ${at} before)
  string(SUBSTRING "${targets}" ${behind} -1 after)
  file(WRITE "${to}/weirTargets.cmake" "${before}${after}")
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "FILE_LIST" "" ${ARGN})
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${PORT_FOLDER}/portfile.cmake")
