/* base/fds.c - the census of descriptors.
 *
 * It stands on the path of every accept and close, and of every request (active <-> idle), so it
 * takes no lock: each descriptor's slot is written by the one thread that owns the descriptor, and
 * the totals are relaxed atomics. The mean needs the integral of the count over time. Instead of
 * updating an integral under a lock, each change adds delta * time to `moment`; then
 *
 *     integral(now) = count * now - moment
 *
 * because a descriptor counted since t contributes now - t. A report that reads the two numbers a
 * moment apart is off by one descriptor per change in between.
 *
 * Slots come in chunks allocated when first touched. A descriptor is uncounted before it is closed:
 * right after close(2) its number may be another thread's. */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

enum {
    CHUNK_BITS = 10,
    CHUNK_SLOTS = 1 << CHUNK_BITS,
    CHUNKS = 1 << 14,
    FDS_MOST = CHUNKS * CHUNK_SLOTS, /* 16 million; fds_start keeps the limit below */
    NOTE_WORDS = 8,
    NOTE_BYTES = NOTE_WORDS * 8
};

struct slot {
    _Atomic uint32_t purpose_plus_1; /* 0: not ours */
    _Atomic uint32_t note_turn;      /* odd while the note is being written */
    _Atomic int64_t open_ms;
    _Atomic uint64_t note[NOTE_WORDS];
};

struct chunk {
    struct slot slots[CHUNK_SLOTS];
};

struct count {
    _Alignas(64) _Atomic int64_t now;
    _Atomic int64_t moment; /* sum of delta * time, see above */
    _Atomic int64_t peak, peak_at_wall_s;
    _Atomic uint64_t opened, closed;
};

static _Atomic(struct chunk *) chunks[CHUNKS];
static struct count counts[FD_PURPOSES];
static struct count all;
static _Atomic int highest = -1; /* the largest number ever counted */
static _Atomic int64_t start_ms;
static _Atomic uint64_t limit;
static _Atomic int reserve = -1;
static _Atomic uint64_t close_ns_sum, closes_sum, open_ns_sum, opens_sum;

#define LOAD(p) atomic_load_explicit((p), memory_order_relaxed)
#define STORE(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define ADD(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)

const char *
fd_purpose_name(enum fd_purpose p)
{
    static const char *const names[FD_PURPOSES] = {
        [FD_LISTENING] = "listening",
        [FD_CLIENT_ACTIVE] = "client active",
        [FD_CLIENT_IDLE] = "client idle",
        [FD_SERVER_ACTIVE] = "server active",
        [FD_SERVER_IDLE] = "server idle",
        [FD_TUNNEL] = "tunnel",
        [FD_DNS] = "DNS",
        [FD_DISK] = "disk",
        [FD_CHILD] = "helper",
        [FD_LOG] = "log",
        [FD_OTHER] = "other",
    };

    CHECK((unsigned)p < FD_PURPOSES);
    return names[p];
}

/* ---- slots ---- */

static struct chunk *
chunk_make(unsigned i)
{
    struct chunk *seen = NULL, *fresh = mem_zalloc(sizeof *fresh);

    if (atomic_compare_exchange_strong(&chunks[i], &seen, fresh))
        return fresh;
    mem_free(fresh); /* another thread was quicker */
    return seen;
}

/* NULL when nobody ever counted a descriptor near this one. */
static struct slot *
slot_find(int fd)
{
    struct chunk *c;

    if (fd < 0 || fd >= FDS_MOST)
        return NULL;
    c = atomic_load_explicit(&chunks[fd >> CHUNK_BITS], memory_order_acquire);
    return c ? &c->slots[fd & (CHUNK_SLOTS - 1)] : NULL;
}

static struct slot *
slot_make(int fd)
{
    struct slot *s = slot_find(fd);

    if (s)
        return s;
    CHECK(fd >= 0 && fd < FDS_MOST);
    return &chunk_make((unsigned)fd >> CHUNK_BITS)->slots[fd & (CHUNK_SLOTS - 1)];
}

/* ---- counts ---- */

static int64_t
age_ms(void)
{
    return clock_mono_ms() - LOAD(&start_ms);
}

/* The mean counts from fds_start or, in a program without it, from the first descriptor. */
static void
start_once(void)
{
    int64_t unset = 0;

    if (LOAD(&start_ms) == 0)
        atomic_compare_exchange_strong(&start_ms, &unset, clock_mono_ms());
}

static void
count_peak(struct count *c, int64_t now)
{
    int64_t peak = LOAD(&c->peak);

    while (now > peak) {
        if (atomic_compare_exchange_weak_explicit(&c->peak, &peak, now, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            STORE(&c->peak_at_wall_s, clock_wall_s());
            return;
        }
    }
}

static void
count_enter(struct count *c, int64_t at_ms)
{
    int64_t now = ADD(&c->now, 1) + 1;

    ADD(&c->moment, at_ms);
    if (now > LOAD(&c->peak))
        count_peak(c, now);
}

static void
count_leave(struct count *c, int64_t at_ms)
{
    ADD(&c->now, -1);
    ADD(&c->moment, -at_ms);
}

static void
highest_raise(int fd)
{
    int seen = LOAD(&highest);

    while (fd > seen && !atomic_compare_exchange_weak(&highest, &seen, fd))
        ;
}

/* ---- a descriptor's life ---- */

void
fds_adopt(int fd, enum fd_purpose p)
{
    struct slot *s = slot_make(fd);
    int64_t at_ms;

    CHECK((unsigned)p < FD_PURPOSES);
    start_once();
    fds_forget(fd); /* somebody else closed it and its number came back */
    at_ms = age_ms();
    STORE(&s->open_ms, clock_mono_ms());
    STORE(&s->note[0], 0);
    STORE(&s->purpose_plus_1, (uint32_t)p + 1);
    count_enter(&counts[p], at_ms);
    count_enter(&all, at_ms);
    ADD(&counts[p].opened, 1);
    if (fd > LOAD(&highest))
        highest_raise(fd);
}

void
fds_forget(int fd)
{
    struct slot *s = slot_find(fd);
    uint32_t was = s ? LOAD(&s->purpose_plus_1) : 0;
    int64_t at_ms;

    if (was == 0)
        return;
    at_ms = age_ms();
    STORE(&s->purpose_plus_1, 0);
    count_leave(&counts[was - 1], at_ms);
    count_leave(&all, at_ms);
    ADD(&counts[was - 1].closed, 1);
}

void
fds_purpose(int fd, enum fd_purpose p)
{
    struct slot *s = slot_find(fd);
    uint32_t was = s ? LOAD(&s->purpose_plus_1) : 0;
    int64_t at_ms;

    CHECK(was != 0 && (unsigned)p < FD_PURPOSES);
    if (was == (uint32_t)p + 1)
        return;
    at_ms = age_ms();
    STORE(&s->purpose_plus_1, (uint32_t)p + 1);
    count_leave(&counts[was - 1], at_ms);
    count_enter(&counts[p], at_ms);
}

void
fds_close(int fd)
{
    int64_t from_ns;
    int failed;

    if (fd < 0)
        return;
    fds_forget(fd);
    from_ns = clock_exact_mono_ns();
    failed = close(fd);
    /* Closing twice may hit a descriptor that is another's by now: never let it pass. */
    CHECK(failed == 0 || errno != EBADF);
    ADD(&close_ns_sum, (uint64_t)(clock_exact_mono_ns() - from_ns));
    ADD(&closes_sum, 1);
}

bool
fds_has(int fd)
{
    struct slot *s = slot_find(fd);

    return s && LOAD(&s->purpose_plus_1) != 0;
}

/* ---- notes ---- */

/* Reports on other threads read them, so a turn number, odd while writing, brackets the words. */

void
fds_note(int fd, struct span text)
{
    struct slot *s = slot_find(fd);
    uint64_t words[NOTE_WORDS] = {0};
    char *to = (char *)words;
    uint32_t turn;

    if (s == NULL || !fds_has(fd))
        return;
    text = span_first(text, NOTE_BYTES - 1);
    for (size_t i = 0; i < text.n; i++)
        to[i] = text.at[i] >= 0 && (text.at[i] < ' ' || text.at[i] == 0x7f) ? '?' : text.at[i];
    turn = LOAD(&s->note_turn);
    STORE(&s->note_turn, turn + 1);
    for (unsigned i = 0; i < NOTE_WORDS; i++)
        atomic_store_explicit(&s->note[i], words[i], memory_order_release);
    atomic_store_explicit(&s->note_turn, turn + 2, memory_order_release);
}

/* A note that changes while it is read twice over is left out: a report may be a note short. */
static void
note_read(struct slot *s, uint64_t words[NOTE_WORDS])
{
    for (unsigned tries = 0; tries < 3; tries++) {
        uint32_t turn = atomic_load_explicit(&s->note_turn, memory_order_acquire);

        for (unsigned i = 0; i < NOTE_WORDS; i++)
            words[i] = atomic_load_explicit(&s->note[i], memory_order_acquire);
        if (turn % 2 == 0 && LOAD(&s->note_turn) == turn)
            break;
        words[0] = 0;
    }
    ((char *)words)[NOTE_BYTES - 1] = '\0';
}

/* ---- reading the census ---- */

void
fds_each(void (*fn)(void *arg, int fd, enum fd_purpose p, const char *note, int64_t open_ms),
         void *arg)
{
    int last = LOAD(&highest);

    for (int fd = 0; fd <= last; fd++) {
        struct slot *s = slot_find(fd);
        uint32_t purpose = s ? LOAD(&s->purpose_plus_1) : 0;
        uint64_t words[NOTE_WORDS];

        if (s == NULL)
            fd |= CHUNK_SLOTS - 1; /* no chunk: on to the next one */
        if (purpose == 0)
            continue;
        note_read(s, words);
        fn(arg, fd, purpose - 1, (const char *)words, LOAD(&s->open_ms));
    }
}

uint64_t
fds_in_use(void)
{
    return (uint64_t)LOAD(&all.now);
}

uint64_t
fds_peak(void)
{
    return (uint64_t)LOAD(&all.peak);
}

uint64_t
fds_largest(void)
{
    for (int fd = LOAD(&highest); fd > 0; fd--) {
        if (fds_has(fd))
            return (uint64_t)fd;
    }
    return 0;
}

static double
count_mean(struct count *c, int64_t at_ms)
{
    double integral = (double)(LOAD(&c->now) * at_ms - LOAD(&c->moment));

    if (at_ms <= 0)
        return (double)LOAD(&c->now);
    return integral > 0 ? integral / (double)at_ms : 0;
}

void
fds_census(struct fd_census_row rows[FD_PURPOSES])
{
    int64_t at_ms = age_ms();

    for (unsigned i = 0; i < FD_PURPOSES; i++) {
        struct count *c = &counts[i];
        int64_t now = LOAD(&c->now);

        rows[i] = (struct fd_census_row){
            .now = now > 0 ? (uint64_t)now : 0,
            .peak = (uint64_t)LOAD(&c->peak),
            .peak_at_wall_s = LOAD(&c->peak_at_wall_s),
            .mean = count_mean(c, at_ms),
            .opened = LOAD(&c->opened),
            .closed = LOAD(&c->closed),
        };
    }
}

void
fds_cost(uint64_t *close_ns, uint64_t *closes)
{
    *close_ns = LOAD(&close_ns_sum);
    *closes = LOAD(&closes_sum);
}

void
fds_open_took(int64_t ns)
{
    ADD(&open_ns_sum, (uint64_t)(ns > 0 ? ns : 0));
    ADD(&opens_sum, 1);
}

void
fds_open_cost(uint64_t *open_ns, uint64_t *opens)
{
    *open_ns = LOAD(&open_ns_sum);
    *opens = LOAD(&opens_sum);
}

/* ---- the limit and the reserve ---- */

static uint64_t
limit_now(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return 0;
    return r.rlim_cur > FDS_MOST ? FDS_MOST : r.rlim_cur;
}

/* The hard limit goes up too where we may (root); else it is where we stop. */
static void
limit_set(uint64_t soft)
{
    struct rlimit r, more;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    if (soft == 0)
        soft = r.rlim_cur;
    if (soft > FDS_MOST)
        soft = FDS_MOST;
    more = (struct rlimit){soft, r.rlim_max > soft ? r.rlim_max : soft};
    if (more.rlim_cur == r.rlim_cur || setrlimit(RLIMIT_NOFILE, &more) == 0)
        return;
    log_event(LOG_WARN, "descriptors: %llu wanted, the hard limit is %llu",
              (unsigned long long)soft, (unsigned long long)r.rlim_max);
    r.rlim_cur = r.rlim_max < soft ? r.rlim_max : soft;
    setrlimit(RLIMIT_NOFILE, &r);
}

void
fds_start(uint64_t soft_limit)
{
    start_once();
    limit_set(soft_limit);
    STORE(&limit, limit_now());
    for (int fd = 0; fd <= 2; fd++) {
        if (!fds_has(fd) && fcntl(fd, F_GETFD) >= 0)
            fds_adopt(fd, FD_OTHER);
    }
    fds_reserve_refill();
}

uint64_t
fds_limit(void)
{
    uint64_t known = LOAD(&limit);

    return known ? known : limit_now();
}

bool
fds_reserve_use(void)
{
    int fd = atomic_exchange(&reserve, -1);

    fds_close(fd);
    return fd >= 0;
}

void
fds_reserve_refill(void)
{
    int none = -1, fd;

    if (LOAD(&reserve) >= 0)
        return;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* still at the limit: the next refill tries again */
    fds_adopt(fd, FD_OTHER);
    fds_note(fd, SPAN("reserve"));
    if (!atomic_compare_exchange_strong(&reserve, &none, fd))
        fds_close(fd);
}
