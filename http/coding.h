/* http/coding.h - content codings undone: gzip and deflate (RFC 9110 section 8.4.1), as a stage
 * over spans. The only place that knows zlib.
 *
 * No I/O. Memory is fixed (about 40 KB a decoder), whatever the input: what comes out is bounded
 * by the room the caller gives, so a small body that unpacks to a huge one costs the caller's
 * patience only. Several gzip members one behind the other read as one stream. */
#ifndef HTTP_CODING_H
#define HTTP_CODING_H

#include <stddef.h>

#include "base/span.h"

enum coding_kind {
    CODING_GZIP,   /* a gzip header, or a zlib one */
    CODING_DEFLATE /* zlib as the RFC says, or bare deflate as some servers send */
};

enum coding_state {
    CODING_MORE, /* goes on: with more input, or with more room when the room was filled */
    CODING_END,  /* whole so far; another gzip member may follow, should there be more input */
    CODING_BAD   /* no such coding, or damaged: final; what came out before is right */
};

struct coding;

struct coding *coding_new(enum coding_kind kind);
/* Takes bytes off the front of *in and writes at most room bytes to out; *made says how many.
 * After CODING_END, what is left in *in is no part of the coded stream. At the end of the input
 * any state but CODING_END means that it was cut off. */
enum coding_state coding_decode(struct coding *c, struct span *in, char *out, size_t room,
                                size_t *made);
void coding_free(struct coding **held);

#endif
