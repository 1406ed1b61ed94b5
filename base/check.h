/* base/check.h - checks on our own mistakes, and memory that cannot fail.
 *
 * CHECK stays on in production and ends the process with one line on stderr: it is for bugs,
 * never for bytes from a socket, a disk or a configuration. The mem_ functions end the process
 * when the system is out of memory; every size that comes from outside is bounded before. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stddef.h>
#include <stdint.h>

_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(claim) ((claim) ? (void)0 : check_failed(__FILE__, __LINE__, #claim))
#define UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

/* Objects with a lifecycle start with `uint32_t magic`. */
#define CHECK_OBJ(o, m) CHECK((o) != NULL && (o)->magic == (m))
#define FREE_OBJ(o) ((o)->magic = 0, mem_free(o))

void *mem_alloc(size_t n_bytes);  /* not zeroed */
void *mem_zalloc(size_t n_bytes); /* zeroed */
void *mem_realloc(void *p, size_t n_bytes);
void mem_free(void *p);
char *mem_strdup(const char *text);
size_t mem_size(const void *p); /* bytes the allocator really spends on p, headers included */

#endif
