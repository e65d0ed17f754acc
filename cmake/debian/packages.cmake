# The Debian packages, by CPack: `make deb`. Each is a component of the installation, under /usr.
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library dev cli cudnn)
set(CPACK_SET_DESTDIR ON)  # files that name the prefix name the one of the packages
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CONTACT "Tessera developers <maintainers@tessera.invalid>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the files are linked with
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# describe(COMPONENT PACKAGE SECTION TEXT..): the first line of the text is the summary.
function(describe component package section)
  string(TOUPPER ${component} upper)
  string(JOIN "\n" text ${ARGN})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${text}" PARENT_SCOPE)
  set(docs ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian/copyright DESTINATION ${docs} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/debian/changelog.gz DESTINATION ${docs} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
describe(library libtessera${PROJECT_VERSION_MAJOR} libs "Deep-learning primitives, shared library"
  "Tessera plans, fuses and runs graphs of convolutions, matrix products,"
  "attention, normalisation and what lies between them, on processors and on"
  "NVIDIA's GPUs. This package holds the C++ library.")
describe(dev libtessera-dev libdevel "Deep-learning primitives, development files"
  "Headers, the static library, CMake and pkg-config files of Tessera: of its"
  "C++ interface, and of the interface of cuDNN that the package tessera-cudnn"
  "holds.")
describe(cli tessera science "Deep-learning primitives, command line"
  "The program tessera runs, checks, explains, tunes and measures graphs of"
  "deep-learning operations, and starts programs that were built for cuDNN with"
  "the libraries of the package tessera-cudnn.")
describe(cudnn tessera-cudnn libs "Deep-learning primitives as cuDNN's libraries"
  "A libcudnn.so.9 that programs built for NVIDIA's cuDNN run with. It lies in a"
  "folder of its own, where no program finds it unasked, and replaces no file of"
  "NVIDIA's: tessera exec starts a program with it.")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_DEV_DEPENDS library cudnn)
if(TESSERA_HAS_ONEDNN)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS libdnnl-dev)  # the static library is linked with it
endif()
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS tessera-cudnn)

# Files that only packages have. The changelog has no date but that of the last commit, so that packages do not differ.
find_program(GZIP gzip)
execute_process(COMMAND git log -1 --format=%cD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE TESSERA_DATE
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
configure_file(cmake/debian/changelog.in ${PROJECT_BINARY_DIR}/debian/changelog @ONLY)
configure_file(cmake/debian/tessera.1 ${PROJECT_BINARY_DIR}/debian/tessera.1 COPYONLY)
if(GZIP)
  execute_process(COMMAND ${GZIP} -9nfk changelog tessera.1 WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/debian
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
install(FILES ${PROJECT_BINARY_DIR}/debian/tessera.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cli EXCLUDE_FROM_ALL)
# The linker's cache follows the shared library, and so do dependencies of packages that are linked with it. CPack would
# add scripts that call ldconfig, besides the trigger that does: it leaves them out where their names are given.
set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(control ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
file(WRITE ${control}/shlibs "libtessera ${PROJECT_VERSION_MAJOR} libtessera${PROJECT_VERSION_MAJOR} (>= ${version})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${control}/triggers ${control}/shlibs ${control}/postinst ${control}/postrm)
include(CPack)
