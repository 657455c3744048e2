// SPDX-License-Identifier: Apache-2.0
#include "cluster/manager/view.h"

void leati_view_prometheus(leati_strbuf *out, const leati_manager *manager)
{
}
