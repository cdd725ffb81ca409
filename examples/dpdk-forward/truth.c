/* Exact counts in a hash table with open addressing, which grows. */
#include "truth.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "flow_key.h"

struct flow {
	uint64_t packets;
	uint8_t key[FLOW_KEY_IPV6];
	/* 0 where the place is free. */
	uint8_t length;
};

struct table {
	struct flow *flows;
	/* A power of two. */
	size_t places, used;
};

/* FNV-1a (Fowler, Noll, Vo), with its high bits mixed into the low ones. */
static uint64_t hash(const uint8_t *key, size_t length)
{
	uint64_t value = 0xcbf29ce484222325;
	for (size_t i = 0; i < length; i++)
		value = (value ^ key[i]) * 0x100000001b3;
	return value ^ value >> 29;
}

static struct flow *place_of(const struct table *table, const uint8_t *key, size_t length)
{
	size_t place = hash(key, length) & (table->places - 1);
	for (;;) {
		struct flow *flow = &table->flows[place];
		if (flow->length == 0 || (flow->length == length && memcmp(flow->key, key, length) == 0))
			return flow;
		place = (place + 1) & (table->places - 1);
	}
}

static void allocate(struct table *table, size_t places)
{
	table->places = places;
	table->flows = calloc(places, sizeof(*table->flows));
	if (table->flows == NULL)
		fail("no memory for exact counts of %zu flows", places / 2);
}

static void grow(struct table *table)
{
	struct table old = *table;
	allocate(table, 2 * old.places);
	for (size_t i = 0; i < old.places; i++)
		if (old.flows[i].length != 0)
			*place_of(table, old.flows[i].key, old.flows[i].length) = old.flows[i];
	free(old.flows);
}

static void count(struct table *table, const uint8_t *key, size_t length)
{
	if (2 * table->used >= table->places)
		grow(table);
	struct flow *flow = place_of(table, key, length);
	if (flow->length == 0) {
		memcpy(flow->key, key, length);
		flow->length = (uint8_t)length;
		table->used++;
	}
	flow->packets++;
}

static void count_all(struct table *table, const struct trace *trace)
{
	struct trace_cursor cursor = trace_start();
	struct trace_packet packet;
	uint8_t key[FLOW_KEY_IPV6];
	while (trace_next(trace, &cursor, &packet)) {
		/* The headers of a packet are in its first 65,535 bytes, so one segment has them. */
		uint16_t length_of_segment = packet.captured < UINT16_MAX ? (uint16_t)packet.captured : UINT16_MAX;
		struct rte_mbuf buffer = {
			.buf_addr = (void *)(uintptr_t)packet.bytes,
			.data_len = length_of_segment,
			.pkt_len = length_of_segment,
			.nb_segs = 1,
		};
		size_t length = flow_key(&buffer, key);
		if (length > 0)
			count(table, key, length);
	}
}

static int by_packets(const void *one, const void *other)
{
	uint64_t first = (*(struct flow *const *)one)->packets, second = (*(struct flow *const *)other)->packets;
	return first < second ? 1 : first > second ? -1 : 0;
}

struct accuracy truth_compare(const struct trace *trace, uint64_t loops, const struct counter *counter)
{
	struct table table = {0};
	allocate(&table, 1 << 16);
	count_all(&table, trace);
	struct accuracy accuracy = {.flows = table.used};
	struct flow **sorted = calloc(table.used + 1, sizeof(*sorted));
	if (sorted == NULL)
		fail("no memory to sort %zu flows", table.used);
	size_t flows = 0;
	for (size_t i = 0; i < table.places; i++)
		if (table.flows[i].length != 0)
			sorted[flows++] = &table.flows[i];
	qsort(sorted, flows, sizeof(*sorted), by_packets);

	uint8_t keys[LARGEST][FLOW_KEY_IPV6];
	size_t lengths[LARGEST];
	accuracy.compared = flows < LARGEST ? flows : LARGEST;
	for (size_t i = 0; i < accuracy.compared; i++) {
		double exact = (double)sorted[i]->packets * (double)loops;
		double estimate = counter_estimate(counter, sorted[i]->key, sorted[i]->length);
		accuracy.relative_error += fabs(estimate - exact) / exact / (double)accuracy.compared;
		memcpy(keys[i], sorted[i]->key, FLOW_KEY_IPV6);
		lengths[i] = sorted[i]->length;
	}
	accuracy.named = counter_named(counter, keys[0], FLOW_KEY_IPV6, lengths, accuracy.compared);
	free(sorted);
	free(table.flows);
	return accuracy;
}
