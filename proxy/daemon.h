/* proxy/daemon.h - into the background, without losing what goes wrong at the start.
 *
 * The starter waits, at most START_MOST_S, until the daemon says that it serves, and ends with 0
 * then. When the daemon ends before that, the starter ends with 1; what the daemon had to say is on
 * the starter's standard error, which they share until it serves. */
#ifndef PROXY_DAEMON_H
#define PROXY_DAEMON_H

/* A descriptor below 3 that were ours would be taken for a standard stream: closed ones become
 * /dev/null. Before anything else is opened. */
void daemon_open_streams(void);

/* Forks, before there are threads. Returns in the daemon alone: the descriptor for daemon_serves.
 * -1 (errno): still the starter, nothing was forked. */
int daemon_begin(void);

/* Lets the starter and its terminal go. -1 (in the foreground) is fine. */
void daemon_serves(int *teller);

#endif
