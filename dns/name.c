/* dns/name.c - the strict reading of host names.
 *
 * What passes here needs no escaping in a question, a log line or a report: c-ares would take
 * backslash escapes and odd bytes, and a name with those never resolves to anything wanted. */
#include "dns/name.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

static uint64_t seed;

static void
seed_draw(void)
{
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
}

static uint64_t
mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t
name_hash(struct span s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t h, word;

    pthread_once(&once, seed_draw);
    h = seed ^ s.n;
    for (; s.n >= 8; s = span_skip(s, 8)) {
        memcpy(&word, s.at, 8);
        h = mix(h ^ word, 0xa0761d6478bd642fu);
    }
    word = 0;
    if (s.n > 0)
        memcpy(&word, s.at, s.n);
    h = mix(h ^ word, 0xe7037ed1a0b428dbu);
    return mix(h ^ seed, 0x8ebc6af09c88c6e3u);
}

/* The lower-case letter, or 0 for what is not part of a label. */
static char
label_char(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c | 0x20);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
        return c;
    return 0;
}

static bool
labels_read(struct span host, struct dns_name *out)
{
    size_t label_n = 0;

    for (size_t i = 0; i < host.n; i++) {
        char c = label_char(host.at[i]);

        if (c == 0 && (host.at[i] != '.' || label_n == 0))
            return false;
        if (c != 0 && ++label_n > NAME_LABEL_BYTES)
            return false;
        if (c == 0) {
            label_n = 0;
            out->dotted = true;
        }
        out->at[i] = c ? c : '.';
    }
    return label_n > 0;
}

bool
name_read(struct span host, struct dns_name *out)
{
    out->dotted = false;
    out->absolute = host.n > 0 && host.at[host.n - 1] == '.';
    host.n -= out->absolute;
    if (host.n == 0 || host.n > NAME_MAX_BYTES || !labels_read(host, out))
        return false;
    out->n = (uint8_t)host.n;
    out->at[out->n] = '.';
    out->at[out->n + 1] = '\0';
    out->hash = name_hash(name_key(out));
    return true;
}

struct span
name_key(const struct dns_name *name)
{
    return span_of(name->at, (size_t)name->n + (name->absolute && !name->dotted));
}

bool
name_is_localhost(const struct dns_name *name)
{
    struct span text = name_text(name), last = SPAN("localhost");

    if (text.n < last.n || memcmp(text.at + text.n - last.n, last.at, last.n) != 0)
        return false;
    return text.n == last.n || text.at[text.n - last.n - 1] == '.';
}
