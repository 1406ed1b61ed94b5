/* holes - what it costs to open and close a descriptor among many.
 *
 *   holes N ROUNDS      N descriptors are open; then so many are opened and closed one at a time,
 *                       with the only free number low (a hole at the start) and high (behind all)
 *
 * Prints `low NS` and `high NS`, or `clipped N` first when the system allows fewer. The 1998 kernel
 * looked for a free number one by one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double
pair_ns(int fd, int rounds)
{
    double from = now_ns();

    for (int i = 0; i < rounds; i++)
        close(dup(fd));
    return (now_ns() - from) / rounds;
}

int
main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 1000, rounds = argc > 2 ? atoi(argv[2]) : 100000;
    int null = open("/dev/null", O_RDONLY), n = 4, low = -1;
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (n < wanted) {
        int fd = dup(null);

        if (fd < 0) {
            printf("clipped %d\n", n);
            break;
        }
        low = low < 0 ? fd : low;
        n++;
    }
    printf("high %.1f\n", pair_ns(null, rounds));
    if (low >= 0)
        close(low);
    printf("low %.1f\n", pair_ns(null, rounds));
    return 0;
}
