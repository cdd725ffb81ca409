/* What counts the packets: a sketch of Thalweg, DPDK's rte_member, or nothing. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

struct rte_mbuf;

struct counter {
	const struct options *options;
	struct thalweg_sketch *sketch;
	struct rte_member_setsum *member;
	/* The burst that is being counted. */
	struct rte_mbuf *const *burst;
	/* Packets that were read, and those of them that have no key: not IP, malformed, or, for rte_member, not IPv4. */
	uint64_t read, without_key;
	/* Calls that failed. The packets were forwarded all the same. */
	uint64_t failures;
};

/* What is known of the sketch at the end. */
struct counter_state {
	/* The sum of all counts. */
	double total;
	uint32_t inverse_probability, max_inverse_probability;
	uint64_t saturations, memory_bytes;
};

/* Creates the sketch. Ends the program with a message if that fails. */
void counter_create(struct counter *counter, const struct options *options);

/* Counts a burst. `now_ns` is the time of any monotonic clock. */
void counter_add(struct counter *counter, struct rte_mbuf *const *burst, uint16_t count, uint64_t now_ns);

/* Estimates the packets of a flow. */
double counter_estimate(const struct counter *counter, const uint8_t *key, size_t length);

/* Returns how many of these flows are among those that the sketch names as its largest. */
size_t counter_named(const struct counter *counter, const uint8_t *keys, size_t stride, const size_t *lengths, size_t count);

struct counter_state counter_state(const struct counter *counter);

/* Writes the sketch to a file, with the times of the first and the last packet. */
void counter_save(const struct counter *counter, const char *path, uint64_t start_ns, uint64_t end_ns);

void counter_free(struct counter *counter);

#endif
