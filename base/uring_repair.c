/* A repair of libev's io_uring backend for kernels that look at all of a request.
 *
 * libev 4.33 takes request slots (SQEs) in turn and fills in only the fields it needs. A slot that
 * last held a POLL_ADD keeps that request's event mask; used for a POLL_REMOVE, recent kernels
 * refuse it (EINVAL) and stop taking requests there, whereupon libev ends the process by an
 * assertion. libev enters the kernel through the C library's syscall(), so this file puts itself in
 * between: it notes the rings that are set up, and clears the leftovers of POLL_REMOVE slots before
 * each io_uring_enter. Everything else passes through unchanged. Without io_uring it does nothing.
 */
#include "base/uring_repair.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RINGS 256 /* one a loop; more are not repaired */

struct ring {
    _Atomic int fd; /* 0: free */
    struct io_uring_sqe *slots;
    unsigned n;
};

static struct ring rings[RINGS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
typedef long syscall_fn(long number, ...);
static _Atomic(syscall_fn *) libc_syscall;

static struct ring *
ring_of(int fd)
{
    for (int i = 0; i < RINGS; i++) {
        int have = atomic_load_explicit(&rings[i].fd, memory_order_acquire);

        if (have == fd)
            return &rings[i];
    }
    return NULL;
}

/* A ring whose descriptor was closed leaves its number behind; the next ring of that number takes
 * the place. */
static void
ring_note(int fd, const struct io_uring_params *p)
{
    size_t bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    struct ring *r;

    if (at == MAP_FAILED)
        return;
    pthread_mutex_lock(&lock);
    r = ring_of(fd);
    if (r)
        munmap(r->slots, r->n * sizeof *r->slots);
    else
        r = ring_of(0);
    if (r) {
        r->slots = at;
        r->n = p->sq_entries;
        atomic_store_explicit(&r->fd, fd, memory_order_release);
    } else
        munmap(at, bytes);
    pthread_mutex_unlock(&lock);
}

static void
ring_repair(int fd)
{
    struct ring *r = ring_of(fd);

    if (!r)
        return;
    for (unsigned i = 0; i < r->n; i++)
        if (r->slots[i].opcode == IORING_OP_POLL_REMOVE) {
            r->slots[i].poll32_events = 0;
            r->slots[i].len = 0;
            r->slots[i].off = 0;
        }
}

static syscall_fn *
find_libc_syscall(void)
{
    syscall_fn *found = atomic_load_explicit(&libc_syscall, memory_order_relaxed);

    if (!found) {
        found = (syscall_fn *)dlsym(RTLD_NEXT, "syscall");
        atomic_store_explicit(&libc_syscall, found, memory_order_relaxed);
    }
    return found;
}

bool
uring_repair_start(void)
{
    return find_libc_syscall() != NULL && dlsym(RTLD_DEFAULT, "syscall") == (void *)syscall;
}

long
syscall(long number, ...)
{
    long a[6], result;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_enter)
        ring_repair((int)a[0]);
    result = find_libc_syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_uring_setup && result >= 0)
        ring_note((int)result, (const struct io_uring_params *)a[1]);
    return result;
}
