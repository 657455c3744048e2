// SPDX-License-Identifier: Apache-2.0
#include "cluster/manager/view.h"

void leati_view_why(leati_strbuf *out, const leati_manager *manager, const leati_managed_job *job)
{
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "job", job->id);
    leati_put_text(out, "state", leati_phase_name(job->phase));
    leati_put_null(out, "bottleneck");
    leati_put_open(out, "tasks", '[');
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}
