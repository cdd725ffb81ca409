/*
 * thalweg-dpdk-forward: a small forwarder that stands for a software switch with a sketch in its forwarding thread. It receives bursts,
 * counts them through the C interface of Thalweg's sketches, and sends them on.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "counter.h"
#include "feeder.h"
#include "forward.h"
#include "options.h"
#include "ports.h"
#include "trace.h"
#include "truth.h"

static void on_signal(int signal)
{
	(void)signal;
	forward_stop();
}

static uint64_t wall_clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Starts the ports that the EAL has attached, and returns how many there are. */
static uint16_t start_ports(void)
{
	uint16_t port, count = 0;
	RTE_ETH_FOREACH_DEV(port) {
		port_start(port);
		count++;
	}
	return count;
}

/* Chooses where packets come from and go to. */
static void choose_paths(struct forwarder *forwarder, const struct feeder *feeder, uint16_t port_count)
{
	uint16_t first = rte_eth_find_next(0);
	forwarder->path_count = 1;
	if (feeder != NULL) {
		forwarder->paths[0] = (struct path){feeder->port, port_count > 0 ? first : feeder->sink};
	} else if (port_count >= 2) {
		uint16_t second = rte_eth_find_next(first + 1);
		forwarder->paths[0] = (struct path){first, second};
		forwarder->paths[1] = (struct path){second, first};
		forwarder->path_count = 2;
	} else {
		fail("expected two ports (--vdev=net_af_packet0,iface=eth0 --vdev=net_af_packet1,iface=eth1), or --trace");
	}
}

static void write_result(const struct options *options, const struct forwarder *forwarder, const struct feeder *feeder,
			 const struct accuracy *accuracy, const struct port_drops *drops, double seconds)
{
	FILE *file = options->json == NULL ? stdout : fopen(options->json, "w");
	if (file == NULL)
		fail("cannot write %s: %s", options->json, strerror(errno));
	const struct counter *counter = forwarder->counter;
	struct counter_state state = counter_state(counter);
	double hz = (double)rte_get_tsc_hz(), packets = (double)forwarder->packets;
	double busy = (double)forwarder->busy_cycles;
	fprintf(file, "{\"sketch\":\"%s\",\"rows\":%u,\"width\":%u,\"levels\":%u,\"top_k\":%u,\"mode\":\"%s\",\"inverse_probability\":%u,",
		sketch_name(options->sketch), options->rows, options->width,
		options->sketch == SKETCH_UNIVMON ? options->levels : 1, options->top_k, mode_name(options->mode),
		options->inverse_probability);
	fprintf(file, "\"packets\":%" PRIu64 ",\"tx_dropped\":%" PRIu64 ",\"rx_missed\":%" PRIu64 ",\"rx_no_buffer\":%" PRIu64 ",",
		forwarder->packets, forwarder->dropped, drops->missed, drops->no_buffer);
	fprintf(file, "\"packets_read\":%" PRIu64 ",\"packets_without_key\":%" PRIu64 ",\"failures\":%" PRIu64 ",",
		counter->read, counter->without_key, counter->failures);
	fprintf(file, "\"tsc_hz\":%.0f,\"busy_cycles\":%" PRIu64 ",\"busy_share\":%.6f,", hz, forwarder->busy_cycles,
		forwarder->cycles > 0 ? busy / (double)forwarder->cycles : 0);
	fprintf(file, "\"seconds\":%.6f,\"cycles_per_packet\":%.3f,\"ns_per_packet\":%.4f,\"packets_per_second\":%.0f,",
		seconds, packets > 0 ? busy / packets : 0, packets > 0 ? busy / packets / hz * 1e9 : 0,
		forwarder->cycles > 0 ? packets * hz / (double)forwarder->cycles : 0);
	fprintf(file, "\"now_inverse_probability\":%u,\"max_inverse_probability\":%u,\"saturations\":%" PRIu64 ",\"memory_bytes\":%" PRIu64,
		state.inverse_probability, state.max_inverse_probability, state.saturations, state.memory_bytes);
	if (feeder != NULL)
		fprintf(file, ",\"loops\":%" PRIu64 ",\"offered\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"offered_per_second\":%.0f",
			feeder->loops, feeder->offered, feeder->missed, options->rate_pps);
	if (accuracy != NULL)
		fprintf(file, ",\"flows\":%zu,\"compared\":%zu,\"relative_error\":%.6f,\"named\":%zu", accuracy->flows,
			accuracy->compared, accuracy->relative_error, accuracy->named);
	fputs("}\n", file);
	if (file != stdout && fclose(file) != 0)
		fail("cannot write %s: %s", options->json, strerror(errno));
}

int main(int argc, char **argv)
{
	/* Own options first, so that --help and errors need no DPDK. */
	int own = 1;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	struct options options;
	options_read(&options, own < argc ? argc - own : 1, own < argc ? argv + own : argv);
	if (rte_eal_init(argc, argv) < 0)
		fail("cannot start DPDK: %s; without huge pages it needs --no-huge", rte_strerror(rte_errno));
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);

	uint16_t port_count = start_ports();
	struct trace trace = {0};
	struct feeder feeder = {0};
	struct feeder *from_memory = NULL;
	if (options.trace != NULL) {
		trace_load(&trace, options.trace);
		feeder_create(&feeder, &trace, options.ring, options.segment);
		from_memory = &feeder;
	}
	struct counter counter;
	counter_create(&counter, &options);
	struct forwarder forwarder = {.counter = &counter, .burst = (uint16_t)options.burst};
	choose_paths(&forwarder, from_memory, port_count);

	uint64_t start_ns = wall_clock_ns();
	if (from_memory == NULL)
		forward_ports(&forwarder, options.duration_seconds);
	else if (options.rate_pps > 0)
		forward_offered(&forwarder, from_memory, options.loops, options.duration_seconds, options.rate_pps);
	else
		forward_trace(&forwarder, from_memory, options.loops, options.duration_seconds);
	uint64_t end_ns = wall_clock_ns();

	struct port_drops drops = {0};
	for (unsigned int i = 0; i < forwarder.path_count; i++) {
		struct port_drops of_port = port_drops(forwarder.paths[i].in);
		drops.missed += of_port.missed;
		drops.no_buffer += of_port.no_buffer;
	}
	struct accuracy accuracy = {0};
	if (options.exact)
		accuracy = truth_compare(&trace, feeder.loops, &counter);
	if (options.save != NULL)
		counter_save(&counter, options.save, start_ns, end_ns);
	write_result(&options, &forwarder, from_memory, options.exact ? &accuracy : NULL, &drops,
		     (double)(end_ns - start_ns) / 1e9);

	counter_free(&counter);
	uint16_t port;
	RTE_ETH_FOREACH_DEV(port)
		port_stop(port);
	free(trace.bytes);
	rte_eal_cleanup();
	return 0;
}
