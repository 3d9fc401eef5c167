# Installs a build and makes the examples twice against what was installed: by find_package and by
# pkg-config.   cmake -DBUILD=… -DCXX=… -DGENERATOR=… -DEXAMPLES=… -DLIBDIR=… -DTEXT=… -P installed_package.cmake
cmake_minimum_required(VERSION 3.25)
set(place ${BUILD}/installed_package)
file(REMOVE_RECURSE ${place})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first)
# Moved, to see that nothing in it depends on where it was.
file(RENAME ${place}/first ${place}/prefix)
set(ENV{PKG_CONFIG_PATH} ${place}/prefix/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${place}/prefix/${LIBDIR})

# make_example(NAME MODULE): by CMake, and by pkg-config's flags for the module as NAME_by_flags.
function(make_example name module)
  run(${CMAKE_COMMAND} -S ${EXAMPLES}/${name} -B ${place}/${name} -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${place}/prefix)
  run(${CMAKE_COMMAND} --build ${place}/${name})
  execute_process(COMMAND pkg-config --cflags --libs ${module}
    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CXX} -std=c++20 ${EXAMPLES}/${name}/main.cc -o ${place}/${name}_by_flags ${flags})
endfunction()

make_example(embed locant)
run(${place}/embed/embed)
run(${place}/embed_by_flags)

# What it says about checkpoints is compared in python/tests/test_examples.py.
if(TEXT)
  make_example(classify locant-text)
  foreach(program classify/classify classify_by_flags)
    execute_process(COMMAND ${place}/${program} ${place} text
      RESULT_VARIABLE code ERROR_VARIABLE message)
    if(NOT code EQUAL 2 OR NOT message MATCHES "config.json")
      message(FATAL_ERROR "${program}: code ${code}, ${message}")
    endif()
  endforeach()
endif()
