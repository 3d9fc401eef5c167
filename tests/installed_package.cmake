# Installs a build and makes the example twice against what was installed: by find_package and by
# pkg-config.   cmake -DBUILD=… -DCXX=… -DGENERATOR=… -DEXAMPLE=… -DLIBDIR=… -P installed_package.cmake
cmake_minimum_required(VERSION 3.25)
set(place ${BUILD}/installed_package)
file(REMOVE_RECURSE ${place})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first)
# Moved, to see that nothing in it depends on where it was.
file(RENAME ${place}/first ${place}/prefix)

run(${CMAKE_COMMAND} -S ${EXAMPLE} -B ${place}/example -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${place}/prefix)
run(${CMAKE_COMMAND} --build ${place}/example)
run(${place}/example/embed)

set(ENV{PKG_CONFIG_PATH} ${place}/prefix/${LIBDIR}/pkgconfig)
execute_process(COMMAND pkg-config --cflags --libs locant
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} -std=c++20 ${EXAMPLE}/main.cc -o ${place}/embed ${flags})
set(ENV{LD_LIBRARY_PATH} ${place}/prefix/${LIBDIR})
run(${place}/embed)
