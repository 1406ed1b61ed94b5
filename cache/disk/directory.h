/* cache/disk/directory.h - what lies where on a disk tier: at most 32 bytes an object. No I/O.
 *
 * Found by a 64-bit hash of the key; whether it is that key is only known from the record itself.
 * Several rows of one hash are variants, told apart by a 24-bit tag. Thread-safe: 64 tables, each
 * under its own lock, so that growing one is a short pause for few. */
#ifndef CACHE_DISK_DIRECTORY_H
#define CACHE_DISK_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct directory;

struct directory_row {
    uint64_t hash;
    uint64_t at;     /* offset in the file, a multiple of 16 */
    uint64_t bytes;  /* of the whole record, a multiple of 16 */
    uint32_t tag;    /* of the variant: 24 bits */
    uint32_t used_s; /* when it was last asked for, in seconds of the tier's own clock */
    uint8_t uses;    /* since it was written where it is, up to 3 */
    bool piece;      /* of a chain: no object by itself */
    bool checked;    /* its bytes were judged since the start: they may be sent unread */
};

struct directory *directory_new(void);
void directory_free(struct directory **held);
/* Room for so many in all, before they are put one after the other. */
void directory_reserve(struct directory *d, uint64_t rows);
/* In place of the row with its hash and tag. */
void directory_put(struct directory *d, const struct directory_row *row);
unsigned directory_find(struct directory *d, uint64_t hash, struct directory_row *out,
                        unsigned max); /* newest first; touches nothing */
/* false: it does not lie there any more. The second counts as a use. */
bool directory_holds(struct directory *d, const struct directory_row *row);
bool directory_touch(struct directory *d, const struct directory_row *row, uint32_t now_s);
/* All its bytes are as they were written. */
void directory_check(struct directory *d, const struct directory_row *row);
/* Only if it still lies there. */
bool directory_remove(struct directory *d, uint64_t hash, uint64_t at);
unsigned directory_remove_all(struct directory *d, uint64_t hash);
void directory_clear(struct directory *d);
/* Takes out every row that has bytes in [from, to), and gives it to taken(), in no order.
 */
void directory_take_range(struct directory *d, uint64_t from, uint64_t to,
                          void (*taken)(void *arg, const struct directory_row *row), void *arg);
/* All rows, table by table under its lock: copy what you need. */
void directory_each(struct directory *d, void (*fn)(void *arg, const struct directory_row *row),
                    void *arg);
/* All rows that start in [from, to), by place; the caller frees them. */
struct directory_row *directory_rows_in(struct directory *d, uint64_t from, uint64_t to, size_t *n);
uint64_t directory_count(struct directory *d); /* objects: rows that are no pieces */
uint64_t directory_rows(struct directory *d);
uint64_t directory_live_bytes(struct directory *d); /* of the records that can be found */
uint64_t directory_memory(struct directory *d);

#endif
