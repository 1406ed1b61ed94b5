/* tests/fuzz/fuzz_resolv_conf.c - any text as a resolv.conf: what is found are words of the text,
 * no more than there is room for. */
#include <stdlib.h>

#include "dns/resolv_conf.h"

static void
must(bool claim)
{
    if (!claim)
        abort();
}

static void
try_words(struct span text, const struct span *words, unsigned n, unsigned most)
{
    must(n <= most);
    for (unsigned i = 0; i < n; i++) {
        must(words[i].n > 0);
        must(words[i].at >= text.at && words[i].at + words[i].n <= text.at + text.n);
        must(span_index(words[i], ' ') == words[i].n && span_index(words[i], '\n') == words[i].n);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct span text = span_of(bytes, n);
    struct resolv_conf c = resolv_conf_read(text);

    try_words(text, c.servers, c.n_servers, RESOLV_SERVERS_MOST);
    try_words(text, c.domains, c.n_domains, RESOLV_DOMAINS_MOST);
    return 0;
}
