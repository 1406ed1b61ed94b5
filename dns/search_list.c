/* Read here because c-ares tells only what it was given itself since 1.20 or so, not what it found.
 */
#include "dns/search_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024

static void
each_word(char *words, void (*found)(void *owner, const char *domain), void *owner)
{
    char *rest = NULL;

    for (char *w = strtok_r(words, " \t\r\n", &rest); w; w = strtok_r(NULL, " \t\r\n", &rest))
        found(owner, w);
}

static bool
is_search_line(const char *line)
{
    return (strncmp(line, "search", 6) == 0 || strncmp(line, "domain", 6) == 0) &&
           (line[6] == ' ' || line[6] == '\t');
}

/* The last such line counts. */
static void
read_file(char last[LINE_BYTES])
{
    char line[LINE_BYTES];
    FILE *f = fopen("/etc/resolv.conf", "re");

    if (!f)
        return;
    while (fgets(line, sizeof line, f))
        if (is_search_line(line))
            memcpy(last, line + 7, sizeof line - 7);
    fclose(f);
}

void
search_list_read(void (*found)(void *owner, const char *domain), void *owner)
{
    const char *environment = getenv("LOCALDOMAIN");
    char words[LINE_BYTES] = "";

    if (environment)
        snprintf(words, sizeof words, "%s", environment);
    else
        read_file(words);
    each_word(words, found, owner);
}
