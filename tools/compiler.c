// SPDX-License-Identifier: Apache-2.0
#include "tools/compiler.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat/error.h"
#include "tools/build_info.h"
#include "tools/style.h"

// --- what kind of file ---

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), end = strlen(ending);
    return size > end && !strcmp(text + size - end, ending);
}

static bool is_cpp(const char *path)
{
    return ends_with(path, ".cc") || ends_with(path, ".cpp") || ends_with(path, ".cxx");
}

bool leati_is_source(const char *path)
{
    return ends_with(path, ".c") || is_cpp(path);
}

// --- the headers ---

enum { PATH_SIZE = 4096 };

static bool has_headers(const char *folder)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/leat/leat.h", folder);
    return access(path, R_OK) == 0;
}

// PREFIX/bin/leat was installed with PREFIX/include; a build folder has the same form.
static bool beside_program(char *folder)
{
    char program[PATH_SIZE];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0 || size == (ssize_t)sizeof program - 1)
        return false;
    program[size] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return snprintf(folder, PATH_SIZE, "%s/include", program) < PATH_SIZE && has_headers(folder);
}

static bool of_pkg_config(char *folder)
{
    // popen is called with a constant text.
    FILE *said = popen("pkg-config --variable=includedir leat 2>/dev/null", "re");
    if (!said)
        return false;
    bool good = fgets(folder, PATH_SIZE, said) != NULL;
    pclose(said);
    folder[good ? strcspn(folder, "\n") : 0] = '\0';
    return good && *folder && has_headers(folder);
}

static bool find_headers(char *folder)
{
    const char *named = getenv("LEAT_INCLUDE");
    if (named && *named) {
        snprintf(folder, PATH_SIZE, "%s", named);
        if (has_headers(folder))
            return true;
        leati_complain(NULL,
                       "LEAT_INCLUDE=%s: there is no leat/leat.h in it; name the folder in which "
                       "the headers' folder `leat` lies",
                       named);
        return false;
    }
    if (beside_program(folder))
        return true;
    snprintf(folder, PATH_SIZE, "%s", LEATI_BUILD_INCLUDE);
    if (has_headers(folder) || of_pkg_config(folder))
        return true;
    leati_complain(
        NULL, "the headers of Leat are not to be found beside the program, in " LEATI_BUILD_INCLUDE
              ", or through pkg-config; set LEAT_INCLUDE to the folder in which "
              "leat/leat.h lies");
    return false;
}

// --- the command ---

// The words of the command, each ended by a NUL.
static void add_word(leati_strbuf *words, const char *word)
{
    leati_strbuf_append(words, word, strlen(word) + 1);
}

// $CC may be several words, "ccache gcc" say.
static void add_compiler(leati_strbuf *words, bool cpp)
{
    const char *named = getenv(cpp ? "CXX" : "CC");
    size_t before = words->size;
    for (named = named ? named : ""; *(named += strspn(named, " \t"));) {
        size_t size = strcspn(named, " \t");
        leati_strbuf_append(words, named, size);
        leati_strbuf_putc(words, '\0');
        named += size;
    }
    if (words->size == before)
        add_word(words, cpp ? "c++" : "cc");
}

static void add_words(leati_strbuf *words, const leati_compilation *what, const char *include)
{
    bool cpp = is_cpp(what->source);
    static const char *const own[] = {
        "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-shared", "-fPIC", "-I"};
    add_compiler(words, cpp);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        add_word(words, own[i]);
    add_word(words, include);
    add_word(words, cpp ? "-std=gnu++17" : "-std=gnu11");
    add_word(words, "-o");
    add_word(words, what->output);
    add_word(words, what->source);
    // Behind the source, where libraries belong.
    for (size_t i = 0; i < what->flag_count; i++)
        add_word(words, what->flags[i]);
}

// The words as posix_spawn wants them; to be freed. NULL when out of memory.
static char **split_words(const leati_strbuf *words)
{
    size_t count = 0;
    for (size_t i = 0; i < words->size; i++)
        count += words->data[i] == '\0';
    char **argv = words->failed ? NULL : calloc(count + 1, sizeof *argv);
    size_t at = 0;
    for (size_t i = 0; argv && i < count; i++) {
        argv[i] = words->data + at;
        at += strlen(argv[i]) + 1;
    }
    return argv;
}

static void show(char *const *argv)
{
    for (; *argv; argv++)
        fprintf(stderr, "%s%c", *argv, argv[1] ? ' ' : '\n');
}

// --- running it ---

static int spawn(char **argv, pid_t *child)
{
    assert(argv[0]);
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int error = posix_spawnattr_init(&attributes);
    if (error)
        return error;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    error = posix_spawnp(child, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static leati_exit conclude(int status, const char *compiler)
{
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGINT)
            return (leati_exit)(LEATI_EXIT_SIGNAL + SIGINT);
        leati_complain(NULL, "the compiler, %s, was ended by signal %d", compiler,
                       WTERMSIG(status));
        return LEATI_EXIT_FAILED;
    }
    return WEXITSTATUS(status) == 0 ? LEATI_EXIT_OK : LEATI_EXIT_FAILED;
}

// As for system(3): what the terminal sends ends the compiler, and we clean up behind it.
static leati_exit run(char **argv, bool cpp)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before[2];
    pid_t child;
    sigaction(SIGINT, &ignore, &before[0]);
    sigaction(SIGQUIT, &ignore, &before[1]);
    int status = 0, error = spawn(argv, &child);
    while (!error && waitpid(child, &status, 0) < 0)
        error = errno == EINTR ? 0 : errno;
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGQUIT, &before[1], NULL);
    if (!error)
        return conclude(status, argv[0]);
    leati_complain(NULL, "cannot run the compiler, %s: %s; install one, or set %s", argv[0],
                   strerror(error), cpp ? "CXX" : "CC");
    return LEATI_EXIT_REFUSED;
}

leati_exit leati_compile(const leati_compilation *what)
{
    char include[PATH_SIZE];
    if (access(what->source, R_OK) != 0) {
        leati_complain(NULL, "%s cannot be read: %s", what->source, strerror(errno));
        return LEATI_EXIT_REFUSED;
    }
    if (!find_headers(include))
        return LEATI_EXIT_REFUSED;
    leati_strbuf words;
    leati_strbuf_init(&words, NULL);
    add_words(&words, what, include);
    char **argv = split_words(&words);
    leati_exit status = LEATI_EXIT_REFUSED;
    if (argv) {
        if (what->verbose)
            show(argv);
        status = run(argv, is_cpp(what->source));
    } else {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
    }
    if (what->command)
        leati_strbuf_append(what->command, words.data, words.size);
    free(argv);
    leati_strbuf_fini(&words);
    return status;
}
