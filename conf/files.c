/* conf/files.c - reading files: the configuration, what it includes, lists of values.
 *
 * Only plain files are read (the main one may be a pipe, for `-f <(generate)`), without ever
 * blocking in open, and each within a bound: a line of a configuration can name /dev/zero. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fds.h"
#include "conf/reader.h"

enum { READ_BYTES = 64 << 10 };

static const char *
read_all(struct reader *r, int fd, struct buf *out)
{
    ssize_t n;

    do {
        n = read(fd, buf_reserve(out, READ_BYTES), READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return strerror(errno);
        out->n += (size_t)n;
        r->n_bytes += (size_t)n;
        if (out->n > READER_FILE_BYTES_MAX || r->n_bytes > READER_ALL_BYTES_MAX)
            return "too large";
    } while (n != 0);
    return NULL;
}

static const char *
check_kind(int fd, bool pipe_ok)
{
    struct stat s;

    if (fstat(fd, &s) < 0)
        return strerror(errno);
    if (S_ISDIR(s.st_mode))
        return "is a folder";
    if (S_ISREG(s.st_mode))
        return NULL;
    if (pipe_ok && S_ISFIFO(s.st_mode))
        return fcntl(fd, F_SETFL, 0) < 0 ? strerror(errno) : NULL;
    return "is not a plain file";
}

/* NULL, or why it could not be read. */
static const char *
read_file(struct reader *r, const char *path, bool pipe_ok, struct buf *out)
{
    const char *why;
    int fd;

    if (++r->n_files > READER_FILES_MAX)
        return "too many files";
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return strerror(errno);
    fds_adopt(fd, FD_OTHER);
    why = check_kind(fd, pipe_ok);
    if (why == NULL)
        why = read_all(r, fd, out);
    fds_close(fd);
    return why;
}

/* Relative names count from the folder of the file they stand in: a configuration and its lists
 * can be moved, and read from anywhere. */
static char *
beside(struct reader *r, struct span path)
{
    const char *slash = strrchr(r->place.file, '/');

    if ((path.n && path.at[0] == '/') || slash == NULL)
        return reader_str(r, path);
    struct span full = arena_printf(&r->c->arena, "%.*s%.*s", (int)(slash + 1 - r->place.file),
                                    r->place.file, SPAN_ARG(path));
    return (char *)full.at;
}

static void
read_included(struct reader *r, const char *path)
{
    struct conf_place from = r->place;
    struct buf text = {0};
    const char *why = read_file(r, path, false, &text);

    if (why) {
        reader_error(r, "%.300s: %s", path, why);
        r->include_failed = true;
    } else {
        r->place.file = path;
        r->depth++;
        parser_text(r, buf_span(&text));
        r->depth--;
        r->place = from;
    }
    buf_free(&text);
}

void
file_main(struct reader *r, const char *path)
{
    struct buf text = {0};
    const char *why;

    r->place = (struct conf_place){reader_str(r, span_str(path)), 0};
    why = read_file(r, path, true, &text);
    if (why) {
        reader_error(r, "%s", why);
        r->include_failed = true;
    } else {
        r->depth = 1;
        parser_text(r, buf_span(&text));
    }
    buf_free(&text);
}

static bool
is_folder(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* A pattern nothing matches is a folder without files yet; without the folder it is a mistake. */
static void
nothing_matches(struct reader *r, char *pattern)
{
    char *slash = strrchr(pattern, '/');

    if (slash == NULL || slash == pattern) {
        reader_note(r, "%.300s: no such file", pattern);
        return;
    }
    *slash = '\0';
    bool there = is_folder(pattern) || strpbrk(pattern, "*?[");
    *slash = '/';
    if (there) {
        reader_note(r, "%.300s: no such file", pattern);
        return;
    }
    reader_error(r, "%.300s: no such folder", pattern);
    r->include_failed = true;
}

static void
include_matching(struct reader *r, char *pattern)
{
    glob_t found = {0};

    if (glob(pattern, 0, NULL, &found) != 0)
        nothing_matches(r, pattern);
    else
        for (size_t i = 0; i < found.gl_pathc && r->n_files <= READER_FILES_MAX; i++)
            if (!is_folder(found.gl_pathv[i])) /* a star also finds folders */
                read_included(r, reader_str(r, span_str(found.gl_pathv[i])));
    globfree(&found);
}

static void
include_one(struct reader *r, struct span word)
{
    char *path = beside(r, word);

    if (strpbrk(path, "*?["))
        include_matching(r, path);
    else if (is_folder(path))
        include_matching(r, (char *)arena_printf(&r->c->arena, "%s/*.conf", path).at);
    else
        read_included(r, path);
}

void
file_include(struct reader *r, const struct line *l)
{
    if (l->n == 0)
        reader_error(r, "expected the name of a file");
    for (unsigned i = 0; i < l->n; i++) {
        if (r->depth >= READER_DEPTH_MAX) {
            reader_error(r, "nested more than %d deep", READER_DEPTH_MAX);
            return;
        }
        include_one(r, l->words[i].text);
    }
}

bool
file_values(struct reader *r, struct span path, struct buf *out)
{
    char *full = beside(r, path);
    const char *why = read_file(r, full, false, out);

    if (why)
        reader_error(r, "%.300s: %s", full, why);
    return why == NULL;
}
