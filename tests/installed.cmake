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
foreach(file share/man/man1/lacuna.1 share/man/man1/lacuna-train.1 share/bash-completion/completions/lacuna
        share/zsh/site-functions/_lacuna share/fish/vendor_completions.d/lacuna.fish share/doc/Lacuna/docs/formats.md)
  if(NOT EXISTS ${WORK}/prefix/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
# The links of the installed pages; the header belongs to the other package, and test_pages checks results.
file(GLOB_RECURSE pages ${WORK}/prefix/share/doc/*.md)
foreach(page ${pages})
  get_filename_component(folder ${page} DIRECTORY)
  file(READ ${page} text)
  string(REPLACE "](" "@(" text "${text}")
  string(REGEX REPLACE "[][;]" "" text "${text}")  # which CMake's lists would not survive
  string(REGEX MATCHALL "@[(][^():#]+" links "${text}")
  foreach(link ${links})
    string(SUBSTRING ${link} 2 -1 link)
    if(NOT EXISTS ${folder}/${link} AND NOT link MATCHES "include/lacuna.h|results/")
      message(FATAL_ERROR "${page} links to ${link}, which was not installed")
    endif()
  endforeach()
endforeach()
must(${CMAKE_COMMAND} -S ${SOURCE}/installed -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
     -DCMAKE_PREFIX_PATH=${WORK}/prefix -DLACUNA_INCLUDE_DIR=${WORK}/prefix/include)
must(${CMAKE_COMMAND} --build ${WORK}/build -j 2)
must(${CMAKE_COMMAND} -E chdir ${WORK} ${WORK}/build/elsewhere)
# The C interface by pkg-config.
file(GLOB_RECURSE package ${WORK}/prefix/*/lacuna.pc)
get_filename_component(folder ${package} DIRECTORY)
must(sh -c "cd ${WORK} && cc -std=c99 -Wall -Werror ${SOURCE}/../examples/quickstart.c -o quickstart -lm \
     -Wl,-rpath,${folder}/.. $(PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs lacuna) && ./quickstart")
