/* proxy/manual.h - cuttle(8) as roff; cuttle.conf(5) comes from conf/directives.def (conf_manual).
 */
#ifndef PROXY_MANUAL_H
#define PROXY_MANUAL_H

#include "base/buf.h"

void manual_cuttle8(struct buf *out);
void manual_http7(struct buf *out); /* cuttle-http(7): proxy/choices.def */

#endif
