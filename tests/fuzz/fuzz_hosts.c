/* tests/fuzz/fuzz_hosts.c - any text as a hosts file: what it names can be found again with its
 * address, also with a dot behind it, and no name gets more addresses than an answer holds. */
#include <stdlib.h>

#include "dns/hosts.h"

static void
must(bool claim)
{
    if (!claim)
        abort();
}

/* The bytes may be a name too: a name that reads well reads the same again. */
static void
try_name(struct span text)
{
    struct dns_name name, again;

    if (!name_read(text, &name))
        return;
    must(name.n > 0 && name.n <= NAME_MAX_BYTES && name.at[name.n] == '.');
    must(name_read(name_text(&name), &again) && span_eq(name_text(&name), name_text(&again)));
    must(name.dotted == again.dotted && !again.absolute);
}

static void
try_last_word(const struct hosts *t, struct span text)
{
    struct half_answer h[HALVES];
    struct dns_name name;
    size_t at = text.n;

    while (at > 0 && text.at[at - 1] > ' ')
        at--;
    if (!name_read(span_skip(text, at), &name) || !hosts_find(t, &name, h))
        return;
    must(hosts_count(t) > 0);
    must(h[HALF_V6].n + h[HALF_V4].n > 0);
    must(h[HALF_V6].n <= DNS_ADDRESSES && h[HALF_V4].n <= DNS_ADDRESSES);
    name.absolute = !name.absolute;
    name.hash = name_hash(name_key(&name));
    must(hosts_find(t, &name, h));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct span text = span_of(bytes, n);
    struct hosts *t = hosts_new(text);

    try_name(text);
    try_last_word(t, text);
    hosts_free(&t);
    return 0;
}
