/* Counts packets. The callers' packets are only read, and no failure here stops their forwarding. */
#include "counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_errno.h>
#include <rte_member.h>
#include <rte_memory.h>

#include <thalweg_sketch.h>

#include "flow_key.h"

static uint32_t kind_of(enum sketch_kind kind)
{
	switch (kind) {
	case SKETCH_COUNT_MIN: return THALWEG_KIND_COUNT_MIN;
	case SKETCH_K_ARY: return THALWEG_KIND_K_ARY;
	case SKETCH_UNIVMON: return THALWEG_KIND_UNIV_MON;
	default: return THALWEG_KIND_COUNT_SKETCH;
	}
}

static uint32_t mode_of(enum sampling_mode mode)
{
	switch (mode) {
	case MODE_LINE_RATE: return THALWEG_MODE_ALWAYS_LINE_RATE;
	case MODE_CORRECT: return THALWEG_MODE_ALWAYS_CORRECT;
	default: return THALWEG_MODE_FIXED;
	}
}

static void create_sketch(struct counter *counter)
{
	const struct options *options = counter->options;
	thalweg_sketch_options wanted;
	if (thalweg_sketch_options_init(&wanted, sizeof(wanted)) != THALWEG_STATUS_OK)
		fail("%s", thalweg_last_error());
	wanted.kind = kind_of(options->sketch);
	wanted.rows = options->rows;
	wanted.width = options->width;
	wanted.levels = options->levels;
	wanted.top_k = options->top_k;
	wanted.counter_bits = options->counter_bits;
	wanted.hash_seed = options->hash_seed;
	wanted.sampler_seed = options->sampler_seed;
	wanted.mode = mode_of(options->mode);
	wanted.inverse_probability = options->inverse_probability;
	if (options->share > 0)
		wanted.share = options->share;
	if (options->row_ns > 0)
		wanted.row_ns = options->row_ns;
	if (options->sampled_row_ns > 0)
		wanted.sampled_row_ns = options->sampled_row_ns;
	if (thalweg_sketch_create(&wanted, &counter->sketch) != THALWEG_STATUS_OK)
		fail("cannot create the sketch: %s", thalweg_last_error());
}

/*
 * rte_member chooses the rows itself (5, or 8 with AVX-512). Its error rate sets the columns: 4 / (error rate * sampling
 * probability). Their number should not be a power of two: the rows' hashes are CRCs that differ in a constant, so that keys which
 * collide in one row would collide in all.
 */
static void create_member(struct counter *counter)
{
	const struct options *options = counter->options;
	double p = 1.0 / options->inverse_probability;
	struct rte_member_parameters wanted = {
		.name = "forward",
		.type = RTE_MEMBER_TYPE_SKETCH,
		.key_len = FLOW_KEY_IPV4,
		.error_rate = (float)(4.0 / (options->width + 0.5) / p),
		.sample_rate = (float)p,
		.top_k = options->top_k,
		.prim_hash_seed = (uint32_t)options->hash_seed,
		.sec_hash_seed = (uint32_t)options->hash_seed + 1,
		.extra_flag = options->mode == MODE_CORRECT ? RTE_MEMBER_SKETCH_ALWAYS_BOUNDED : 0,
		.socket_id = SOCKET_ID_ANY,
	};
	counter->member = rte_member_create(&wanted);
	if (counter->member == NULL)
		fail("rte_member cannot create a sketch of %u columns with a sampling probability of 1/%u: %s",
		     options->width, options->inverse_probability, rte_strerror(rte_errno));
}

void counter_create(struct counter *counter, const struct options *options)
{
	*counter = (struct counter){.options = options};
	if (options->sketch == SKETCH_MEMBER)
		create_member(counter);
	else if (options->sketch != SKETCH_NONE)
		create_sketch(counter);
}

/* The key function of the sketch, which calls it for sampled packets only. */
static size_t key_of(void *context, size_t packet, uint8_t *key)
{
	struct counter *counter = context;
	size_t length = flow_key(counter->burst[packet], key);
	counter->read++;
	counter->without_key += length == 0;
	return length;
}

static void add_to_member(struct counter *counter, struct rte_mbuf *const *burst, uint16_t count)
{
	uint8_t key[FLOW_KEY_IPV6];
	counter->read += count;
	for (uint16_t i = 0; i < count; i++) {
		if (likely(flow_key(burst[i], key) == FLOW_KEY_IPV4))
			rte_member_add(counter->member, key, 1);
		else
			counter->without_key++;
	}
}

void counter_add(struct counter *counter, struct rte_mbuf *const *burst, uint16_t count, uint64_t now_ns)
{
	if (counter->sketch != NULL) {
		if (counter->options->mode == MODE_LINE_RATE)
			thalweg_sketch_advance(counter->sketch, now_ns);
		counter->burst = burst;
		if (unlikely(thalweg_sketch_update_with(counter->sketch, count, key_of, counter, NULL) !=
			     THALWEG_STATUS_OK))
			counter->failures++;
	} else if (counter->member != NULL) {
		add_to_member(counter, burst, count);
	}
}

double counter_estimate(const struct counter *counter, const uint8_t *key, size_t length)
{
	if (counter->member != NULL) {
		uint64_t count = 0;
		if (length == FLOW_KEY_IPV4)
			rte_member_query_count(counter->member, key, &count);
		return (double)count;
	}
	thalweg_estimate estimate = {0};
	if (counter->sketch != NULL)
		thalweg_sketch_estimate(counter->sketch, key, length, 1, &estimate);
	return estimate.value;
}

static size_t named_by_member(const struct counter *counter, uint8_t **names, size_t *name_lengths)
{
	size_t capacity = counter->options->top_k;
	void **keys = calloc(capacity, sizeof(*keys));
	uint64_t *counts = calloc(capacity, sizeof(*counts));
	if (keys == NULL || counts == NULL)
		fail("no memory for the largest flows");
	int found = rte_member_report_heavyhitter(counter->member, keys, counts);
	for (int i = 0; i < found; i++) {
		memcpy(*names + (size_t)i * THALWEG_KEY_MAX, keys[i], FLOW_KEY_IPV4);
		name_lengths[i] = FLOW_KEY_IPV4;
	}
	free(keys);
	free(counts);
	return found < 0 ? 0 : (size_t)found;
}

size_t counter_named(const struct counter *counter, const uint8_t *keys, size_t stride, const size_t *lengths, size_t count)
{
	size_t capacity = counter->options->top_k, names = 0, found = 0;
	if (capacity == 0 || (counter->sketch == NULL && counter->member == NULL))
		return 0;
	uint8_t *name = calloc(capacity, THALWEG_KEY_MAX);
	size_t *name_length = calloc(capacity, sizeof(*name_length));
	thalweg_estimate *estimates = calloc(capacity, sizeof(*estimates));
	if (name == NULL || name_length == NULL || estimates == NULL)
		fail("no memory for the largest flows");
	if (counter->member != NULL)
		names = named_by_member(counter, &name, name_length);
	else
		thalweg_sketch_largest(counter->sketch, capacity, name, name_length, estimates, &names);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < names; j++)
			if (name_length[j] == lengths[i] &&
			    memcmp(name + j * THALWEG_KEY_MAX, keys + i * stride, lengths[i]) == 0) {
				found++;
				break;
			}
	free(name);
	free(name_length);
	free(estimates);
	return found;
}

struct counter_state counter_state(const struct counter *counter)
{
	struct counter_state state = {.inverse_probability = 1, .max_inverse_probability = 1};
	thalweg_statistics statistics;
	if (counter->sketch != NULL &&
	    thalweg_sketch_statistics(counter->sketch, &statistics) == THALWEG_STATUS_OK) {
		state.total = (double)statistics.total;
		state.inverse_probability = statistics.inverse_probability;
		state.max_inverse_probability = statistics.max_inverse_probability;
		state.saturations = statistics.saturations;
		state.memory_bytes = statistics.memory_bytes;
	} else if (counter->member != NULL) {
		state.inverse_probability = counter->options->inverse_probability;
		state.max_inverse_probability = state.inverse_probability;
		state.memory_bytes = (uint64_t)counter->member->num_row * counter->member->num_col * sizeof(uint64_t);
	}
	return state;
}

void counter_save(const struct counter *counter, const char *path, uint64_t start_ns, uint64_t end_ns)
{
	uint8_t *bytes = NULL;
	size_t length = 0;
	if (thalweg_sketch_save(counter->sketch, "5tuple", counter->options->label, start_ns, end_ns, &bytes,
				&length) != THALWEG_STATUS_OK)
		fail("cannot save the sketch: %s", thalweg_last_error());
	FILE *file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		fail("cannot write %s: %s", path, strerror(errno));
	thalweg_bytes_free(bytes, length);
}

void counter_free(struct counter *counter)
{
	thalweg_sketch_free(counter->sketch);
	if (counter->member != NULL)
		rte_member_free(counter->member);
}
