# The shared library as C programs meet it: what it exports and needs, and examples/*.c compiled as strict C99 and run.
# cmake -DLIBRARY=... -DSOURCE=... -DWORK=... -DFLAGS=... -DCC=... -DCXX=... -P capi.cmake
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
function(run out)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}:\n${output}${errors}")
  endif()
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

run(symbols nm -D --defined-only --format=just-symbols ${LIBRARY})
file(READ ${SOURCE}/tests/capi_symbols.txt expected)
if(NOT FLAGS MATCHES sanitize AND NOT symbols STREQUAL expected)
  message(FATAL_ERROR "${LIBRARY} exports\n${symbols}\nbut tests/capi_symbols.txt says\n${expected}\n"
          "A symbol that is gone breaks programs: that is a new SOVERSION. New ones belong into the list.")
endif()
run(dynamic readelf -d ${LIBRARY})
if(NOT FLAGS MATCHES sanitize AND dynamic MATCHES "libstdc|libfmt|libtoml|libmatio|libhdf5|libgcc_s")
  message(FATAL_ERROR "${LIBRARY} needs a library that its users may not have:\n${dynamic}")
endif()

separate_arguments(flags UNIX_COMMAND "${FLAGS}")
get_filename_component(folder ${LIBRARY} DIRECTORY)
file(GLOB examples ${SOURCE}/examples/*.c)
if(NOT examples)
  message(FATAL_ERROR "there is no example in C")
endif()
foreach(example ${examples})
  get_filename_component(name ${example} NAME_WE)
  run(ignored ${CC} -std=c99 -Wall -Wextra -pedantic -Werror ${flags} -I${SOURCE}/include ${example} ${LIBRARY}
      -Wl,-rpath,${folder} -lm -o ${WORK}/${name})
  run(shown ${WORK}/${name})
  message("${name}:\n${shown}")
endforeach()
file(WRITE ${WORK}/header.cc "#include <lacuna.h>\nint main() { return lacuna_api_version() == LACUNA_API_VERSION ? 0 : 1; }\n")
run(ignored ${CXX} -std=c++11 -Wall -Wextra -pedantic -Werror ${flags} -I${SOURCE}/include ${WORK}/header.cc ${LIBRARY}
    -Wl,-rpath,${folder} -o ${WORK}/header)
run(ignored ${WORK}/header)
