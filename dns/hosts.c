/* dns/hosts.c - the hosts file as a hash table from names to addresses.
 *
 * People keep block lists of a hundred thousand names in it, so lines are read once into a table
 * and a changed file makes a new one; the owner swaps them. */
#include "dns/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fds.h"
#include "base/log.h"

enum { FILE_LIMIT_BYTES = 64 << 20, BUCKETS_FIRST = 64, HOSTS_TTL_S = 1 };

struct host {
    struct host *next;
    uint64_t hash;
    struct addr *at;
    uint8_t n, name_n;
    char name[];
};

struct hosts {
    struct host **buckets;
    size_t n_buckets; /* a power of two */
    uint64_t n;
};

/* ---- the table ---- */

static struct host *
host_find(const struct hosts *t, struct span name, uint64_t hash)
{
    struct host *h = t->buckets[hash & (t->n_buckets - 1)];

    while (h && (h->hash != hash || !span_eq(span_of(h->name, h->name_n), name)))
        h = h->next;
    return h;
}

static void
hosts_grow(struct hosts *t)
{
    size_t n = t->n_buckets * 2;
    struct host **wider = mem_zalloc(n * sizeof(*wider)), *h;

    for (size_t i = 0; i < t->n_buckets; i++) {
        while ((h = t->buckets[i]) != NULL) {
            t->buckets[i] = h->next;
            h->next = wider[h->hash & (n - 1)];
            wider[h->hash & (n - 1)] = h;
        }
    }
    mem_free(t->buckets);
    t->buckets = wider;
    t->n_buckets = n;
}

static struct host *
host_make(struct hosts *t, struct span name, uint64_t hash)
{
    struct host *h = mem_zalloc(sizeof(*h) + name.n), **bucket;

    if (t->n >= t->n_buckets)
        hosts_grow(t);
    bucket = &t->buckets[hash & (t->n_buckets - 1)];
    h->hash = hash;
    h->name_n = (uint8_t)name.n;
    memcpy(h->name, name.at, name.n);
    h->next = *bucket;
    *bucket = h;
    t->n++;
    return h;
}

static void
host_add(struct hosts *t, struct span word, const struct addr *a)
{
    struct dns_name name;
    struct host *h;
    uint64_t hash;

    if (!name_read(word, &name))
        return;
    hash = name_hash(name_text(&name));
    h = host_find(t, name_text(&name), hash);
    if (h == NULL)
        h = host_make(t, name_text(&name), hash);
    for (unsigned i = 0; i < h->n; i++) {
        if (addr_compare(&h->at[i], a) == 0)
            return;
    }
    if (h->n == DNS_ADDRESSES)
        return;
    h->at = mem_realloc(h->at, (h->n + 1u) * sizeof(*h->at));
    h->at[h->n++] = *a;
}

/* ---- reading ---- */

static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span
next_word(struct span *line)
{
    struct span word;
    size_t n = 0;

    while (line->n > 0 && is_blank(line->at[0]))
        *line = span_skip(*line, 1);
    while (n < line->n && !is_blank(line->at[n]))
        n++;
    word = span_first(*line, n);
    *line = span_skip(*line, n);
    return word;
}

static void
line_read(struct hosts *t, struct span line)
{
    struct span word;
    struct addr a;

    line = span_first(line, span_index(line, '#'));
    if (!addr_parse(next_word(&line), &a))
        return;
    for (word = next_word(&line); word.n > 0; word = next_word(&line))
        host_add(t, word, &a);
}

struct hosts *
hosts_new(struct span text)
{
    struct hosts *t = mem_zalloc(sizeof(*t));

    t->n_buckets = BUCKETS_FIRST;
    t->buckets = mem_zalloc(t->n_buckets * sizeof(*t->buckets));
    while (text.n > 0) {
        size_t n = span_index(text, '\n');

        line_read(t, span_first(text, n));
        text = span_skip(text, n + 1);
    }
    return t;
}

void
hosts_free(struct hosts **held)
{
    struct hosts *t = *held;
    struct host *h;

    *held = NULL;
    for (size_t i = 0; t && i < t->n_buckets; i++) {
        while ((h = t->buckets[i]) != NULL) {
            t->buckets[i] = h->next;
            mem_free(h->at);
            mem_free(h);
        }
    }
    if (t)
        mem_free(t->buckets);
    mem_free(t);
}

uint64_t
hosts_count(const struct hosts *t)
{
    return t->n;
}

bool
hosts_find(const struct hosts *t, const struct dns_name *name, struct half_answer *out)
{
    struct span text = name_text(name);
    /* The key of "printer." has its dot, the file's names have none. */
    uint64_t hash = name_key(name).n == text.n ? name->hash : name_hash(text);
    struct host *h = t->n > 0 ? host_find(t, text, hash) : NULL;

    if (h == NULL)
        return false;
    out[HALF_V6].kind = out[HALF_V4].kind = HALF_NO_DATA;
    out[HALF_V6].n = out[HALF_V4].n = 0;
    out[HALF_V6].ttl_s = out[HALF_V4].ttl_s = HOSTS_TTL_S;
    for (unsigned i = 0; i < h->n; i++) {
        struct half_answer *half = &out[half_of(&h->at[i])];

        half->kind = HALF_ADDRESSES;
        half_add(half, &h->at[i]);
    }
    return true;
}

/* ---- the file ---- */

static bool
stamp_differs(const struct hosts_stamp *seen, const struct stat *st)
{
    return seen->mtime.tv_sec != st->st_mtim.tv_sec || seen->mtime.tv_nsec != st->st_mtim.tv_nsec ||
           seen->size != st->st_size || seen->ino != st->st_ino;
}

static ssize_t
read_all(int fd, char *to, size_t room)
{
    size_t have = 0;
    ssize_t n;

    while (have < room && (n = read(fd, to + have, room - have)) != 0) {
        if (n < 0 && errno != EINTR)
            return -errno;
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

static struct hosts *
hosts_from(int fd, size_t size)
{
    char *text = mem_alloc(size + 1);
    ssize_t n = read_all(fd, text, size);
    struct hosts *t = n < 0 ? NULL : hosts_new(span_of(text, (size_t)n));

    mem_free(text);
    return t;
}

/* Not blocking, and regular files only: a pipe in this place must not stop the loop. */
static struct hosts *
hosts_load(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct hosts *t = NULL;
    struct stat st;

    if (fd < 0)
        return NULL;
    fds_adopt(fd, FD_OTHER);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_LIMIT_BYTES)
        t = hosts_from(fd, (size_t)st.st_size);
    fds_close(fd);
    return t;
}

struct hosts *
hosts_reread(const char *path, struct hosts_stamp *seen)
{
    struct stat st;
    struct hosts *t;

    if (stat(path, &st) < 0) {
        if ((errno != ENOENT && errno != ENOTDIR) || seen->ino == 0)
            return NULL;
        *seen = (struct hosts_stamp){.ino = 0};
        return hosts_new(SPAN_NONE);
    }
    if (!stamp_differs(seen, &st))
        return NULL;
    *seen = (struct hosts_stamp){st.st_mtim, st.st_size, st.st_ino};
    t = hosts_load(path);
    if (t == NULL)
        log_event(LOG_WARN, "hosts file %s cannot be read: what was read of it before stays", path);
    return t;
}
