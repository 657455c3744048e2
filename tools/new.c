// SPDX-License-Identifier: Apache-2.0
// `leat new`: makes a small project for a job.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "leat/base.h"
#include "tools/options.h"
#include "tools/style.h"
#include "tools/templates.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 64 };

static leati_exit refuse(const char *path, const char *what, int error)
{
    leati_complain("new", "%s: %s%s%s", path, what, error ? ": " : "",
                   error ? strerror(error) : "");
    return LEATI_EXIT_REFUSED;
}

// --- the folder ---

static bool is_empty(DIR *folder)
{
    struct dirent *entry;
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    return true;
}

// Whether files may be put there: it is empty, or not there yet.
static leati_exit check_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? LEATI_EXIT_OK : refuse(path, "cannot be used", errno);
    bool empty = is_empty(folder);
    closedir(folder);
    if (empty)
        return LEATI_EXIT_OK;
    return refuse(path, "is not empty; name a folder that is, or that is not there yet", 0);
}

// Makes all folders that lead to `path`, but not what stands behind the last slash.
static int make_parents(const char *path)
{
    char part[PATH_SIZE];
    for (const char *at = path; (at = strchr(at, '/')); at++) {
        size_t size = (size_t)(at - path);
        if (size == 0 || size >= sizeof part)
            continue;
        memcpy(part, path, size);
        part[size] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return errno;
    }
    return 0;
}

// The project is called as its folder is, in the letters that every build system takes.
static bool name_project(const char *path, char *name)
{
    char *whole = realpath(path, NULL);
    if (!whole)
        return false;
    snprintf(name, NAME_SIZE, "%s", strrchr(whole, '/') + 1);
    free(whole);
    for (char *p = name; *p; p++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' || *p == '.';
        if (!good)
            *p = '_';
    }
    if (!*name)
        snprintf(name, NAME_SIZE, "job");
    return true;
}

// --- the files ---

static void fill_in(leati_strbuf *to, const char *text, const char *name)
{
    const leati_entry marks[] = {{"@NAME@", name}, {"@VERSION@", leat_version()}};
    while (*text) {
        size_t mark = 0;
        while (mark < 2 && strncmp(text, marks[mark].term, strlen(marks[mark].term)) != 0)
            mark++;
        if (mark < 2) {
            leati_strbuf_puts(to, marks[mark].text);
            text += strlen(marks[mark].term);
        } else {
            leati_strbuf_putc(to, *text++);
        }
    }
}

// Returns 0 or an errno.
static int write_file(const char *path, const leati_strbuf *text)
{
    if (text->failed)
        return ENOMEM;
    int error = make_parents(path);
    int fd = error ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return error ? error : errno;
    FILE *file = fdopen(fd, "w");
    if (!file) {
        error = errno;
        close(fd);
        return error;
    }
    bool good = fwrite(text->data, 1, text->size, file) == text->size;
    error = good ? 0 : errno;
    if (fclose(file) != 0 && !error)
        error = errno;
    return error;
}

static bool path_of(const char *folder, const char *name, char *path)
{
    int size = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    return size > 0 && size < PATH_SIZE;
}

static leati_exit write_template(const char *folder, const leati_template *from, const char *name)
{
    char path[PATH_SIZE];
    if (!path_of(folder, from->name, path))
        return refuse(folder, "this name is too long", 0);
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    fill_in(&text, from->text, name);
    int error = write_file(path, &text);
    leati_strbuf_fini(&text);
    return error ? refuse(path, "cannot be written", error) : LEATI_EXIT_OK;
}

// Files of a project that could not be finished; the folders stay.
static void remove_files(const char *folder, size_t count)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < count; i++)
        if (path_of(folder, leati_templates[i].name, path))
            (void)unlink(path);
}

static leati_exit write_project(const char *folder)
{
    char path[PATH_SIZE], name[NAME_SIZE];
    int error = path_of(folder, "", path) ? make_parents(path) : ENAMETOOLONG;
    if (error)
        return refuse(folder, "cannot be made", error);
    if (!name_project(folder, name))
        return refuse(folder, "cannot be used", errno);
    for (size_t i = 0; leati_templates[i].name; i++) {
        leati_exit status = write_template(folder, &leati_templates[i], name);
        if (status == LEATI_EXIT_OK)
            continue;
        remove_files(folder, i);
        return status;
    }
    return LEATI_EXIT_OK;
}

// --- the verb ---

// As a shell wants it.
static void put_word(leati_strbuf *to, const char *word)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
    if (word[strspn(word, safe)] == '\0') {
        leati_strbuf_puts(to, word);
        return;
    }
    leati_strbuf_putc(to, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            leati_strbuf_puts(to, "'\\'");
        leati_strbuf_putc(to, *word);
    }
    leati_strbuf_putc(to, '\'');
}

static leati_exit tell(const leati_options *options, const char *folder)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    if (options->json) {
        leati_strbuf_puts(&text, "{\"directory\": ");
        leati_strbuf_json_string(&text, folder, strlen(folder));
        leati_strbuf_puts(&text, ", \"files\": [");
        for (size_t i = 0; leati_templates[i].name; i++)
            leati_strbuf_printf(&text, "%s\"%s\"", i ? ", " : "", leati_templates[i].name);
        leati_strbuf_puts(&text, "]}\n");
    } else {
        leati_strbuf_printf(&text, "A job project is in %s:\n\n", folder);
        for (size_t i = 0; leati_templates[i].name; i++)
            leati_strbuf_printf(&text, "  %s\n", leati_templates[i].name);
        leati_strbuf_puts(&text, "\nBuild, test and run it:\n\n  cd ");
        put_word(&text, folder);
        leati_strbuf_puts(&text,
                          "\n"
                          "  meson setup build && meson compile -C build && meson test -C build\n"
                          "  echo 'to be or not to be' | leat run build/job.so\n");
    }
    leati_exit status = (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit make(const leati_options *options)
{
    const char *folder = options->operands[0];
    if (!*folder)
        return refuse("\"\"", "a folder must have a name", 0);
    leati_exit status = check_folder(folder);
    if (status == LEATI_EXIT_OK)
        status = write_project(folder);
    return status == LEATI_EXIT_OK ? tell(options, folder) : status;
}

static int new (const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)make(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Makes a project for a job in the folder DIR: the job's source, a test with the library's test "
    "kit, a file for the Meson build system, a README and a .gitignore. It builds, tests and runs "
    "as it is. DIR must be empty or not there yet.",
    "Meson finds Leat through pkg-config. PKG_CONFIG_PATH tells where leat.pc lies when that is "
    "not "
    "a usual place; for a Leat that is not installed it is meson-uninstalled in Leat's build "
    "folder.",
    NULL,
};

static const leati_entry examples[] = {
    {"leat new clicks", "a project in the folder clicks"},
    {"leat new --json visits", "which files were made, for programs"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "the project is made"},
    {"1", "standard output cannot be written"},
    {"2", "the command line is wrong"},
    {"3", "DIR is not empty or cannot be written to"},
    {NULL, NULL},
};

const leati_verb leati_verb_new = {
    .name = "new",
    .summary = "make a small project for a job",
    .arguments = "DIR",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_DIRECTORY,
    .least = 1,
    .most = 1,
    .missing = "the folder is missing: `leat new DIR`",
    .run = new,
};
