/* http/fault.c - the columns of faults.def. */
#include "http/fault.h"

static const struct {
    unsigned status;
    const char *token;
    enum log_level level;
    const char *page, *sentence, *name;
} faults[FAULTS] = {
    [FAULT_NONE] = {200, "", LOG_DEBUG, "", "", "NONE"},
#define FAULT(kind, status, token, level, page, sentence)                                          \
    [FAULT_##kind] = {status, token, LOG_##level, page, sentence, #kind},
#include "http/faults.def"
#undef FAULT
};

unsigned
fault_status(enum fault f)
{
    return faults[f].status;
}

const char *
fault_token(enum fault f)
{
    return faults[f].token;
}

enum log_level
fault_level(enum fault f)
{
    return faults[f].level;
}

const char *
fault_page(enum fault f)
{
    return faults[f].page;
}

const char *
fault_sentence(enum fault f)
{
    return faults[f].sentence;
}

const char *
fault_name(enum fault f)
{
    return faults[f].name;
}
