/* base/uring_repair.h - keeps libev's io_uring backend alive on recent kernels; see uring_repair.c.
 */
#ifndef BASE_URING_REPAIR_H
#define BASE_URING_REPAIR_H

#include <stdbool.h>

/* Call before the first io_uring loop is made. true: libev's way into the kernel leads through the
 * repair. */
bool uring_repair_start(void);

#endif
