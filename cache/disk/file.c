/* cache/disk/file.c - bytes at a place of a file, and the header that says whose they are. */
#include "cache/disk/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/fds.h"
#include "base/log.h"

#define HEADER_MAGIC "CUTTLE-D"

struct tier_header { /* at the start of the file; little-endian, 64 bytes */
    char magic[8];
    uint64_t version, bytes, seed, generation, created_s, reserved, sum;
};

bool
disk_read_at(int fd, uint64_t at, char *to, size_t n_bytes)
{
    while (n_bytes) {
        ssize_t got = pread(fd, to, n_bytes, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += (uint64_t)got;
        n_bytes -= (size_t)got;
    }
    return true;
}

bool
disk_write_at(int fd, uint64_t at, const char *from, size_t n_bytes)
{
    while (n_bytes) {
        ssize_t put = pwrite(fd, from, n_bytes, (off_t)at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        from += put;
        at += (uint64_t)put;
        n_bytes -= (size_t)put;
    }
    return true;
}

bool
tier_header_write(struct tier *t)
{
    struct tier_header h = {.version = RECORD_VERSION,
                            .bytes = t->bytes,
                            .seed = t->seed,
                            .generation = atomic_load(&t->generation)};

    memcpy(h.magic, HEADER_MAGIC, sizeof h.magic);
    h.sum = XXH3_64bits(&h, offsetof(struct tier_header, sum));
    return disk_write_at(t->fd, 0, (const char *)&h, sizeof h) && fdatasync(t->fd) == 0;
}

static bool
header_fits(struct tier *t, const struct tier_header *h, bool whole)
{
    if (!whole || memcmp(h->magic, HEADER_MAGIC, sizeof h->magic) != 0 ||
        h->sum != XXH3_64bits(h, offsetof(struct tier_header, sum))) {
        log_event(LOG_WARN,
                  "cache_dir %s: cuttle.store is no store, or its start is spoilt; it starts "
                  "empty",
                  t->path);
        return false;
    }
    if (h->version != RECORD_VERSION || h->bytes != t->bytes) {
        log_event(LOG_WARN, "cache_dir %s: made for another %s; it starts empty", t->path,
                  h->version != RECORD_VERSION ? "version" : "size");
        return false;
    }
    t->seed = h->seed;
    atomic_store(&t->generation, h->generation);
    return true;
}

/* A new store has a seed and a generation that no record of an older one has, and that nobody can
 * guess who would like to be found inside of a body. */
static bool
header_make(struct tier *t)
{
    uint64_t generation;

    if (getrandom(&t->seed, sizeof t->seed, 0) != sizeof t->seed ||
        getrandom(&generation, sizeof generation, 0) != sizeof generation)
        return false;
    atomic_store(&t->generation, generation);
    t->made = true;
    return ftruncate(t->fd, (off_t)t->bytes) == 0 && tier_header_write(t);
}

/* A disk that cannot be read now is no reason to give up what is on it: the next start may. */
static bool
header_ready(struct tier *t)
{
    struct tier_header h;
    bool whole;

    if (lseek(t->fd, 0, SEEK_END) == 0)
        return header_make(t);
    errno = 0;
    whole = disk_read_at(t->fd, 0, (char *)&h, sizeof h);
    if (!whole && errno)
        return false;
    return header_fits(t, &h, whole) || header_make(t);
}

static const char *
open_both(struct tier *t)
{
    (void)mkdir(t->path, 0750);
    t->folder = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->folder < 0)
        return strerror(errno);
    t->fd = openat(t->folder, "cuttle.store", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (t->fd < 0)
        return strerror(errno);
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0)
        return "another process uses it";
    if (!header_ready(t))
        return strerror(errno);
    return ftruncate(t->fd, (off_t)t->bytes) == 0 ? NULL : strerror(errno);
}

const char *
tier_file_open(struct tier *t)
{
    const char *fault = open_both(t);

    if (fault) {
        if (t->fd >= 0)
            (void)close(t->fd);
        if (t->folder >= 0)
            (void)close(t->folder);
        return fault;
    }
    t->may_send = fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, TIER_BASE / 2,
                            TIER_BASE / 2) == 0;
    fds_adopt(t->fd, FD_DISK);
    fds_adopt(t->folder, FD_DISK);
    return NULL;
}

void
tier_file_close(struct tier *t)
{
    fds_close(t->fd);
    fds_close(t->folder);
}
