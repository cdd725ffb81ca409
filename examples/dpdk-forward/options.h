/* The command line, and the end of the program on an error. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* What counts the forwarded packets. */
enum sketch_kind { SKETCH_NONE, SKETCH_COUNT_MIN, SKETCH_COUNT_SKETCH, SKETCH_K_ARY, SKETCH_UNIVMON, SKETCH_MEMBER };

/* How the sampling probability is chosen. */
enum sampling_mode { MODE_FIXED, MODE_LINE_RATE, MODE_CORRECT };

struct options {
	enum sketch_kind sketch;
	uint32_t rows, width, levels, top_k, counter_bits;
	enum sampling_mode mode;
	/* 1/p */
	uint32_t inverse_probability;
	uint64_t hash_seed, sampler_seed;
	/*
	 * AlwaysLineRate: the share of the processor's time for updates, and the time of a row at p = 1 and of a sampled row, the key
	 * included. 0: the defaults of the library, which know no keys.
	 */
	double share, row_ns, sampled_row_ns;

	/* Packets from memory instead of the first port. */
	const char *trace;
	/* Entries of the rings in front of and behind the forwarder when packets come from memory. */
	uint32_t ring;
	/* Bytes of a packet buffer; a longer packet takes several. */
	uint32_t segment;
	/* Packets a second that a second lcore offers; 0: as fast as they are forwarded, from the lcore that forwards. */
	double rate_pps;
	/* How often the trace is sent at least. */
	uint64_t loops;
	/* Packets that are received, counted and sent at a time at most. */
	uint32_t burst;
	/* Seconds, 0 for no limit. A trace is always sent completely. */
	double duration_seconds;

	/* Compares the estimates of the largest flows with exact counts of the trace. */
	bool exact;
	const char *save, *label, *json;
};

/* Reads the arguments that follow those of DPDK. Ends the program after --help, and with a message on an error. */
void options_read(struct options *options, int argc, char **argv);

/* Returns the name of a kind, as the option --sketch has it. */
const char *sketch_name(enum sketch_kind kind);

/* Returns the name of a mode, as the option --mode has it. */
const char *mode_name(enum sampling_mode mode);

/* Prints a message and ends the program with exit code 1. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

#endif
