# What `cmake --install` puts where. The pages and the example are what the program itself prints, so
# that they cannot fall behind. All places are absolute: the unit names them.
include(GNUInstallDirs)

set(CUTTLE_PROGRAM ${CMAKE_INSTALL_FULL_SBINDIR}/cuttle)
set(CUTTLE_CONF ${CMAKE_INSTALL_FULL_SYSCONFDIR}/cuttle/cuttle.conf)
set(CUTTLE_MAN ${CMAKE_INSTALL_FULL_MANDIR})
set(CUTTLE_MADE ${CMAKE_CURRENT_BINARY_DIR}/dist)
set(CUTTLE_PRINTED ${CUTTLE_MADE}/cuttle.8 ${CUTTLE_MADE}/cuttle.conf.5
                   ${CUTTLE_MADE}/cuttle-http.7 ${CUTTLE_MADE}/cuttle.conf)

add_custom_command(
    OUTPUT ${CUTTLE_PRINTED}
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${CMAKE_COMMAND}
            -DPROGRAM=$<TARGET_FILE:cuttle> -DFOLDER=${CUTTLE_MADE}
            -P ${PROJECT_SOURCE_DIR}/dist/print.cmake
    DEPENDS cuttle ${PROJECT_SOURCE_DIR}/dist/print.cmake
    VERBATIM)
add_custom_target(dist ALL DEPENDS ${CUTTLE_PRINTED})
configure_file(${PROJECT_SOURCE_DIR}/dist/cuttle.service.in ${CUTTLE_MADE}/cuttle.service @ONLY)

install(PROGRAMS $<TARGET_FILE:cuttle> DESTINATION ${CMAKE_INSTALL_FULL_SBINDIR})
install(FILES ${CUTTLE_MADE}/cuttle.8 DESTINATION ${CUTTLE_MAN}/man8)
install(FILES ${CUTTLE_MADE}/cuttle.conf.5 DESTINATION ${CUTTLE_MAN}/man5)
install(FILES ${CUTTLE_MADE}/cuttle-http.7 DESTINATION ${CUTTLE_MAN}/man7)
install(FILES ${CUTTLE_MADE}/cuttle.conf LICENSE DESTINATION ${CMAKE_INSTALL_FULL_DOCDIR})
install(FILES ${CUTTLE_MADE}/cuttle.service
        DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
install(FILES dist/logrotate DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d
        RENAME cuttle)

# A configuration that is there belongs to whoever wrote it; the new example is among the documents.
install(CODE "
    if(EXISTS \"\$ENV{DESTDIR}${CUTTLE_CONF}\")
        message(STATUS \"Kept: \$ENV{DESTDIR}${CUTTLE_CONF}\")
    else()
        file(INSTALL \"${CUTTLE_MADE}/cuttle.conf\"
             DESTINATION \"${CMAKE_INSTALL_FULL_SYSCONFDIR}/cuttle\")
    endif()")
