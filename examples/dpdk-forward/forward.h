/* The forwarding loop. */
#ifndef FORWARD_H
#define FORWARD_H

#include <stdint.h>

#include "counter.h"
#include "feeder.h"

/* From one port to another. */
struct path {
	uint16_t in, out;
};

struct forwarder {
	struct path paths[2];
	unsigned int path_count;
	struct counter *counter;
	/* Packets at a time, at most 256. */
	uint16_t burst;
	uint64_t packets;
	/* Packets that the outgoing port did not take. */
	uint64_t dropped;
	/* Cycles of the time stamp counter in bursts with packets, and of the whole run without the copying of a trace. */
	uint64_t busy_cycles, cycles;
};

/* Ends the loops; for a signal handler. */
void forward_stop(void);

/* Forwards between ports for a time, or until forward_stop() if it is 0. */
void forward_ports(struct forwarder *forwarder, double seconds);

/*
 * Forwards a trace as fast as possible: fills the ring, then forwards what is in it. Only the latter is measured, so the feeder costs
 * nothing but its use of the caches.
 */
void forward_trace(struct forwarder *forwarder, struct feeder *feeder, uint64_t loops, double seconds);

/* Forwards a trace that a second lcore offers at a rate. */
void forward_offered(struct forwarder *forwarder, struct feeder *feeder, uint64_t loops, double seconds, double rate_pps);

#endif
