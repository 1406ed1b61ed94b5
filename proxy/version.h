/* proxy/version.h - the version, told in -v, in pages and in the manual. */
#ifndef PROXY_VERSION_H
#define PROXY_VERSION_H

#define CUTTLE_VERSION "0.1"

#endif
