/* driver - runs a fuzz target over its corpus without libFuzzer, in every test run.
 *
 * Each file is fed whole, then cut short at every length of its first bytes, then with single
 * bytes changed in a fixed pseudo-random order: not a search, but it walks the edges of each
 * parser under the sanitizers in a second, and the same way every time. An input lies in an
 * allocation of just its size, so that a read past the end is seen. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    INPUT_LIMIT_BYTES = 1 << 20,
    CUTS_PER_FILE = 512,
    CHANGES_PER_FILE = 512,
    MUTATE_FOR_S = 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t inputs_run;
static time_t mutate_until_s;

static void
run_one(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (exact == NULL)
        abort();
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    inputs_run++;
}

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void
run_cuts(const uint8_t *data, size_t size)
{
    size_t step = size / CUTS_PER_FILE + 1;

    for (size_t n = 0; n < size && time(NULL) <= mutate_until_s; n += step)
        run_one(data, n);
}

static void
run_changes(uint8_t *data, size_t size)
{
    static const uint8_t telling[] = {0, '\r', '\n', ' ', '\t', ':', ',', ';', '"', '=', '0', 'f',
                                      '/', '%', '*', '-', '[', ']', 0x7f, 0x80, 0xff};
    uint32_t state = (uint32_t)size;

    for (int i = 0; size > 0 && i < CHANGES_PER_FILE && time(NULL) <= mutate_until_s; i++) {
        size_t at = next_random(&state) % size;
        uint8_t was = data[at];

        data[at] = telling[next_random(&state) % sizeof(telling)];
        run_one(data, size);
        data[at] = was;
    }
}

static int
run_file(const char *path)
{
    static uint8_t data[INPUT_LIMIT_BYTES];
    FILE *f = fopen(path, "rb");
    size_t size;

    if (f == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    size = fread(data, 1, sizeof(data), f);
    fclose(f);
    run_one(data, size);
    run_cuts(data, size);
    run_changes(data, size);
    return 0;
}

static int
run_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *d;
    int failed = 0;

    if (folder == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    while ((d = readdir(folder)) != NULL) {
        char name[4096];

        if (d->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, d->d_name);
        failed |= run_file(name);
    }
    closedir(folder);
    return failed;
}

int
main(int argc, char **argv)
{
    struct stat st;
    int failed = 0;

    mutate_until_s = time(NULL) + MUTATE_FOR_S;
    run_one((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            failed |= run_folder(argv[i]);
        else
            failed |= run_file(argv[i]);
    }
    printf("%llu inputs\n", (unsigned long long)inputs_run);
    return failed != 0;
}
