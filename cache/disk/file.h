/* cache/disk/file.h - the file of a tier: reading and writing at a place, its header, opening and
 * closing it. */
#ifndef CACHE_DISK_FILE_H
#define CACHE_DISK_FILE_H

#include "cache/disk/disk.h"

/* All of it, or false with errno; EINTR is no end. Any thread. */
bool disk_read_at(int fd, uint64_t at, char *to, size_t n_bytes);
bool disk_write_at(int fd, uint64_t at, const char *from, size_t n_bytes);

/* NULL: it is open, and its header fits; else why not. */
const char *tier_file_open(struct tier *t);
void tier_file_close(struct tier *t);
bool tier_header_write(struct tier *t); /* with the generation of now, onto the medium */

#endif
