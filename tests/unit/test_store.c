/* tests/unit/test_store.c - the front door: lookup, reserve, publish, freshen, abandon, eviction
 * (cache/store.h). */
#include "tests/unit/heads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cache/store.h"
#include "cache/vary.h"

#define MB (UINT64_C(1024) * 1024)

static struct loop *loop;
static struct store *store;
static bool miss;

/* ---- the world: one store, requests and responses in words ---- */

static int
world_make(void **state)
{
    loop = loop_new(LOOP_AUTO);
    return heads_init(state);
}

static int
world_unmake(void **state)
{
    loop_free(loop);
    return heads_free(state);
}

static int
store_make(void **state)
{
    clock_fake(T0 * 1000, M0);
    store = store_new(&(struct store_options){.limit_bytes = 64 * MB, .shards = 1});
    return 0;
}

/* Everything that was charged is given back. */
static int
store_unmake(void **state)
{
    struct store_stats stats;

    clock_fake(T0 * 1000, M0 + 1000 * 3600);
    store_purge_all(store);
    store_stats(store, &stats);
    if (stats.entries != 0)
        return 1;
    store_free(&store);
    clock_fake(-1, -1);
    while (heads_n)
        head_unref(&heads_made[--heads_n]);
    return 0;
}

static struct cache_key
key(const char *uri)
{
    return cache_key_of(span_str(uri));
}

static struct entry *
lookup(const char *uri, const char *fields)
{
    struct cache_key k = key(uri);
    struct request_head r = request(.fields = fields);

    return store_lookup(store, &k, &r, &miss);
}

static bool
has(const char *uri)
{
    struct entry *e = lookup(uri, NULL);

    if (e == NULL)
        return false;
    entry_unref(&e);
    return true;
}

/* A complete entry of n bytes, as brought by a request with these fields. */
static struct entry *
entry_of(const char *response_fields, const char *request_fields, size_t n)
{
    struct request_head request = request(.fields = request_fields);
    struct head *h = stored_response(.fields = response_fields);
    struct body *b = body_new(BODY_KEEP, n, NULL, NULL);
    struct span spec;
    bool never;

    spec = vary_spec(&h->fields, &request.fields, &heads_arena, &never);
    assert_false(never);
    head_ref(h);
    while (body_published(b) < n) {
        size_t room;
        char *to = body_room(b, &room);

        memset(to, 'x', room);
        body_commit(b, room);
    }
    body_complete(b, SPAN_NONE);
    return entry_new(&h, &b, spec, n);
}

static struct entry *
put_entry(const char *uri, struct entry *e)
{
    struct cache_key k = key(uri);
    struct request_head r = request(.fields = NULL);
    struct ticket *t;

    assert_int_equal(store_reserve(store, &k, &r, false, NULL, &t), RESERVE_LEAD);
    store_publish(store, &t, e, SHARE_ALL);
    assert_null(t);
    return e;
}

static void
put(const char *uri, const char *response_fields, const char *request_fields, size_t n)
{
    struct entry *e = put_entry(uri, entry_of(response_fields, request_fields, n));

    entry_unref(&e);
}

static void
at(int64_t seconds)
{
    clock_fake((T0 + seconds) * 1000, AT(seconds));
}

static struct store_stats
stats(void)
{
    struct store_stats out;

    store_stats(store, &out);
    return out;
}

/* A request that may have to wait. */
struct asker {
    struct request_head request;
    struct store_waiter w;
    struct loop_task task;
    struct ticket *ticket;
    int runs;
};

static void
asker_runs(void *owner)
{
    ((struct asker *)owner)->runs++;
}

static enum reserve
ask(struct asker *a, const char *uri, const char *fields)
{
    struct cache_key k = key(uri);

    *a = (struct asker){.request = request(.fields = fields)};
    loop_task_init(&a->task, asker_runs, a);
    a->w.loop = loop;
    a->w.task = &a->task;
    return store_reserve(store, &k, &a->request, true, &a->w, &a->ticket);
}

static void
loop_ends(void *owner)
{
    loop_stop(loop);
}

static int
runs_of(struct asker *a)
{
    struct loop_task stopper;

    loop_task_init(&stopper, loop_ends, NULL);
    loop_post(loop, &stopper);
    loop_run(loop);
    return a->runs;
}

static void
give_up(struct ticket *t)
{
    store_abandon(store, &t, SHARE_ALL);
}

/* ---- finding ---- */

static void
what_was_published_is_found_under_its_uri_only(void **state)
{
    struct entry *e;

    put("http://a/", DATE_T0, NULL, 10);
    e = lookup("http://a/", NULL);
    assert_non_null(e);
    assert_int_equal(e->length, 10);
    assert_int_equal(body_published(e->body), 10);
    entry_unref(&e);
    assert_false(has("http://a/b"));
    assert_false(miss);
}

/* The digest finds the place, the text decides. */
static void
equal_digests_of_different_uris_are_kept_apart(void **state)
{
    struct cache_key a = {{1, 1}, SPAN("http://a/")}, b = {{1, 1}, SPAN("http://b/")};
    struct request_head r = request(.fields = NULL);
    struct entry *e = entry_of(DATE_T0, NULL, 1), *found;
    struct ticket *t;

    store_reserve(store, &a, &r, false, NULL, &t);
    store_publish(store, &t, e, SHARE_ALL);
    assert_null(store_lookup(store, &b, &r, &miss));
    found = store_lookup(store, &a, &r, &miss);
    assert_ptr_equal(found, e);
    entry_unref(&found);
    entry_unref(&e);
}

/* RFC 9111 section 4.1. */
static void
a_variant_is_selected_by_the_fields_that_vary_names(void **state)
{
    struct entry *e;

    put("http://a/", DATE_T0 "Vary: Accept-Language\r\n", "Accept-Language: de\r\n", 1);
    put("http://a/", DATE_T0 "Vary: Accept-Language\r\n", "Accept-Language: en\r\n", 2);
    assert_int_equal(stats().entries, 2);
    assert_int_equal(stats().nodes, 1);
    e = lookup("http://a/", "Accept-Language: DE\r\nCookie: x\r\n");
    assert_int_equal(e->length, 1);
    assert_false(miss);
    entry_unref(&e);
    assert_null(lookup("http://a/", "Accept-Language: fr\r\n"));
    assert_true(miss);
    assert_null(lookup("http://a/", NULL));
}

/* RFC 9111 section 4: the most recent response by Date, not by arrival. */
static void
of_several_that_fit_the_most_recent_by_date_is_used(void **state)
{
    struct entry *e;

    put("http://a/", "Date: Tue, 01 Jan 2030 00:00:09 GMT\r\nVary: Accept\r\n", NULL, 1);
    put("http://a/", "Date: Tue, 01 Jan 2030 00:00:05 GMT\r\nVary: Cookie\r\n", NULL, 2);
    e = lookup("http://a/", NULL);
    assert_int_equal(e->length, 1);
    entry_unref(&e);
    put("http://a/", "Date: Tue, 01 Jan 2030 00:00:09 GMT\r\n", NULL, 3);
    e = lookup("http://a/", NULL);
    assert_int_equal(e->length, 3); /* equal Dates: by arrival */
    entry_unref(&e);
    assert_int_equal(stats().entries, 3);
}

static void
a_new_response_replaces_the_variant_with_equal_values(void **state)
{
    struct entry *old, *now;

    put("http://a/", DATE_T0, NULL, 1);
    old = lookup("http://a/", NULL);
    put("http://a/", DATE_T0, NULL, 2);
    now = lookup("http://a/", NULL);
    assert_int_equal(now->length, 2);
    assert_null(old->node);
    assert_int_equal(body_published(old->body), 1); /* its readers go on */
    assert_int_equal(stats().entries, 1);
    entry_unref(&old);
    entry_unref(&now);
}

static void
the_variants_of_one_key_are_bounded(void **state)
{
    char fields[64];

    for (int i = 0; i < 100; i++) {
        snprintf(fields, sizeof fields, "User-Agent: %d\r\n", i);
        at(i);
        put("http://a/", DATE_T0 "Vary: User-Agent\r\n", fields, 1);
    }
    assert_int_equal(stats().entries, 64);
    assert_null(lookup("http://a/", "User-Agent: 35\r\n"));
    for (int i = 36; i < 100; i++) {
        struct entry *e;

        snprintf(fields, sizeof fields, "User-Agent: %d\r\n", i);
        e = lookup("http://a/", fields);
        assert_non_null(e);
        entry_unref(&e);
    }
}

/* RFC 9111 section 4.3.1. */
static void
variants_with_a_validator_are_listed(void **state)
{
    struct cache_key k = key("http://a/"), other = key("http://b/");
    struct entry *out[8];

    put("http://a/", "ETag: \"1\"\r\nVary: Accept\r\n", "Accept: a\r\n", 1);
    put("http://a/", "Vary: Accept\r\n", "Accept: b\r\n", 1);
    put("http://a/", "Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\nVary: Accept\r\n",
        "Accept: c\r\n", 1);
    assert_int_equal(store_variants(store, &other, out, 8), 0);
    assert_int_equal(store_variants(store, &k, out, 1), 1);
    entry_unref(&out[0]);
    assert_int_equal(store_variants(store, &k, out, 8), 2);
    entry_unref(&out[0]);
    entry_unref(&out[1]);
}

static void
what_cannot_be_used_any_more_is_not_found(void **state)
{
    for (int fails = 0; fails < 2; fails++) {
        struct head *h = stored_response(.fields = DATE_T0);
        struct body *b = body_new(BODY_KEEP, 100, NULL, NULL);
        struct entry *e;

        head_ref(h);
        e = put_entry("http://a/", entry_new(&h, &b, SPAN_NONE, 100));
        assert_true(has("http://a/")); /* while it is being filled */
        if (fails)
            body_fail(e->body, FAULT_SERVER_READ);
        else
            body_pass(e->body);
        assert_false(has("http://a/"));
        assert_false(miss);
        store_withdraw(store, e);
        store_withdraw(store, e);
        assert_int_equal(stats().nodes, 0);
        assert_int_equal(stats().bytes, 0);
        entry_unref(&e);
    }
}

static void
thousands_of_keys_are_found_while_the_table_grows_and_after_it_shrank(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0);
    char uri[64];

    for (int i = 0; i < 5000; i++) {
        struct body *b = body_new(BODY_KEEP, 1, NULL, NULL);
        struct head *mine = h;
        struct entry *e;

        head_ref(h);
        snprintf(uri, sizeof uri, "http://a/%d", i);
        e = put_entry(uri, entry_new(&mine, &b, SPAN_NONE, 1));
        entry_unref(&e);
        snprintf(uri, sizeof uri, "http://a/%d", i / 2);
        assert_true(has(uri));
    }
    for (int i = 0; i < 5000; i += 2) {
        struct cache_key k;

        snprintf(uri, sizeof uri, "http://a/%d", i);
        k = key(uri);
        assert_int_equal(store_invalidate(store, &k), 1);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_int_equal(has(uri), i % 2);
    }
    assert_int_equal(stats().nodes, 2500);
}

/* ---- collapsing (RFC 9111 section 4) ---- */

static void
the_second_request_waits_and_gets_what_the_first_brings(void **state)
{
    struct asker a, b;
    struct entry *e = entry_of(DATE_T0, NULL, 5);

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    assert_null(b.ticket);
    assert_non_null(b.w.node);
    store_publish(store, &a.ticket, e, SHARE_ALL);
    assert_null(a.ticket);
    assert_int_equal(runs_of(&b), 1);
    assert_null(b.w.node);
    assert_ptr_equal(b.w.entry, e);
    store_wait_cancel(store, &b.w); /* drops the reference */
    assert_null(b.w.entry);
    entry_unref(&e);
    assert_true(has("http://a/"));
}

static void
a_waiter_that_does_not_select_the_answer_tries_again(void **state)
{
    struct asker a, same, other;
    struct entry *e = entry_of(DATE_T0 "Vary: Accept\r\n", "Accept: a\r\n", 5);

    assert_int_equal(ask(&a, "http://a/", "Accept: a\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&same, "http://a/", "Accept: a\r\n"), RESERVE_WAIT);
    assert_int_equal(ask(&other, "http://a/", "Accept: b\r\n"), RESERVE_WAIT);
    store_publish(store, &a.ticket, e, SHARE_ALL);
    assert_int_equal(runs_of(&same), 1);
    assert_int_equal(runs_of(&other), 1);
    assert_ptr_equal(same.w.entry, e);
    assert_null(other.w.entry);
    assert_null(other.w.node);
    store_wait_cancel(store, &same.w);
    entry_unref(&e);
    assert_int_equal(ask(&other, "http://a/", "Accept: b\r\n"), RESERVE_LEAD);
    give_up(other.ticket);
}

static void
once_vary_is_known_only_equal_requests_are_collapsed(void **state)
{
    struct asker a, b, again;

    put("http://a/", DATE_T0 "Vary: Accept, Cookie\r\n", "Accept: x\r\n", 1);
    assert_int_equal(ask(&a, "http://a/", "Accept: a\r\nCookie: 1\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", "Accept: b\r\nCookie: 1\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&again, "http://a/", "Cookie: 1\r\nAccept: b\r\nHost: h\r\n"),
                     RESERVE_WAIT);
    give_up(a.ticket);
    assert_int_equal(runs_of(&again), 0);
    give_up(b.ticket);
    assert_int_equal(runs_of(&again), 1);
    assert_null(again.w.entry);
}

static void
vary_is_remembered_while_a_fill_keeps_the_key(void **state)
{
    struct cache_key k = key("http://a/");
    struct asker a, b;

    put("http://a/", DATE_T0 "Vary: Accept\r\n", "Accept: x\r\n", 1);
    assert_int_equal(ask(&a, "http://a/", "Accept: a\r\n"), RESERVE_LEAD);
    assert_int_equal(store_invalidate(store, &k), 1);
    give_up(a.ticket);
    assert_int_equal(stats().nodes, 0);
    assert_int_equal(ask(&a, "http://a/", "Accept: a\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", "Accept: b\r\n"), RESERVE_WAIT); /* forgotten */
    store_wait_cancel(store, &b.w);
    give_up(a.ticket);
}

static void
who_does_not_collapse_leads_and_nobody_waits_for_it(void **state)
{
    struct cache_key k = key("http://a/");
    struct request_head r = request(.fields = NULL);
    struct store_waiter w = {0};
    struct ticket *alone;
    struct asker a, b;

    assert_int_equal(store_reserve(store, &k, &r, false, &w, &alone), RESERVE_LEAD);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    give_up(alone);
    assert_int_equal(runs_of(&b), 0);
    give_up(a.ticket);
    assert_int_equal(runs_of(&b), 1);
    assert_int_equal(stats().nodes, 0);
}

static void
an_abandoned_fill_sends_its_waiters_to_try_again(void **state)
{
    struct asker a, b, c;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    assert_int_equal(ask(&c, "http://a/", NULL), RESERVE_WAIT);
    give_up(a.ticket);
    assert_int_equal(runs_of(&b) + c.runs, 2);
    assert_null(b.w.entry);
    assert_int_equal(stats().nodes, 0);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&c, "http://a/", NULL), RESERVE_WAIT);
    give_up(b.ticket);
    runs_of(&c);
}

/* The waiters are told what happened, and judge. */
static void
a_stale_response_in_place_of_a_failure_is_shown_to_the_waiters(void **state)
{
    struct asker a, b, other;
    struct entry *e = entry_of(DATE_T0 "Vary: Accept\r\n", "Accept: a\r\n", 5);

    assert_int_equal(ask(&a, "http://a/", "Accept: a\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", "Accept: a\r\n"), RESERVE_WAIT);
    assert_int_equal(ask(&other, "http://a/", "Accept: b\r\n"), RESERVE_WAIT);
    store_stand_in(store, &a.ticket, e, 503);
    assert_int_equal(runs_of(&b), 1);
    assert_ptr_equal(b.w.entry, e);
    assert_true(b.w.failed);
    assert_int_equal(b.w.status, 503);
    assert_null(other.w.entry);
    assert_false(has("http://a/"));
    store_wait_cancel(store, &b.w);
    entry_unref(&e);
}

static void
waiters_are_told_whether_the_leader_had_credentials(void **state)
{
    static const struct {
        const char *fields;
        bool anonymous;
    } leaders[] = {{NULL, true},
                   {"Accept: a\r\n", true},
                   {"Cookie: a\r\n", false},
                   {"Authorization: a\r\n", false}};

    for (unsigned i = 0; i < sizeof leaders / sizeof leaders[0]; i++) {
        struct entry *e = entry_of(DATE_T0, NULL, 5);
        struct asker a, b;

        assert_int_equal(ask(&a, "http://a/", leaders[i].fields), RESERVE_LEAD);
        assert_int_equal(ask(&b, "http://a/", "Cookie: b\r\n"), RESERVE_WAIT);
        store_publish(store, &a.ticket, e, SHARE_ALL);
        assert_int_equal(runs_of(&b), 1);
        assert_ptr_equal(b.w.entry, e);
        assert_int_equal(b.w.by_anonymous, leaders[i].anonymous);
        assert_false(b.w.failed);
        store_wait_cancel(store, &b.w);
        entry_unref(&e);
    }
}

static void
what_is_stale_on_arrival_is_waited_for_without_credentials_only(void **state)
{
    struct entry *e = entry_of(DATE_T0 "Cache-Control: max-age=0\r\n", NULL, 5);
    struct entry *fresh = entry_of(DATE_T0 "Cache-Control: max-age=9\r\n", NULL, 5);
    struct asker a, b, user;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    store_publish(store, &a.ticket, e, SHARE_ANONYMOUS);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    assert_int_equal(ask(&user, "http://a/", "Cookie: a\r\n"), RESERVE_LEAD);
    give_up(user.ticket);
    store_publish(store, &a.ticket, fresh, SHARE_ALL);
    assert_int_equal(runs_of(&b), 1);
    store_wait_cancel(store, &b.w);
    assert_int_equal(ask(&a, "http://a/", "Cookie: a\r\n"), RESERVE_LEAD);
    assert_int_equal(ask(&user, "http://a/", "Cookie: b\r\n"), RESERVE_WAIT);
    store_wait_cancel(store, &user.w);
    give_up(a.ticket);
    entry_unref(&fresh);
    entry_unref(&e);
}

static void
a_published_response_that_is_for_nobody_else_is_not_waited_for(void **state)
{
    struct entry *e = entry_of(DATE_T0 "ETag: \"1\"\r\nCache-Control: no-cache\r\n", NULL, 5);
    struct asker a, b;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    store_publish(store, &a.ticket, e, SHARE_NONE);
    assert_true(has("http://a/"));
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_LEAD);
    give_up(a.ticket);
    give_up(b.ticket);
    entry_unref(&e);
}

/* Who waits leaves by the clock; who comes then starts anew, and others join that. */
static void
nobody_joins_a_fetch_that_takes_too_long(void **state)
{
    struct asker a, b, later, last;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    at(4);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    assert_int_equal(b.w.until_ms, AT(0) + STORE_PATIENCE_MS);
    at(5);
    assert_int_equal(ask(&later, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&last, "http://a/", NULL), RESERVE_WAIT);
    give_up(later.ticket);
    assert_int_equal(runs_of(&last), 1);
    assert_int_equal(b.runs, 0);
    store_wait_cancel(store, &b.w);
    give_up(a.ticket);
}

static void
a_key_that_is_not_shareable_goes_uncollapsed_for_a_while(void **state)
{
    struct asker a, b;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    store_abandon(store, &a.ticket, SHARE_NONE);
    assert_int_equal(stats().nodes, 1);
    at(9);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_LEAD);
    give_up(a.ticket);
    give_up(b.ticket);
    at(11);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    store_wait_cancel(store, &b.w);
    give_up(a.ticket);
    assert_int_equal(stats().nodes, 0);
}

static void
a_response_that_can_be_stored_ends_that_memory(void **state)
{
    struct asker a, b;

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    store_abandon(store, &a.ticket, SHARE_NONE);
    put("http://a/", DATE_T0, NULL, 1);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    store_wait_cancel(store, &b.w);
    give_up(a.ticket);
}

/* Strangers choose the keys. */
static void
memories_of_unshareable_keys_are_bounded_in_number_and_bytes(void **state)
{
    static char uri[9000];
    struct asker a;

    for (int i = 0; i < 5000; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_int_equal(ask(&a, uri, NULL), RESERVE_LEAD);
        store_abandon(store, &a.ticket, SHARE_NONE);
    }
    assert_int_equal(stats().nodes, 4096);
    for (int i = 0; i < 300; i++) {
        memset(uri, 'a', sizeof uri - 1);
        uri[i] = 'b';
        assert_int_equal(ask(&a, uri, NULL), RESERVE_LEAD);
        store_abandon(store, &a.ticket, SHARE_NONE);
    }
    assert_in_range(stats().bytes, 1, MB);
    at(60);
    assert_int_equal(ask(&a, "http://c/", NULL), RESERVE_LEAD);
    store_abandon(store, &a.ticket, SHARE_NONE);
    assert_int_equal(stats().nodes, 1); /* the expired ones went with it */
}

static void
a_waiter_can_leave_before_and_after_it_is_woken(void **state)
{
    struct asker a, before, after;
    struct entry *e = entry_of(DATE_T0, NULL, 5);

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&before, "http://a/", NULL), RESERVE_WAIT);
    assert_int_equal(ask(&after, "http://a/", NULL), RESERVE_WAIT);
    store_wait_cancel(store, &before.w);
    store_wait_cancel(store, &before.w);
    store_publish(store, &a.ticket, e, SHARE_ALL);
    store_wait_cancel(store, &after.w);
    loop_task_cancel(loop, &after.task);
    assert_int_equal(runs_of(&before), 0);
    assert_int_equal(after.runs, 0);
    assert_null(after.w.entry);
    entry_unref(&e); /* a leak would show */
}

/* ---- freshening (RFC 9111 section 4.3.4) ---- */

static struct entry *
freshened_entry(const struct entry *old, const char *fields)
{
    struct head *h = freshened(old->head, .fields = fields);

    head_ref(h);
    return entry_freshened(old, &h);
}

static void
a_304_swaps_the_head_and_wakes_the_waiters(void **state)
{
    struct asker a, b;
    struct entry *old, *fresh, *found;

    put("http://a/", DATE_T0 "ETag: \"1\"\r\n", NULL, 5);
    old = lookup("http://a/", NULL);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&b, "http://a/", NULL), RESERVE_WAIT);
    fresh = freshened_entry(old, "Cache-Control: max-age=60\r\n");
    store_freshen(store, &a.ticket, old, fresh, SHARE_ALL);
    assert_null(a.ticket);
    assert_null(old->node);
    assert_int_equal(runs_of(&b), 1);
    assert_ptr_equal(b.w.entry, fresh);
    found = lookup("http://a/", NULL);
    assert_ptr_equal(found, fresh);
    assert_ptr_equal(found->body, old->body);
    assert_int_equal(stats().entries, 1);
    store_wait_cancel(store, &b.w);
    entry_unref(&found);
    entry_unref(&old);
    entry_unref(&fresh);
}

static void
freshening_brings_back_what_was_evicted_meanwhile(void **state)
{
    struct asker a;
    struct entry *old, *fresh;

    put("http://a/", DATE_T0, NULL, 5);
    old = lookup("http://a/", NULL);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    store_withdraw(store, old);
    fresh = freshened_entry(old, DATE_T0);
    store_freshen(store, &a.ticket, old, fresh, SHARE_ALL);
    assert_true(has("http://a/"));
    entry_unref(&old);
    entry_unref(&fresh);
}

static void
freshening_does_not_displace_a_newer_response(void **state)
{
    struct asker a;
    struct entry *old, *fresh, *found;

    put("http://a/", DATE_T0, NULL, 5);
    old = lookup("http://a/", NULL);
    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    put("http://a/", DATE_T0, NULL, 6);
    fresh = freshened_entry(old, DATE_T0);
    store_freshen(store, &a.ticket, old, fresh, SHARE_ALL);
    found = lookup("http://a/", NULL);
    assert_int_equal(found->length, 6);
    entry_unref(&found);
    entry_unref(&old);
    entry_unref(&fresh);
}

/* ---- invalidation (RFC 9111 section 4.4) ---- */

static void
invalidation_removes_all_variants(void **state)
{
    struct cache_key k = key("http://a/"), none = key("http://none/");

    put("http://a/", DATE_T0 "Vary: Accept\r\n", "Accept: a\r\n", 1);
    put("http://a/", DATE_T0 "Vary: Accept\r\n", "Accept: b\r\n", 1);
    put("http://b/", DATE_T0, NULL, 1);
    assert_int_equal(store_invalidate(store, &k), 2);
    assert_int_equal(store_invalidate(store, &k), 0);
    assert_int_equal(store_invalidate(store, &none), 0);
    assert_int_equal(stats().nodes, 1);
    assert_true(has("http://b/"));
}

static void
what_was_under_way_when_its_key_was_invalidated_is_not_stored(void **state)
{
    struct cache_key k = key("http://a/");
    struct asker a, before, after;
    struct entry *e = entry_of(DATE_T0, NULL, 5);

    assert_int_equal(ask(&a, "http://a/", NULL), RESERVE_LEAD);
    assert_int_equal(ask(&before, "http://a/", NULL), RESERVE_WAIT);
    store_invalidate(store, &k);
    assert_int_equal(ask(&after, "http://a/", NULL), RESERVE_LEAD); /* does not join it either */
    store_publish(store, &a.ticket, e, SHARE_ALL);
    assert_int_equal(runs_of(&before), 1);
    assert_ptr_equal(before.w.entry, e);
    assert_false(has("http://a/"));
    store_wait_cancel(store, &before.w);
    give_up(after.ticket);
    entry_unref(&e);
}

/* ---- eviction ---- */

static void
the_least_recently_used_gives_way(void **state)
{
    char uri[64];

    store_limit(store, MB);
    for (int i = 0; i < 9; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        put(uri, DATE_T0, NULL, 100000);
    }
    assert_int_equal(stats().entries, 9);
    assert_true(has("http://a/0"));
    put("http://a/9", DATE_T0, NULL, 100000);
    put("http://a/10", DATE_T0, NULL, 200000);
    assert_true(has("http://a/0"));
    assert_false(has("http://a/1"));
    assert_false(has("http://a/2"));
    assert_true(has("http://a/3"));
    assert_true(has("http://a/10"));
    assert_int_equal(stats().evicted, 2);
    assert_in_range(stats().bytes, 1, MB);
    assert_int_equal(stats().nodes, stats().entries);
}

static void
the_shard_with_the_oldest_entry_gives_way_first(void **state)
{
    char uri[64];

    store_free(&store);
    store = store_new(&(struct store_options){.limit_bytes = 64 * MB, .shards = 4});
    for (int i = 0; i < 20; i++) {
        at(i);
        snprintf(uri, sizeof uri, "http://a/%d", i);
        put(uri, DATE_T0, NULL, 100000);
    }
    at(20);
    assert_true(has("http://a/0"));
    store_limit(store, 1040000);
    for (int i = 0; i < 20; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i);
        assert_int_equal(has(uri), i == 0 || i > 11 || (i == 11 && stats().entries == 10));
    }
    assert_int_equal(stats().evicted, 20 - stats().entries);
}

/* The second word of a digest picks the shard. */
static void
a_use_is_known_to_the_choice_between_shards(void **state)
{
    struct cache_key keys[3] = {
        {{1, 0}, SPAN("http://a/")}, {{2, 1}, SPAN("http://b/")}, {{3, 0}, SPAN("http://c/")}};
    struct request_head r = request(.fields = NULL);
    struct entry *e;

    store_free(&store);
    store = store_new(&(struct store_options){.limit_bytes = 64 * MB, .shards = 2});
    for (int i = 0; i < 3; i++) {
        struct ticket *t;

        at(i);
        store_reserve(store, &keys[i], &r, false, NULL, &t);
        e = entry_of(DATE_T0, NULL, 1000);
        store_publish(store, &t, e, SHARE_ALL);
        entry_unref(&e);
    }
    at(3);
    e = store_lookup(store, &keys[0], &r, &miss);
    entry_unref(&e);
    store_limit(store, stats().bytes - 1);
    assert_int_equal(stats().entries, 2);
    assert_null(store_lookup(store, &keys[1], &r, &miss));
}

static void
a_body_is_charged_when_it_has_grown(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0);
    struct body *b = body_new(BODY_KEEP, UINT64_MAX, NULL, NULL);
    struct entry *e;
    uint64_t before;

    head_ref(h);
    put("http://old/", DATE_T0, NULL, 300000);
    e = put_entry("http://a/", entry_new(&h, &b, SPAN_NONE, UINT64_MAX));
    before = stats().bytes;
    for (int i = 0; i < 5000; i++)
        body_append(e->body,
                    SPAN("0123456789012345678901234567890123456789012345678901234567890123456789"));
    body_complete(e->body, SPAN_NONE);
    assert_int_equal(stats().bytes, before);
    store_limit(store, 600000);
    store_charge(store, e);
    assert_in_range(stats().bytes, 350000, 450000);
    assert_false(has("http://old/"));
    assert_true(has("http://a/"));
    store_charge(store, e); /* again changes nothing */
    assert_in_range(stats().bytes, 350000, 450000);
    entry_unref(&e);
}

static void
what_is_larger_than_the_cache_pushes_nothing_out(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0);
    struct body *b = body_new(BODY_KEEP, 2 * MB, NULL, NULL);
    struct entry *grows;

    head_ref(h);
    store_limit(store, MB);
    put("http://small/", DATE_T0, NULL, 1000);
    put("http://large/", DATE_T0, NULL, 2 * MB);
    assert_false(has("http://large/"));
    grows = put_entry("http://grows/", entry_new(&h, &b, SPAN_NONE, 2 * MB));
    assert_true(has("http://grows/"));
    for (uint64_t n = 0; n < 2 * MB;) {
        size_t room;

        memset(body_room(grows->body, &room), 'x', 1);
        body_commit(grows->body, room);
        n += room;
    }
    store_charge(store, grows);
    assert_false(has("http://grows/"));
    assert_true(has("http://small/"));
    assert_int_equal(stats().evicted, 0);
    body_complete(grows->body, SPAN_NONE);
    entry_unref(&grows);
}

static void
a_reader_keeps_what_was_evicted(void **state)
{
    struct entry *e;

    put("http://a/", DATE_T0, NULL, 1000);
    e = lookup("http://a/", NULL);
    store_limit(store, 100);
    assert_false(has("http://a/"));
    assert_int_equal(stats().bytes, 0);
    assert_int_equal(body_published(e->body), 1000);
    entry_unref(&e);
    store_limit(store, 64 * MB);
}

static void
purging_leaves_nothing_charged(void **state)
{
    char uri[64], fields[64];

    for (int i = 0; i < 400; i++) {
        snprintf(uri, sizeof uri, "http://a/%d", i / 2);
        snprintf(fields, sizeof fields, "Cookie: %d\r\n", i % 2);
        put(uri, DATE_T0 "Vary: Cookie, Accept\r\n", fields, (size_t)i);
    }
    assert_int_equal(stats().nodes, 200);
    assert_true(stats().bytes > 400 * 200);
    store_purge_all(store);
    assert_int_equal(stats().entries, 0);
    assert_int_equal(stats().nodes, 0);
    assert_int_equal(stats().bytes, 0);
}

static void
count_entry(void *arg, struct span uri, const struct entry *e)
{
    assert_true(span_starts(uri, SPAN("http://a/")));
    assert_int_equal(e->length, 7);
    ++*(int *)arg;
}

static void
each_entry_is_shown_with_its_uri(void **state)
{
    int n = 0;

    put("http://a/1", DATE_T0, NULL, 7);
    put("http://a/2", DATE_T0, NULL, 7);
    put("http://a/3", DATE_T0, NULL, 7);
    store_each(store, count_entry, &n, 2);
    assert_int_equal(n, 2);
    store_each(store, count_entry, &n, 100);
    assert_int_equal(n, 5);
}

/* ---- threads ---- */

enum { ACTORS = 4, KEYS = 24, LANGS = 3, STEPS = 6000, TICKETS = 4 };

/* Shared by all actors, made before they start. */
static struct head *plain_head, *varying_head;
static struct request_head lang_requests[LANGS];
static struct span lang_specs[LANGS];
static char uris[KEYS][32];

struct held {
    struct ticket *ticket;
    struct entry *old; /* being validated */
    unsigned key, lang;
};

/* Plays an exchange after the other: looks up, leads, waits, publishes, gives up. */
struct actor {
    struct loop *loop;
    struct loop_task task;
    struct store *store;
    struct store_waiter w;
    struct held held[TICKETS];
    pthread_t thread;
    unsigned n_held, seed, steps, key, lang, hits, woken, waited;
    bool waits;
};

static bool
key_varies(unsigned key)
{
    return key % 2;
}

/* The body says which key and language it was made for. */
static struct entry *
actor_entry(unsigned key, unsigned lang)
{
    struct head *h = key_varies(key) ? varying_head : plain_head;
    struct body *b = body_new(BODY_KEEP, 2 * sizeof key, NULL, NULL);
    struct entry *e;

    head_ref(h);
    body_append(b, span_of(&key, sizeof key));
    body_append(b, span_of(&lang, sizeof lang));
    body_complete(b, SPAN_NONE);
    e = entry_new(&h, &b, key_varies(key) ? lang_specs[lang] : SPAN_NONE, 2 * sizeof key);
    return e;
}

static void
entry_check(const struct entry *e, unsigned key, unsigned lang)
{
    struct body_reader r = {0};
    struct iovec run;
    unsigned was[2];
    int n;

    CHECK(body_reader_open(&r, e->body, 0, NULL, NULL));
    CHECK(body_reader_peek(&r, &run, 1, &n) == SOURCE_DATA && run.iov_len == sizeof was);
    memcpy(was, run.iov_base, sizeof was);
    CHECK(was[0] == key && (!key_varies(key) || was[1] == lang));
    body_reader_close(&r);
}

static unsigned
pick(struct actor *a, unsigned n)
{
    return (unsigned)rand_r(&a->seed) % n;
}

static void
held_freshen(struct actor *a, struct held *h)
{
    struct head *head = h->old->head;
    struct entry *fresh;

    head_ref(head);
    fresh = entry_freshened(h->old, &head);
    store_freshen(a->store, &h->ticket, h->old, fresh, SHARE_ALL);
    entry_unref(&fresh);
}

static void
end_empty(struct actor *a, struct held *h, struct entry *e)
{
    static const enum share shares[] = {SHARE_ALL, SHARE_ALL, SHARE_ALL,       SHARE_ALL,
                                        SHARE_ALL, SHARE_ALL, SHARE_ANONYMOUS, SHARE_NONE};

    if (pick(a, 2))
        store_stand_in(a->store, &h->ticket, e, 503);
    else
        store_abandon(a->store, &h->ticket, shares[pick(a, 8)]);
}

static void
held_end(struct actor *a)
{
    struct held h = a->held[--a->n_held];
    struct entry *e = actor_entry(h.key, h.lang);

    if (h.old)
        held_freshen(a, &h);
    else if (pick(a, 4))
        store_publish(a->store, &h.ticket, e, SHARE_ALL);
    else
        end_empty(a, &h, e);
    store_charge(a->store, e);
    if (pick(a, 16) == 0)
        store_withdraw(a->store, e);
    entry_unref(&e);
    if (h.old)
        entry_unref(&h.old);
}

static void
actor_reserves(struct actor *a, const struct cache_key *k, struct entry *old)
{
    struct ticket *t;

    if (a->n_held == TICKETS)
        held_end(a);
    a->w = (struct store_waiter){.loop = a->loop, .task = &a->task};
    if (store_reserve(a->store, k, &lang_requests[a->lang], pick(a, 8) != 0, &a->w, &t) ==
        RESERVE_LEAD) {
        a->held[a->n_held++] = (struct held){t, old, a->key, a->lang};
        return;
    }
    if (old)
        entry_unref(&old);
    a->waited++;
    /* Who leads somewhere must not wait: the others might wait for it. */
    if (a->n_held || pick(a, 8) == 0) {
        store_wait_cancel(a->store, &a->w);
        loop_task_cancel(a->loop, &a->task);
    } else {
        a->waits = true;
    }
}

static void
actor_asks(struct actor *a)
{
    struct cache_key k;
    struct entry *e;
    bool vary_miss;

    a->key = pick(a, KEYS);
    a->lang = pick(a, LANGS);
    k = cache_key_of(span_str(uris[a->key]));
    if (pick(a, 50) == 0)
        store_invalidate(a->store, &k);
    e = store_lookup(a->store, &k, &lang_requests[a->lang], &vary_miss);
    if (e) {
        a->hits++;
        entry_check(e, a->key, a->lang);
        if (pick(a, 4)) {
            entry_unref(&e);
            return;
        }
    }
    actor_reserves(a, &k, e);
}

static void
actor_woken(struct actor *a)
{
    a->waits = false;
    CHECK(a->w.node == NULL);
    if (a->w.entry) {
        a->woken++;
        entry_check(a->w.entry, a->key, a->lang);
        entry_unref(&a->w.entry);
    }
}

static void
actor_runs(void *owner)
{
    struct actor *a = owner;

    if (a->waits)
        actor_woken(a);
    for (int i = 0; i < 8 && !a->waits; i++) {
        if (a->n_held && pick(a, 2))
            held_end(a);
        else
            actor_asks(a);
        a->steps++;
    }
    if (a->waits)
        return;
    if (a->steps < STEPS) {
        loop_defer(a->loop, &a->task);
        return;
    }
    while (a->n_held)
        held_end(a);
    loop_stop(a->loop);
}

static void *
actor_thread(void *arg)
{
    struct actor *a = arg;

    loop_post(a->loop, &a->task);
    loop_run(a->loop);
    return NULL;
}

static void
actors_prepare(void)
{
    static const char *langs[LANGS] = {"Accept-Language: de\r\n", "Accept-Language: en\r\n", NULL};
    bool never;

    plain_head = stored_response(.fields = DATE_T0 "ETag: \"1\"\r\n");
    varying_head = stored_response(.fields = DATE_T0 "Vary: Accept-Language\r\n");
    for (unsigned i = 0; i < LANGS; i++) {
        lang_requests[i] = request(.fields = langs[i]);
        lang_specs[i] =
            vary_spec(&varying_head->fields, &lang_requests[i].fields, &heads_arena, &never);
    }
    for (unsigned i = 0; i < KEYS; i++)
        snprintf(uris[i], sizeof uris[i], "http://a/%u", i);
}

/* Exchanges on four threads over few keys, with a limit that makes them evict each other's entries.
 */
static void
threads_share_the_store(void **state)
{
    struct actor actors[ACTORS] = {0};
    unsigned hits = 0, waited = 0, woken = 0;

    clock_fake(-1, -1);
    actors_prepare();
    store_limit(store, 20000);
    for (unsigned i = 0; i < ACTORS; i++) {
        struct actor *a = &actors[i];

        a->store = store;
        a->seed = i + 1;
        a->loop = loop_new(LOOP_AUTO);
        loop_task_init(&a->task, actor_runs, a);
        pthread_create(&a->thread, NULL, actor_thread, a);
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        pthread_join(actors[i].thread, NULL);
        loop_free(actors[i].loop);
        hits += actors[i].hits;
        waited += actors[i].waited;
        woken += actors[i].woken;
    }
    assert_true(hits > 0 && waited > 0 && woken > 0);
    assert_true(stats().evicted > 0);
    assert_in_range(stats().bytes, 0, 20000);
    store_purge_all(store);
    assert_int_equal(stats().entries, 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, store_make, store_unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        test(what_was_published_is_found_under_its_uri_only),
        test(equal_digests_of_different_uris_are_kept_apart),
        test(a_variant_is_selected_by_the_fields_that_vary_names),
        test(of_several_that_fit_the_most_recent_by_date_is_used),
        test(a_new_response_replaces_the_variant_with_equal_values),
        test(the_variants_of_one_key_are_bounded),
        test(variants_with_a_validator_are_listed),
        test(what_cannot_be_used_any_more_is_not_found),
        test(thousands_of_keys_are_found_while_the_table_grows_and_after_it_shrank),
        test(the_second_request_waits_and_gets_what_the_first_brings),
        test(a_waiter_that_does_not_select_the_answer_tries_again),
        test(once_vary_is_known_only_equal_requests_are_collapsed),
        test(vary_is_remembered_while_a_fill_keeps_the_key),
        test(who_does_not_collapse_leads_and_nobody_waits_for_it),
        test(an_abandoned_fill_sends_its_waiters_to_try_again),
        test(a_stale_response_in_place_of_a_failure_is_shown_to_the_waiters),
        test(waiters_are_told_whether_the_leader_had_credentials),
        test(what_is_stale_on_arrival_is_waited_for_without_credentials_only),
        test(a_published_response_that_is_for_nobody_else_is_not_waited_for),
        test(nobody_joins_a_fetch_that_takes_too_long),
        test(a_key_that_is_not_shareable_goes_uncollapsed_for_a_while),
        test(a_response_that_can_be_stored_ends_that_memory),
        test(memories_of_unshareable_keys_are_bounded_in_number_and_bytes),
        test(a_waiter_can_leave_before_and_after_it_is_woken),
        test(a_304_swaps_the_head_and_wakes_the_waiters),
        test(freshening_brings_back_what_was_evicted_meanwhile),
        test(freshening_does_not_displace_a_newer_response),
        test(invalidation_removes_all_variants),
        test(what_was_under_way_when_its_key_was_invalidated_is_not_stored),
        test(the_least_recently_used_gives_way),
        test(the_shard_with_the_oldest_entry_gives_way_first),
        test(a_use_is_known_to_the_choice_between_shards),
        test(a_body_is_charged_when_it_has_grown),
        test(what_is_larger_than_the_cache_pushes_nothing_out),
        test(a_reader_keeps_what_was_evicted),
        test(purging_leaves_nothing_charged),
        test(each_entry_is_shown_with_its_uri),
        test(threads_share_the_store),
    };

    return cmocka_run_group_tests(tests, world_make, world_unmake);
}
