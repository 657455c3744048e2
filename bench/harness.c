// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__OPTIMIZE__) && !defined(SANITIZED)
static const bool measurable = true;
#else
static const bool measurable = false;
#endif

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { MAX_ROUNDS = 101, MAX_VARIANTS = 8 };

// What one run took, in seconds, and what it measured itself.
typedef struct sample {
    double wall, cpu;
    double figures[BENCH_MAX_FIGURES];
} sample;

typedef struct series {
    sample samples[MAX_ROUNDS];
} series;

typedef struct spread {
    double median, least, most;
} spread;

typedef struct printer {
    const bench_options *options;
    const char *bench;
    bool begun;                                        // a result has been printed
    enum { HEAD_NONE, HEAD_SPEED, HEAD_FIGURES } head; // what the columns are at present
} printer;

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_of(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Of this process, and of those that a run has started and waited for.
static double cpu_seconds(void)
{
    return cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    double upper = values[count / 2], lower = values[(count - 1) / 2];
    return (spread){(lower + upper) / 2, values[0], values[count - 1]};
}

// --- the environment of a measurement ------------------------------------------------------------

static void cpu_model(char *text, size_t size)
{
    snprintf(text, size, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value += 1 + (value[1] == ' ');
        value[strcspn(value, "\n\"\\")] = '\0';
        snprintf(text, size, "%s", value);
        break;
    }
    fclose(file);
}

static const char *commit(void)
{
    const char *text = getenv("LEAT_COMMIT");
    return text && !strpbrk(text, "\"\\\n") ? text : "unknown";
}

static void print_head(const printer *out)
{
    char cpu[256];
    cpu_model(cpu, sizeof cpu);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const bench_options *o = out->options;
    if (o->json) {
        printf("{\"bench\": \"%s\", \"cpu\": \"%s\", \"cores\": %ld, \"build\": \"%s\", "
               "\"compiler\": \"%s\", "
               "\"commit\": \"%s\", \"rounds\": %u, \"quick\": %s, \"results\": [",
               out->bench, cpu, cores, LEAT_BENCH_BUILD, COMPILER, commit(), o->rounds,
               o->quick ? "true" : "false");
        return;
    }
    printf("%s: %s, %ld cores; %s, %s; commit %s; ", out->bench, cpu, cores, LEAT_BENCH_BUILD,
           COMPILER, commit());
    if (o->quick)
        printf("quick: figures mean nothing\n");
    else
        printf("median of %u rounds after a warm-up [least … most]\n", o->rounds);
}

static void print_columns(printer *out, bool figures)
{
    if (out->options->json || out->head == (figures ? HEAD_FIGURES : HEAD_SPEED))
        return;
    out->head = figures ? HEAD_FIGURES : HEAD_SPEED;
    printf("%-16s %-14s ", "case", "variant");
    if (figures)
        printf("%-12s %35s\n", "figure", "");
    else
        printf("%35s %14s %28s\n", "millions a second", "CPU ns each", "of the first");
}

static void print_result(printer *out, const bench_case *c, const bench_variant *v, spread rate,
                         spread cpu, spread ratio)
{
    if (out->options->json) {
        printf("%s{\"case\": \"%s\", \"variant\": \"%s\", \"unit\": \"%s\", \"items\": %llu, "
               "\"per_second\": {\"median\": %.6g, \"least\": %.6g, \"most\": %.6g}, "
               "\"cpu_ns_each\": %.6g, "
               "\"ratio\": {\"median\": %.4f, \"least\": %.4f, \"most\": %.4f}, \"goal\": %.4g}",
               out->begun ? ", " : "", c->name, v->name, c->unit,
               (unsigned long long)c->expected.items, rate.median, rate.least, rate.most,
               cpu.median, ratio.median, ratio.least, ratio.most, v->goal);
    } else {
        char speed[64], share[64];
        snprintf(speed, sizeof speed, "%.2f %s [%.2f … %.2f]", rate.median / 1e6, c->unit,
                 rate.least / 1e6, rate.most / 1e6);
        snprintf(share, sizeof share, "%.3f [%.3f … %.3f]", ratio.median, ratio.least, ratio.most);
        // The mark of an omission takes three bytes and one column.
        printf("%-16s %-14s %37s %14.2f %30s", c->name, v->name, speed, cpu.median, share);
        if (v->goal > 0)
            printf("  goal %.2f: %s", v->goal, ratio.median >= v->goal ? "met" : "missed");
        putchar('\n');
    }
    out->begun = true;
    fflush(stdout);
}

// `most`: the goal, 0 for none.
static void print_figure(printer *out, const bench_case *c, const bench_variant *v,
                         const bench_figure *f, spread value, double most)
{
    if (out->options->json) {
        printf("%s{\"case\": \"%s\", \"variant\": \"%s\", \"figure\": \"%s\", \"unit\": \"%s\", "
               "\"value\": {\"median\": %.6g, \"least\": %.6g, \"most\": %.6g}, \"goal\": %.4g}",
               out->begun ? ", " : "", c->name, v->name, f->name, f->unit, value.median,
               value.least, value.most, most);
    } else {
        char text[96];
        snprintf(text, sizeof text, "%.2f [%.2f … %.2f]", value.median, value.least, value.most);
        printf("%-16s %-14s %-12s %37s %s", c->name, v->name, f->name, text, f->unit);
        if (most > 0)
            printf("  goal at most %g: %s", most, value.median <= most ? "met" : "missed");
        putchar('\n');
    }
    out->begun = true;
    fflush(stdout);
}

static void print_note(const printer *out, const bench_case *c)
{
    if (c->note && !out->options->json)
        printf("%-16s note: %s\n", c->name, c->note);
}

// --- running -------------------------------------------------------------------------------------

static bool run_once(bench_case *c, const bench_variant *v, sample *taken)
{
    bench_outcome outcome = {0};
    double wall = wall_seconds(), cpu = cpu_seconds();
    if (v->run(c->context, &outcome) != 0) {
        fprintf(stderr, "%s, %s: the run failed\n", c->name, v->name);
        return false;
    }
    *taken = (sample){.wall = wall_seconds() - wall, .cpu = cpu_seconds() - cpu};
    memcpy(taken->figures, outcome.figures, sizeof taken->figures);
    if (c->expected.items == 0)
        c->expected = outcome;
    if (outcome.items == 0 || outcome.items != c->expected.items ||
        outcome.checksum != c->expected.checksum) {
        fprintf(stderr, "%s, %s: wrong outcome: %llu %s, sum %016llx; expected %llu, sum %016llx\n",
                c->name, v->name, (unsigned long long)outcome.items, c->unit,
                (unsigned long long)outcome.checksum, (unsigned long long)c->expected.items,
                (unsigned long long)c->expected.checksum);
        return false;
    }
    return true;
}

static bool run_rounds(bench_case *c, const bench_options *options, series *taken)
{
    sample ignored;
    for (size_t v = 0; v < c->variant_count && !options->quick; v++)
        if (!run_once(c, &c->variants[v], &ignored))
            return false;
    for (unsigned round = 0; round < options->rounds; round++)
        for (size_t v = 0; v < c->variant_count; v++)
            if (!run_once(c, &c->variants[v], &taken[v].samples[round]))
                return false;
    return true;
}

static void report_figures(printer *out, const bench_case *c, const series *taken)
{
    unsigned rounds = out->options->rounds;
    for (size_t v = 0; v < c->variant_count; v++)
        for (size_t f = 0; f < c->figure_count; f++) {
            double values[MAX_ROUNDS] = {0};
            for (unsigned round = 0; round < rounds; round++)
                values[round] = taken[v].samples[round].figures[f];
            print_figure(out, c, &c->variants[v], &c->figures[f], spread_of(values, rounds),
                         v > 0 ? c->figures[f].most : 0);
        }
}

static void report_speed(printer *out, const bench_case *c, const series *taken)
{
    unsigned rounds = out->options->rounds;
    double items = (double)c->expected.items;
    for (size_t v = 0; v < c->variant_count; v++) {
        double rate[MAX_ROUNDS] = {0}, cpu[MAX_ROUNDS] = {0}, ratio[MAX_ROUNDS] = {0};
        for (unsigned round = 0; round < rounds; round++) {
            const sample *own = &taken[v].samples[round];
            rate[round] = items / own->wall;
            cpu[round] = own->cpu * 1e9 / items;
            ratio[round] = taken[0].samples[round].wall / own->wall;
        }
        print_result(out, c, &c->variants[v], spread_of(rate, rounds), spread_of(cpu, rounds),
                     spread_of(ratio, rounds));
    }
}

static bool run_case(printer *out, bench_case *c)
{
    static series taken[MAX_VARIANTS];
    bool good = c->variant_count <= MAX_VARIANTS && c->figure_count <= BENCH_MAX_FIGURES &&
                (!c->setup || c->setup(c, out->options) == 0);
    if (!good)
        fprintf(stderr, "%s: the set-up failed\n", c->name);
    good = good && run_rounds(c, out->options, taken);
    if (c->teardown)
        c->teardown(c);
    if (!good)
        return false;
    print_columns(out, c->figures != NULL);
    if (c->figures)
        report_figures(out, c, taken);
    else
        report_speed(out, c, taken);
    print_note(out, c);
    return true;
}

// --- command line --------------------------------------------------------------------------------

static bool number_after(int argc, char **argv, int *i, uint64_t *number)
{
    if (*i + 1 >= argc)
        return false;
    char *end;
    *number = strtoull(argv[++*i], &end, 10);
    return *end == '\0' && *number > 0;
}

// Moves the names of cases to the front of `argv`; their number, or -1 when something is wrong.
static int parse(int argc, char **argv, bench_options *options)
{
    int names = 0;
    uint64_t number = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            options->quick = true;
        else if (strcmp(argv[i], "--json") == 0)
            options->json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && number_after(argc, argv, &i, &number) &&
                 number <= MAX_ROUNDS)
            options->rounds = (unsigned)number;
        else if (strcmp(argv[i], "--size") == 0 && number_after(argc, argv, &i, &number))
            options->size = number;
        else if (argv[i][0] == '-')
            return -1;
        else
            argv[names++] = argv[i];
    }
    if (options->rounds < 5)
        options->rounds = 5;
    if (options->quick)
        options->rounds = 1;
    return names;
}

static bool chosen(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

int bench_main(int argc, char **argv, const char *bench, bench_case *cases, size_t case_count)
{
    bench_options options = {.rounds = 5};
    int names = parse(argc, argv, &options);
    if (names < 0) {
        fprintf(stderr, "usage: bench_%s [--quick] [--json] [--rounds N] [--size N] [CASE…]\n",
                bench);
        return 2;
    }
    if (!measurable && !options.quick) {
        fprintf(stderr,
                "bench_%s: this is an unoptimised or sanitized build; only --quick runs here\n",
                bench);
        return 2;
    }
    printer out = {.options = &options, .bench = bench};
    print_head(&out);
    bool good = true;
    for (size_t i = 0; i < case_count; i++)
        if (chosen(cases[i].name, argv, names))
            good = run_case(&out, &cases[i]) && good;
    if (options.json)
        printf("]}\n");
    return good ? 0 : 1;
}
