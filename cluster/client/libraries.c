// SPDX-License-Identifier: Apache-2.0
// Which libraries a shared object needs, by its DT_NEEDED entries. They are read from the file and
// not asked of the loader, which also has what other objects of this process need.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "cluster/client/files.h"

// A file, mapped for reading. Whoever cuts it off meanwhile kills us, as it does with the loader.
typedef struct image {
    const uint8_t *bytes;
    size_t size;
    const ElfW(Ehdr) * header;
    const ElfW(Phdr) * segments;
} image;

static const void *at(const image *i, uint64_t offset, uint64_t size)
{
    return offset <= i->size && size <= i->size - offset ? i->bytes + offset : NULL;
}

// The bytes of the file that are loaded to that address, and how many follow; NULL when there are
// none.
static const void *at_address(const image *i, uint64_t address, uint64_t *left)
{
    for (size_t k = 0; k < i->header->e_phnum; k++) {
        const ElfW(Phdr) *s = &i->segments[k];
        if (s->p_type != PT_LOAD || address < s->p_vaddr || address - s->p_vaddr >= s->p_filesz)
            continue;
        *left = s->p_filesz - (address - s->p_vaddr);
        return at(i, s->p_offset + (address - s->p_vaddr), *left);
    }
    return NULL;
}

static const ElfW(Dyn) * find_dynamic(const image *i, size_t *count)
{
    for (size_t k = 0; k < i->header->e_phnum; k++) {
        const ElfW(Phdr) *s = &i->segments[k];
        if (s->p_type != PT_DYNAMIC || s->p_offset % _Alignof(ElfW(Dyn)))
            continue;
        *count = s->p_filesz / sizeof(ElfW(Dyn));
        return at(i, s->p_offset, s->p_filesz);
    }
    return NULL;
}

static bool read_header(image *i)
{
    i->header = at(i, 0, sizeof *i->header);
    if (!i->header || memcmp(i->header->e_ident, ELFMAG, SELFMAG) != 0 ||
        i->header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        i->header->e_phentsize != sizeof(ElfW(Phdr)) || i->header->e_phoff % _Alignof(ElfW(Phdr)))
        return false;
    i->segments = at(i, i->header->e_phoff, (uint64_t)i->header->e_phnum * sizeof(ElfW(Phdr)));
    return i->segments;
}

static bool is_there(const leati_sent_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (!strcmp(files->items[i].name, name))
            return true;
    return false;
}

// Adds a library if it lies in that folder and is not there yet.
static leat_err add_library(leati_sent_files *files, const char *folder, size_t folder_size,
                            const char *name)
{
    if (strchr(name, '/') || is_there(files, name))
        return LEAT_OK;
    leati_strbuf path;
    leati_strbuf_init(&path, NULL);
    leati_strbuf_printf(&path, "%.*s%s", (int)folder_size, folder, name);
    leat_err err = path.failed ? LEAT_ENOMEM : LEAT_OK;
    if (!err && access(leati_strbuf_text(&path), F_OK) == 0)
        err = leati_sent_files_add(files, name, leati_strbuf_text(&path));
    leati_strbuf_fini(&path);
    return err;
}

static leat_err add_needed(leati_sent_files *files, const image *i, const char *object)
{
    size_t count = 0;
    uint64_t left = 0;
    const char *names = NULL, *slash = strrchr(object, '/');
    const ElfW(Dyn) *dynamic = find_dynamic(i, &count);
    for (size_t k = 0; dynamic && k < count && dynamic[k].d_tag != DT_NULL; k++)
        if (dynamic[k].d_tag == DT_STRTAB)
            names = at_address(i, dynamic[k].d_un.d_ptr, &left);
    leat_err err = LEAT_OK;
    for (size_t k = 0; names && !err && k < count && dynamic[k].d_tag != DT_NULL; k++) {
        uint64_t offset = dynamic[k].d_un.d_val;
        if (dynamic[k].d_tag != DT_NEEDED || offset >= left ||
            !memchr(names + offset, '\0', left - offset))
            continue;
        err = add_library(files, object, slash ? (size_t)(slash - object) + 1 : 0, names + offset);
    }
    return err;
}

static leat_err add_needed_of(leati_sent_files *files, const char *object)
{
    struct stat info;
    image i = {0};
    leat_err err = LEAT_OK;
    int fd = open(object, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return LEAT_OK; // it was there just now; sending it will tell
    void *mapped = MAP_FAILED;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        mapped = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped != MAP_FAILED) {
        i = (image){.bytes = mapped, .size = (size_t)info.st_size};
        if (read_header(&i))
            err = add_needed(files, &i, object);
        munmap(mapped, i.size);
    }
    close(fd);
    return err;
}

leat_err leati_sent_files_add_libraries(leati_sent_files *files, const char *object)
{
    size_t next = files->count;
    leat_err err = add_needed_of(files, object);
    // What is added meanwhile is looked at too; adding moves the array.
    for (; !err && next < files->count; next++) {
        char *path = leati_strdup(NULL, files->items[next].path);
        err = path ? add_needed_of(files, path) : LEAT_ENOMEM;
        leati_free(NULL, path);
    }
    if (err && !files->why[0])
        snprintf(files->why, sizeof files->why, "%s", leat_err_message(err));
    return err;
}
