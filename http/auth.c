/* A challenge is a scheme and what belongs to it; a list of several parts them by commas, and so do
 * the parameters of one: whatever begins a member may be a scheme. */
#include "http/auth.h"

static bool
is_bound_scheme(struct span member)
{
    static const struct span schemes[] = {{"NTLM", 4}, {"Negotiate", 9}, {"Kerberos", 8}};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (span_eq_ci(span_first(member, schemes[i].n), schemes[i]) &&
            (member.n == schemes[i].n || member.at[schemes[i].n] == ' ' ||
             member.at[schemes[i].n] == '\t'))
            return true;
    return false;
}

static bool
names_bound_scheme(const struct fields *f, enum field_id id)
{
    for (const struct field *at = fields_find(f, id); at; at = fields_next(f, id, at)) {
        struct span rest = at->value, member;

        while (list_next(&rest, &member))
            if (is_bound_scheme(member))
                return true;
    }
    return false;
}

bool
auth_binds_request(const struct fields *f)
{
    return names_bound_scheme(f, FIELD_AUTHORIZATION);
}

bool
auth_binds_response(const struct fields *f)
{
    return names_bound_scheme(f, FIELD_WWW_AUTHENTICATE);
}
