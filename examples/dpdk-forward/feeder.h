/* Packets from memory: a DPDK port whose receive queue is a ring that is filled from a trace. */
#ifndef FEEDER_H
#define FEEDER_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

struct rte_mempool;
struct rte_ring;

struct feeder {
	const struct trace *trace;
	struct trace_cursor cursor;
	struct rte_mempool *pool;
	/* In front of the forwarder, and behind it. */
	struct rte_ring *before, *behind;
	/* The port that receives the trace, and one that sends to the ring behind. */
	uint16_t port, sink;
	/* How often the trace has been sent completely, and the packets: those that were offered, and those that found the ring full. */
	uint64_t loops, offered, missed;
};

/* Creates rings of `ring` packets, packet buffers of up to `segment` bytes, and ports. Ends the program with a message if that fails. */
void feeder_create(struct feeder *feeder, const struct trace *trace, uint32_t ring, uint32_t segment);

/* Fills the ring in front of the forwarder. Stops at the end of the trace, and returns whether it was reached. */
bool feeder_fill(struct feeder *feeder);

/* Offers up to `count` packets; those that find the ring full are missed, as by a network card. Returns as feeder_fill. */
bool feeder_offer(struct feeder *feeder, uint32_t count);

/* Frees the packets in the ring behind the forwarder. */
void feeder_drain(struct feeder *feeder);

#endif
