/* tools/predict.d/gather.h - reads a log once, and keeps what the predictions are made from.
 *
 * Memory: 24 bytes a request that has a time, what names.h and reuse.h say for each client, host
 * and URL, and a fixed rest; not the texts. */
#ifndef TOOLS_PREDICT_D_GATHER_H
#define TOOLS_PREDICT_D_GATHER_H

#include "tools/predict.d/descriptors.h"
#include "tools/predict.d/reuse.h"
#include "tools/predict.d/scale.h"
#include "tools/trace/trace.h"

/* Which requests go to a server. */
enum hit_rule {
    HITS_LOGGED, /* as the log's hierarchy or word says; all, when it says nothing */
    HITS_IDEAL,  /* what a cache without end would have is answered from it */
    HITS_SHARE,  /* a share of the requests that are no tunnels, evenly spread */
    HITS_NONE    /* all go to a server */
};

enum server_rule {
    SERVER_BY_HOST, /* connections are shared by requests for one host and port */
    SERVER_BY_PEER, /* by the server's address, where the log tells it */
    SERVER_ONE      /* all names lead to one server, as in a replay against one origin */
};

struct gather_options {
    enum hit_rule hits;
    double hit_share; /* of HITS_SHARE, 0 to 1 */
    enum server_rule servers;
    int64_t delay_us;     /* duration of requests that have none; -1: no model */
    int64_t hit_delay_us; /* duration of hits; -1: as logged */
    int64_t overhead_us;  /* added to every request that is no tunnel */
    int64_t limit;        /* requests at most; -1: all */
};

enum { METHODS_MOST = 48, METHOD_BYTES = 24 };

struct method_count {
    char name[METHOD_BYTES];
    uint64_t n;
};

struct gathered {
    struct fd_request *requests;
    size_t n, room; /* of them */
    uint64_t read;  /* requests in the log */
    uint64_t tunnels, to_server, logged_hits;
    uint64_t without_time, without_duration, without_size, out_of_order;
    bool has_words, is_ordered; /* some line has a word; the times count 1, 2, 3... */
    int64_t last_end_us;
    uint64_t by_format[TRACE_TIMED_LIST + 1];
    uint64_t by_status[10];                    /* by the first digit */
    struct method_count methods[METHODS_MOST]; /* the last one: all others */
    unsigned n_methods;
    struct names clients, hosts, servers;
    struct scale sizes, durations_us;
    uint64_t bytes, gets, cacheable, cacheable_bytes;
    struct reuse *reuse;
    double share_due; /* of HITS_SHARE: hits that are owed */
};

struct gathered *gather(struct trace_reader *r, const struct gather_options *o);
void gathered_free(struct gathered **held);

#endif
