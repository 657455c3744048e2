// SPDX-License-Identifier: Apache-2.0
// What dlopen says of a file that is no shared object is hard to read, and a truncated one may kill
// the process in the loader (it touches mapped pages that lie behind the end of the file). So the
// headers are looked at first.
#include "base/job_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "leat/leat.h"

typedef struct reason {
    char *text;
    size_t size;
} reason;

LEAT_PRINTF(2, 3) static bool refuse(reason why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (why.size)
        vsnprintf(why.text, why.size, format, args);
    va_end(args);
    return false;
}

// Reads exactly `size` bytes; a shorter file is no error of the system and gives EINVAL.
static int read_at(int fd, void *to, size_t size, uint64_t offset)
{
    for (char *p = to; size;) {
        ssize_t got = pread(fd, p, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return EINVAL;
        p += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

// The machine that this program was built for, or EM_NONE when that cannot be found out.
static ElfW(Half) own_machine(void)
{
    ElfW(Ehdr) own = {.e_machine = EM_NONE};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return EM_NONE;
    if (read_at(fd, &own, sizeof own, 0))
        own.e_machine = EM_NONE;
    close(fd);
    return own.e_machine;
}

static bool check_header(int fd, ElfW(Ehdr) * header, reason why)
{
    memset(header, 0, sizeof *header);
    int error = read_at(fd, header, sizeof *header, 0);
    if (error && error != EINVAL)
        return refuse(why, "cannot be read: %s", strerror(error));
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return refuse(why, "is not a shared object; `leat build FILE.c` makes job files, or a "
                           "compiler with -shared -fPIC");
    if (error)
        return refuse(why, "is truncated: not even its header is whole");
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    ElfW(Half) machine = own_machine();
    if (header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_ident[EI_DATA] != order || (machine != EM_NONE && header->e_machine != machine))
        return refuse(why, "is built for another kind of machine");
    if (header->e_type == ET_REL)
        return refuse(why, "is an object file, not a shared object; link it with -shared");
    if (header->e_type != ET_DYN)
        return refuse(why, "is not a shared object; link it with -shared");
    return true;
}

// Every byte that the loader will map must be there. The section headers are not mapped, but they
// stand at the end of the file: without them it was cut off, whatever is still there.
static bool check_segments(int fd, const ElfW(Ehdr) * header, uint64_t file_size, reason why)
{
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0)
        return refuse(why, "is not a shared object that can be loaded: it has no segments");
    uint64_t end, sections = (uint64_t)header->e_shnum * header->e_shentsize;
    if (__builtin_add_overflow((uint64_t)header->e_shoff, sections, &end) || end > file_size)
        return refuse(why, "is truncated: its section headers are not there");
    for (uint64_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        if (read_at(fd, &segment, sizeof segment, header->e_phoff + i * sizeof segment))
            return refuse(why, "is truncated: its program headers are not whole");
        if (segment.p_type != PT_LOAD)
            continue;
        if (__builtin_add_overflow((uint64_t)segment.p_offset, (uint64_t)segment.p_filesz, &end))
            return refuse(why, "is damaged: a segment is larger than any file");
        if (end > file_size)
            return refuse(why, "is truncated: %llu bytes are missing",
                          (unsigned long long)(end - file_size));
    }
    return true;
}

static bool check_file(const char *path, reason why)
{
    struct stat info;
    ElfW(Ehdr) header;
    // Not to wait for the other end should it be a FIFO.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse(why, "cannot be opened: %s", strerror(errno));
    bool good;
    if (fstat(fd, &info))
        good = refuse(why, "cannot be read: %s", strerror(errno));
    else if (S_ISDIR(info.st_mode))
        good = refuse(why, "is a directory, not a job file");
    else if (!S_ISREG(info.st_mode))
        good = refuse(why, "is not a regular file");
    else if (info.st_size == 0)
        good = refuse(why, "is empty");
    else
        good = check_header(fd, &header, why) &&
               check_segments(fd, &header, (uint64_t)info.st_size, why);
    close(fd);
    return good;
}

// Whether what was found under a name is a function, or an object of that many bytes.
static bool is_kind(const void *symbol, unsigned char kind, size_t size)
{
    Dl_info info;
    ElfW(Sym) *entry = NULL;
    if (!dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) || !entry)
        return true; // the loader does not tell
    return ELF64_ST_TYPE(entry->st_info) == kind && (size == 0 || entry->st_size == size);
}

static bool find_job(leati_job_file *file, reason why)
{
    const uint32_t *abi = dlsym(file->handle, "leat_job_abi");
    if (!abi)
        return refuse(why, "is no job file: it has no leat_job_abi (LEAT_JOB defines it)");
    if (!is_kind(abi, STT_OBJECT, sizeof *abi))
        return refuse(why, "is no job file: its leat_job_abi is no uint32_t (LEAT_JOB defines it)");
    if (*abi != LEAT_ABI)
        return refuse(why,
                      "was compiled for interface %u of Leat, and this is interface %u; compile it "
                      "again with this version's headers",
                      (unsigned)*abi, (unsigned)LEAT_ABI);
    void *symbol = dlsym(file->handle, "leat_job_main");
    if (!symbol)
        return refuse(why, "is no job file: it has no leat_job_main (LEAT_JOB defines it)");
    if (!is_kind(symbol, STT_FUNC, 0))
        return refuse(why,
                      "is no job file: its leat_job_main is no function (LEAT_JOB defines it)");
    // ISO C has no conversion from an object pointer to a function pointer; POSIX has.
    memcpy(&file->main, &symbol, sizeof symbol);
    return true;
}

static bool load(const char *path, leati_job_file *file, reason why)
{
    // Undefined symbols are to be reported now and not in the middle of the job; and two job files
    // must not see each other's symbols.
    file->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file->handle) {
        const char *said = dlerror();
        bool library = said && strstr(said, "undefined symbol: leat_");
        return refuse(why, "cannot be loaded: %s%s%s", said ? said : "no reason was given",
                      library ? "; is it made for another version of Leat? this is " : "",
                      library ? leat_version() : "");
    }
    if (find_job(file, why))
        return true;
    leati_job_file_close(file);
    return false;
}

bool leati_job_file_check(const char *path, char *why, size_t why_size)
{
    return check_file(path, (reason){why, why_size});
}

bool leati_job_file_open(const char *path, leati_job_file *file, char *why, size_t why_size)
{
    *file = (leati_job_file){0};
    reason said = {why, why_size};
    if (!*path)
        return refuse(said, "has no name");
    // dlopen would search the library path for a name without a slash.
    leati_strbuf here;
    leati_strbuf_init(&here, NULL);
    leati_strbuf_printf(&here, "%s%s", strchr(path, '/') ? "" : "./", path);
    bool good = here.failed ? refuse(said, "cannot be loaded: %s", leat_err_message(LEAT_ENOMEM))
                            : check_file(here.data, said) && load(here.data, file, said);
    leati_strbuf_fini(&here);
    return good;
}

void leati_job_file_close(leati_job_file *file)
{
    if (file->handle)
        dlclose(file->handle);
    *file = (leati_job_file){0};
}
