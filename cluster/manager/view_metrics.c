// SPDX-License-Identifier: Apache-2.0
#include "cluster/manager/view.h"

bool leati_view_metrics(leati_strbuf *out, const leati_managed_job *job, uint32_t vertex,
                        uint32_t subtask, const char *get, const char *agg, char *why,
                        size_t why_size)
{
    leati_strbuf_puts(out, "[]");
    return true;
}

void leati_view_member_metrics(leati_strbuf *out, const leati_member *member, const char *get)
{
    leati_strbuf_puts(out, "[]");
}

void leati_view_manager_metrics(leati_strbuf *out, const leati_manager *manager, const char *get)
{
    leati_strbuf_puts(out, "[]");
}
