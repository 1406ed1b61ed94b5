# The manual pages, and the configuration of a system service: the built-in one with a store on disk
# and logs in files. PROGRAM prints, FOLDER takes the files.
file(MAKE_DIRECTORY ${FOLDER})

function(print_to file argument)
    execute_process(COMMAND ${PROGRAM} ${argument} OUTPUT_FILE ${FOLDER}/${file}
                    RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${PROGRAM} ${argument}: ${failed}")
    endif()
endfunction()

print_to(cuttle.8 --man8)
print_to(cuttle.conf.5 --man5)
print_to(cuttle-http.7 --man7)
print_to(cuttle.conf --print-conf)
file(READ ${FOLDER}/cuttle.conf text)

function(put_in_place_of old new)
    string(FIND "${text}" "${old}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "the built-in configuration has no longer: ${old}")
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
    set(text "${text}" PARENT_SCOPE)
endfunction()

put_in_place_of(
"# cuttle.conf - what cuttle does when it is given no file. Copy it as a start.
"
"# cuttle.conf - cuttle as a service of this machine (cuttle.service).
")
put_in_place_of(
"# The cache in memory, and objects up to which size it keeps. A cache on disk comes with a
# line such as: cache_dir cuttle /var/cache/cuttle 10000
"
"# The cache on disk: a file of so many megabytes, which are taken from the disk at once.
cache_dir cuttle /var/cache/cuttle 4000

# The cache in memory, and objects up to which size it keeps.
")
put_in_place_of(
"# One line for each request, in Squid's format, to standard output; or to a file:
#access_log /var/log/cuttle/access.log squid
access_log stdio:/dev/stdout squid
"
"# One line for each request, in Squid's format. logrotate renames the files and sends SIGUSR1, which
# opens them anew.
access_log /var/log/cuttle/access.log squid
cache_log /var/log/cuttle/cache.log
logfile_rotate 0

# For cuttle -k reconfigure and its like.
pid_filename /run/cuttle/cuttle.pid
")
file(WRITE ${FOLDER}/cuttle.conf "${text}")
