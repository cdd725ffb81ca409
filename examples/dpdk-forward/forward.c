/* Receives bursts, counts them, and sends every packet on, whatever the counter makes of it. */
#include "forward.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_pause.h>

enum {
	MAX_BURST = 256,
	/* Packets that are offered at a time. */
	OFFERED = 32,
};

static volatile sig_atomic_t stopped;

void forward_stop(void)
{
	stopped = 1;
}

static uint64_t nanoseconds(uint64_t cycles)
{
	return (uint64_t)((double)cycles * 1e9 / (double)rte_get_tsc_hz());
}

/* Forwards a burst of a path and returns its packets. The time is that of the counter's clock, in cycles. */
static inline uint16_t forward_burst(struct forwarder *forwarder, const struct path *path, uint64_t now)
{
	struct rte_mbuf *burst[MAX_BURST];
	uint16_t received = rte_eth_rx_burst(path->in, 0, burst, forwarder->burst);
	if (received == 0)
		return 0;
	counter_add(forwarder->counter, burst, received, now);
	uint16_t sent = rte_eth_tx_burst(path->out, 0, burst, received);
	if (unlikely(sent < received)) {
		rte_pktmbuf_free_bulk(burst + sent, received - sent);
		forwarder->dropped += received - sent;
	}
	forwarder->packets += received;
	return received;
}

/* Forwards a burst of each path, measures it if it has packets, and returns the time. */
static uint64_t poll_paths(struct forwarder *forwarder, uint64_t now)
{
	for (unsigned int i = 0; i < forwarder->path_count; i++) {
		uint16_t received = forward_burst(forwarder, &forwarder->paths[i], nanoseconds(now));
		uint64_t end = rte_rdtsc();
		if (received > 0)
			forwarder->busy_cycles += end - now;
		now = end;
	}
	return now;
}

/* Returns the time at which a run ends. */
static uint64_t end_of_run(double seconds)
{
	return seconds > 0 ? rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz()) : UINT64_MAX;
}

void forward_ports(struct forwarder *forwarder, double seconds)
{
	uint64_t start = rte_rdtsc(), end = end_of_run(seconds), now = start;
	while (now < end && !stopped)
		now = poll_paths(forwarder, now);
	forwarder->cycles = now - start;
}

void forward_trace(struct forwarder *forwarder, struct feeder *feeder, uint64_t loops, double seconds)
{
	bool needs_time = forwarder->counter->options->mode == MODE_LINE_RATE;
	uint64_t end = end_of_run(seconds);
	bool is_last = false;
	while (!is_last && !stopped) {
		bool at_end = feeder_fill(feeder);
		is_last = at_end && feeder->loops >= loops && (seconds == 0 || rte_rdtsc() >= end);
		uint64_t start = rte_rdtsc(), before = forwarder->busy_cycles, clock = nanoseconds(before);
		while (forward_burst(forwarder, &forwarder->paths[0], clock) > 0)
			if (needs_time)
				clock = nanoseconds(before + rte_rdtsc() - start);
		forwarder->busy_cycles += rte_rdtsc() - start;
		feeder_drain(feeder);
	}
	forwarder->cycles = forwarder->busy_cycles;
}

/* What the second lcore does. */
struct offer {
	struct feeder *feeder;
	uint64_t loops;
	double seconds, rate_pps;
	atomic_bool done;
};

static int offer_packets(void *argument)
{
	struct offer *offer = argument;
	struct feeder *feeder = offer->feeder;
	uint64_t start = rte_rdtsc(), end = end_of_run(offer->seconds);
	double packets_per_cycle = offer->rate_pps / (double)rte_get_tsc_hz();
	bool at_end = false;
	while (!stopped && !(at_end && feeder->loops >= offer->loops && (offer->seconds == 0 || rte_rdtsc() >= end))) {
		uint64_t due = (uint64_t)((double)(rte_rdtsc() - start) * packets_per_cycle);
		/* A card also hands over packets in groups, if they come fast. */
		if (due >= feeder->offered + OFFERED)
			at_end = feeder_offer(feeder, OFFERED);
		else
			rte_pause();
		feeder_drain(feeder);
	}
	atomic_store(&offer->done, true);
	return 0;
}

void forward_offered(struct forwarder *forwarder, struct feeder *feeder, uint64_t loops, double seconds, double rate_pps)
{
	unsigned int second = rte_get_next_lcore(rte_lcore_id(), 1, 0);
	if (second >= RTE_MAX_LCORE)
		fail("--rate needs a second lcore: -l 0,1");
	struct offer offer = {.feeder = feeder, .loops = loops, .seconds = seconds, .rate_pps = rate_pps};
	if (rte_eal_remote_launch(offer_packets, &offer, second) != 0)
		fail("cannot start lcore %u", second);
	uint64_t start = rte_rdtsc(), now = start;
	while (!atomic_load_explicit(&offer.done, memory_order_relaxed) && !stopped)
		now = poll_paths(forwarder, now);
	forwarder->cycles = now - start;
	rte_eal_wait_lcore(second);
	/* What is still in the ring. */
	for (uint64_t before = 0; before != forwarder->packets;) {
		before = forwarder->packets;
		now = poll_paths(forwarder, rte_rdtsc());
		feeder_drain(feeder);
	}
}
