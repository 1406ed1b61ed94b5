/* tools/predict.d/study.c - the arms, one after the other over the same plan. */
#include "tools/predict.d/study.h"

#include "base/check.h"

/* What the arm without persistence is watched with. */
struct watch {
    struct level_track all, requests, tunnels, held;
    struct minutes *minutes;
};

static void
watch_off(void *arg, int64_t from_us, int64_t until_us, const struct fd_levels *l)
{
    struct watch *w = arg;

    level_track_add(&w->all, from_us, until_us, l->requests + l->tunnels);
    level_track_add(&w->requests, from_us, until_us, l->requests);
    level_track_add(&w->tunnels, from_us, until_us, l->tunnels);
    level_track_add(&w->held, from_us, until_us, fd_levels_sum(l));
    minutes_add(w->minutes, from_us, until_us, l);
}

static void
watch_held(void *arg, int64_t from_us, int64_t until_us, const struct fd_levels *l)
{
    level_track_add(arg, from_us, until_us, fd_levels_sum(l));
}

static void
run_off(struct study *s, struct fd_plan *plan)
{
    struct watch w = {.minutes = &s->minutes};
    struct arm *arm = &s->arms[s->n_arms++];
    struct fd_model off = {0, 0};

    arm->persistence = PERSIST_OFF;
    arm->need = fd_plan_predict(plan, &off, watch_off, &w);
    arm->held = level_track_end(&w.held);
    s->all = level_track_end(&w.all);
    s->requests = level_track_end(&w.requests);
    s->tunnels = level_track_end(&w.tunnels);
    minutes_end(&s->minutes);
}

static void
run_persistent(struct study *s, struct fd_plan *plan, enum persistence p, struct idle_timeout idle)
{
    struct level_track held = {0};
    struct arm *arm = &s->arms[s->n_arms++];
    struct fd_model m = {p == PERSIST_SERVER ? 0 : idle.client_us,
                         p == PERSIST_CLIENT ? 0 : idle.server_us};

    arm->persistence = p;
    arm->idle = idle;
    arm->need = fd_plan_predict(plan, &m, watch_held, &held);
    arm->held = level_track_end(&held);
}

static void
run_arms(struct study *s, struct gathered *g, const struct study_options *o)
{
    struct fd_plan *plan = fd_plan_new(g->requests, g->n);

    fd_plan_span(plan, &s->first_us, &s->last_us);
    run_off(s, plan);
    minutes_count(&s->minutes, g->requests, g->n);
    s->busiest = minutes_busiest_hour(&s->minutes);
    for (unsigned i = 0; i < o->n_idles; i++)
        for (enum persistence p = PERSIST_CLIENT; p <= PERSIST_BOTH; p++)
            run_persistent(s, plan, p, o->idles[i]);
    fd_plan_free(&plan);
}

static void
make_curve(struct study *s, const struct reuse *r, const struct study_options *o)
{
    for (unsigned i = 0; i < o->n_marks; i++) {
        struct curve_point *p = &s->curve[s->n_curve++];
        double unique = (double)r->unique_bytes;

        p->bytes =
            o->marks[i].bytes ? o->marks[i].bytes : (uint64_t)(unique * o->marks[i].percent / 100);
        p->percent = unique > 0 ? 100 * (double)p->bytes / unique : 0;
        reuse_lru_at(r, p->bytes, &p->hits, &p->hit_bytes);
    }
}

struct study *
study_make(struct gathered *g, const struct study_options *o)
{
    struct study *s = mem_zalloc(sizeof(*s));

    s->has_times = g->n > 0 && !g->is_ordered;
    s->has_durations = g->durations_us.n > 0 || o->gather.delay_us > 0;
    if (s->has_times && s->has_durations)
        run_arms(s, g, o);
    make_curve(s, g->reuse, o);
    return s;
}

const char *
persistence_name(enum persistence p)
{
    static const char *const names[] = {"off", "client", "server", "both"};

    return names[p];
}

void
study_free(struct study **held)
{
    struct study *s = *held;

    if (s == NULL)
        return;
    *held = NULL;
    minutes_free(&s->minutes);
    mem_free(s);
}
