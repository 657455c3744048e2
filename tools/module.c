// SPDX-License-Identifier: Apache-2.0
#include "tools/module.h"

#include <dlfcn.h>
#include <string.h>

#include "leat/leat.h"
#include "tools/style.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
// As the linker names it: the name without a folder is looked for where the program's own run path
// leads, and in the usual places.
#define MODULE(name) "libleat-" name ".so." TEXT(LEAT_VERSION_MAJOR)

static const void *find(const char *file, const char *symbol)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const void *table = handle ? dlsym(handle, symbol) : NULL;
    if (!table) {
        const char *said = dlerror();
        leati_complain(NULL, "this verb needs a module of Leat that cannot be loaded: %s",
                       said ? said : file);
    }
    return table;
}

static bool fits(const char *file, const char *version)
{
    if (!strcmp(version, leat_version()))
        return true;
    leati_complain(NULL, "%s belongs to Leat %s, and this is Leat %s; install all of it anew", file,
                   version, leat_version());
    return false;
}

const leati_client_module *leati_module_client(void)
{
    const leati_client_module *found = find(MODULE("client"), "leati_client_module_0");
    return found && fits(MODULE("client"), found->version) ? found : NULL;
}

const leati_cluster_module *leati_module_cluster(void)
{
    const leati_cluster_module *found = find(MODULE("cluster"), "leati_cluster_module_0");
    return found && fits(MODULE("cluster"), found->version) ? found : NULL;
}
