/* conf/acl_types.c - the types of acl.
 *
 * Squid's other types are listed too: an acl of one of these is no mistake as long as no rule that
 * cuttle honours uses it (an at_step for ssl_bump, a rep_header for a workaround of old times). */
#include "conf/acl_types.h"

#include "conf/table.h"

#define HAVE(name)                                                                                 \
    {                                                                                              \
        name, true, false, false, false                                                            \
    }
#define HAVE_REGEX(name)                                                                           \
    {                                                                                              \
        name, true, true, false, false                                                             \
    }
#define HAVE_FIELD(name)                                                                           \
    {                                                                                              \
        name, true, true, true, false                                                              \
    }
#define HAVE_GROUP(name)                                                                           \
    {                                                                                              \
        name, true, false, false, true                                                             \
    }
#define MISSING(name)                                                                              \
    {                                                                                              \
        name, false, false, false, false                                                           \
    }

static const struct acl_type types[] = {
    HAVE("src"),
    HAVE("dst"),
    HAVE("localip"),
    HAVE("myip"),
    HAVE("dstdomain"),
    HAVE_REGEX("dstdom_regex"),
    HAVE("port"),
    HAVE("localport"),
    HAVE("myport"),
    HAVE("myportname"),
    HAVE("method"),
    HAVE("proto"),
    HAVE_REGEX("url_regex"),
    HAVE_REGEX("urlpath_regex"),
    HAVE_REGEX("browser"),
    HAVE_REGEX("referer_regex"),
    HAVE_REGEX("req_mime_type"),
    HAVE_FIELD("req_header"),
    HAVE("time"),
    HAVE_GROUP("any-of"),
    HAVE_GROUP("all-of"),
    MISSING("adaptation_service"),
    MISSING("annotate_client"),
    MISSING("annotate_transaction"),
    MISSING("arp"),
    MISSING("at_step"),
    MISSING("ca_cert"),
    MISSING("client_connection_mark"),
    MISSING("clientside_mark"),
    MISSING("clientside_tos"),
    MISSING("connections_encrypted"),
    MISSING("dst_as"),
    MISSING("eui64"),
    MISSING("ext_user"),
    MISSING("ext_user_regex"),
    MISSING("external"),
    MISSING("has"),
    MISSING("hier_code"),
    MISSING("http_status"),
    MISSING("ident"),
    MISSING("ident_regex"),
    MISSING("max_user_ip"),
    MISSING("maxconn"),
    MISSING("note"),
    MISSING("peername"),
    MISSING("peername_regex"),
    MISSING("proxy_auth"),
    MISSING("proxy_auth_regex"),
    MISSING("random"),
    MISSING("rep_header"),
    MISSING("rep_mime_type"),
    MISSING("server_cert_fingerprint"),
    MISSING("snmp_community"),
    MISSING("squid_error"),
    MISSING("src_as"),
    MISSING("srcdom_regex"),
    MISSING("srcdomain"),
    MISSING("ssl::server_name"),
    MISSING("ssl::server_name_regex"),
    MISSING("ssl::certDomainMismatch"),
    MISSING("ssl::certHasExpired"),
    MISSING("ssl::certNotYetValid"),
    MISSING("ssl::certSelfSigned"),
    MISSING("ssl::certUntrusted"),
    MISSING("ssl_error"),
    MISSING("tag"),
    MISSING("transaction_initiator"),
    MISSING("url_login"),
    MISSING("urlgroup"),
    MISSING("urllogin"),
    MISSING("user_cert"),
};

enum { N_TYPES = sizeof types / sizeof types[0], HINT_DISTANCE = 3 };

const struct acl_type *
acl_type_find(struct span name)
{
    for (unsigned i = 0; i < N_TYPES; i++)
        if (span_eq(name, span_str(types[i].name)))
            return &types[i];
    return NULL;
}

const char *
acl_type_nearest(struct span misspelled)
{
    const char *nearest = NULL;
    unsigned least = HINT_DISTANCE;

    for (unsigned i = 0; i < N_TYPES; i++) {
        unsigned d = spelling_distance(misspelled, span_str(types[i].name), HINT_DISTANCE);

        if (types[i].supported && d < least) {
            least = d;
            nearest = types[i].name;
        }
    }
    return nearest;
}

bool
acl_flag_is_known(struct span word)
{
    return span_eq(word, SPAN("-i")) || span_eq(word, SPAN("+i")) || span_eq(word, SPAN("-n")) ||
           span_eq(word, SPAN("--"));
}

const char *
acl_types_supported(void)
{
    return "src, dst, localip, dstdomain, dstdom_regex, port, localport, myportname, method, "
           "proto, url_regex, urlpath_regex, browser, referer_regex, req_mime_type, req_header, "
           "time, any-of, all-of";
}
