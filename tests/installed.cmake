# Installs the build into an empty prefix, then configures, builds and runs tests/installed against it.
# cmake -DBUILD=... -DSOURCE=... -DWORK=... -P installed.cmake
file(REMOVE_RECURSE ${WORK})
function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nended with ${status}:\n${output}")
  endif()
endfunction()
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
must(${WORK}/prefix/bin/lacuna --help)
must(${CMAKE_COMMAND} -S ${SOURCE}/installed -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
     -DCMAKE_PREFIX_PATH=${WORK}/prefix -DLACUNA_INCLUDE_DIR=${WORK}/prefix/include)
must(${CMAKE_COMMAND} --build ${WORK}/build -j 2)
must(${CMAKE_COMMAND} -E chdir ${WORK} ${WORK}/build/elsewhere)
