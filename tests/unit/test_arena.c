/* tests/unit/test_arena.c - one exchange's memory (base/arena.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"

static void
allocations_are_aligned_and_do_not_overlap(void **state)
{
    struct arena a;
    unsigned char *p[300];

    arena_init(&a, NULL, 0);
    for (unsigned i = 0; i < 300; i++) {
        p[i] = arena_alloc(&a, i);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)i & 0xff, i);
    }
    for (unsigned i = 0; i < 300; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_int_equal(p[i][k], i & 0xff);
        assert_true(i == 0 || p[i] != p[i - 1]);
    }
    arena_free(&a);
}

static void
the_lent_block_is_used_first_wherever_it_begins(void **state)
{
    _Alignas(16) char lent[256];
    struct arena a;

    for (unsigned off = 0; off < 16; off++) {
        char *p;

        arena_init(&a, lent + off, sizeof lent - off);
        p = arena_alloc(&a, 10);
        assert_true(p >= lent + off && p + 10 <= lent + sizeof lent);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_null(a.blocks);
        p = arena_alloc(&a, 500);
        assert_non_null(a.blocks);
        arena_free(&a);
        assert_null(a.blocks);
        p = arena_alloc(&a, 10);
        assert_true(p >= lent && p < lent + sizeof lent);
        arena_free(&a);
    }
}

static void
a_lent_block_too_small_to_align_is_left_alone(void **state)
{
    _Alignas(16) char lent[16] = "untouched";
    struct arena a;

    arena_init(&a, lent + 1, 3);
    memset(arena_alloc(&a, 2), 'x', 2);
    assert_string_equal(lent, "untouched");
    arena_free(&a);
}

/* One long field must not make the small ones after it open another block. */
static void
a_large_allocation_leaves_the_current_block_in_use(void **state)
{
    struct arena a;
    char *before, *after;

    arena_init(&a, NULL, 0);
    before = arena_alloc(&a, 16);
    memset(arena_alloc(&a, 100000), 'x', 100000);
    after = arena_alloc(&a, 16);
    assert_ptr_equal(after, before + 16);
    arena_free(&a);
}

static void
copies_are_the_arenas_own(void **state)
{
    char text[] = "Host: example.org";
    struct arena a;
    struct span copy, empty;
    char *str;

    arena_init(&a, NULL, 0);
    copy = arena_copy(&a, span_str(text));
    str = arena_str(&a, span_of(text, 4));
    empty = arena_copy(&a, SPAN_NONE);
    memset(text, '-', sizeof text - 1);
    assert_true(span_eq(copy, SPAN("Host: example.org")));
    assert_string_equal(str, "Host");
    assert_int_equal(empty.n, 0);
    assert_string_equal(arena_str(&a, SPAN_NONE), "");
    arena_free(&a);
}

static void
printf_takes_what_it_needs(void **state)
{
    struct arena a;
    struct span s;

    arena_init(&a, NULL, 0);
    s = arena_printf(&a, "%s=%05d", "age", 42);
    assert_true(span_eq(s, SPAN("age=00042")));
    s = arena_printf(&a, "%*d", 9000, 7);
    assert_int_equal(s.n, 9000);
    assert_int_equal(s.at[8999], '7');
    assert_int_equal(arena_printf(&a, "%s", "").n, 0);
    arena_free(&a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(the_lent_block_is_used_first_wherever_it_begins),
        cmocka_unit_test(a_lent_block_too_small_to_align_is_left_alone),
        cmocka_unit_test(a_large_allocation_leaves_the_current_block_in_use),
        cmocka_unit_test(copies_are_the_arenas_own),
        cmocka_unit_test(printf_takes_what_it_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
