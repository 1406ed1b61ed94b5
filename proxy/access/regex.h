/* proxy/access/regex.h - the regular expressions of a configuration, matched against what clients
 * send.
 *
 * People wrote them for POSIX (extended, as GNU has it); PCRE takes nearly all of that, and what it
 * would refuse is translated. Bytes, not characters; '.' takes a line feed and '$' only the very
 * end, as with POSIX. No pattern can hang a worker: each match has a budget, and running into it is
 * REGEX_FAILED. Compiled once, matched from any thread, nothing is allocated per match. */
#ifndef PROXY_ACCESS_REGEX_H
#define PROXY_ACCESS_REGEX_H

#include "base/span.h"

enum regex_answer { REGEX_NO, REGEX_YES, REGEX_FAILED };

struct regex;
struct regex *regex_new(const char *pattern, bool ignore_case, char *why,
                        size_t n_why); /* NULL: why says what is wrong */
void regex_free(struct regex **r);
enum regex_answer regex_match(const struct regex *r, struct span subject);

/* n_bytes of this thread's memory, good until its next call: for a subject that has to be put
 * together. */
char *regex_scratch(size_t n_bytes);

#endif
