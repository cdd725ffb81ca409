/* Copies packets of a trace to packet buffers, as a network card does. */
#include "feeder.h"

#include <string.h>

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "options.h"
#include "ports.h"

enum {
	BURST = 32,
	/* Buffers beside those in the rings: bursts, segments of a few long packets, caches of two lcores. */
	SPARE = 4096,
	CACHE = 256,
};

static struct rte_ring *ring_create(const char *name, uint32_t size)
{
	struct rte_ring *ring = rte_ring_create(name, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (ring == NULL)
		fail("cannot create a ring of %u packets: %s", size, rte_strerror(rte_errno));
	return ring;
}

static uint16_t ring_port(const char *name, struct rte_ring *rx, struct rte_ring *tx)
{
	int port = rte_eth_from_rings(name, &rx, 1, &tx, 1, SOCKET_ID_ANY);
	if (port < 0)
		fail("cannot create the port %s: %s", name, rte_strerror(rte_errno));
	port_start((uint16_t)port);
	return (uint16_t)port;
}

void feeder_create(struct feeder *feeder, const struct trace *trace, uint32_t ring, uint32_t segment)
{
	*feeder = (struct feeder){.trace = trace, .cursor = trace_start()};
	segment = RTE_MIN(segment, trace->longest);
	feeder->pool = rte_pktmbuf_pool_create("trace", 2 * ring + SPARE, CACHE, 0,
					       (uint16_t)(RTE_PKTMBUF_HEADROOM + segment), SOCKET_ID_ANY);
	if (feeder->pool == NULL)
		fail("cannot create packet buffers: %s", rte_strerror(rte_errno));
	feeder->before = ring_create("before", ring);
	feeder->behind = ring_create("behind", ring);
	struct rte_ring *unused = ring_create("unused", 64);
	feeder->port = ring_port("trace", feeder->before, unused);
	feeder->sink = ring_port("sink", unused, feeder->behind);
}

/* Copies a packet to as many segments as it needs. Returns NULL if there are no buffers. */
static struct rte_mbuf *copy(struct feeder *feeder, const struct trace_packet *packet)
{
	struct rte_mbuf *first = rte_pktmbuf_alloc(feeder->pool);
	if (unlikely(first == NULL))
		return NULL;
	uint32_t copied = RTE_MIN(packet->captured, (uint32_t)rte_pktmbuf_tailroom(first));
	memcpy(rte_pktmbuf_append(first, (uint16_t)copied), packet->bytes, copied);
	while (unlikely(copied < packet->captured)) {
		struct rte_mbuf *next = rte_pktmbuf_alloc(feeder->pool);
		if (next == NULL)
			break;
		uint32_t part = RTE_MIN(packet->captured - copied, (uint32_t)rte_pktmbuf_tailroom(next));
		memcpy(rte_pktmbuf_append(next, (uint16_t)part), packet->bytes + copied, part);
		if (rte_pktmbuf_chain(first, next) != 0) {
			rte_pktmbuf_free(next);
			break;
		}
		copied += part;
	}
	if (likely(copied == packet->captured))
		return first;
	rte_pktmbuf_free(first);
	return NULL;
}

bool feeder_offer(struct feeder *feeder, uint32_t count)
{
	struct rte_mbuf *burst[BURST];
	struct trace_packet packet;
	bool at_end = false;
	while (count > 0 && !at_end) {
		uint32_t taken = 0, copied = 0;
		while (taken < BURST && taken < count) {
			if (!trace_next(feeder->trace, &feeder->cursor, &packet)) {
				feeder->cursor = trace_start();
				feeder->loops++;
				at_end = true;
				break;
			}
			burst[copied] = copy(feeder, &packet);
			copied += burst[copied] != NULL;
			taken++;
		}
		uint32_t queued = rte_ring_enqueue_burst(feeder->before, (void **)burst, copied, NULL);
		rte_pktmbuf_free_bulk(burst + queued, copied - queued);
		feeder->offered += taken;
		feeder->missed += taken - queued;
		count -= taken;
	}
	return at_end;
}

bool feeder_fill(struct feeder *feeder)
{
	return feeder_offer(feeder, rte_ring_free_count(feeder->before));
}

void feeder_drain(struct feeder *feeder)
{
	struct rte_mbuf *burst[BURST];
	uint32_t count;
	while ((count = rte_ring_dequeue_burst(feeder->behind, (void **)burst, BURST, NULL)) > 0)
		rte_pktmbuf_free_bulk(burst, count);
}
