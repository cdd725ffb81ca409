/*
 * rte-member-sketch KEYS TOP: runs DPDK's rte_member of type sketch on a stream of keys, once for each way of
 * calling it, and prints what came of it, a line of JSON for each.
 *
 * KEYS has the keys end to end, 13 bytes each; TOP the largest flows, one a line: the key in hexadecimal, a
 * space, its packets. Time is the processor time of the updates alone.
 *
 * The library has no call that adds many keys. It chooses the rows (5, or 8 with AVX-512, which it has for
 * counting bytes only) and the columns: 4 / (error rate * sample rate) when it counts packets, 4 / error rate
 * when it counts bytes, rounded up to a power of two with AVX-512. The error rate is set such that there are
 * 8191 of them, and not 8192: the hash of a row is the remainder of a CRC32, whose seed only flips the same bits
 * for all keys, so that with a power of two what collides in one row collides in all. One row's error it had then,
 * and its heap named 7 of the top 100.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_member.h>
#include <rte_memory.h>
#include <rte_random.h>

enum { KEY_BYTES = 13, WIDTH = 8191, TOP = 100, SEED = 1 };

struct flow {
	uint8_t key[KEY_BYTES];
	uint64_t packets;
};

/* Keys, and the largest flows. */
struct stream {
	uint8_t *keys;
	size_t packets;
	struct flow largest[TOP];
	size_t flows;
};

static void fail(const char *what)
{
	fprintf(stderr, "error: %s\n", what);
	exit(1);
}

static void read_keys(struct stream *stream, const char *path)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
		fail("cannot read the keys");
	long bytes = ftell(file);
	rewind(file);
	if (bytes <= 0 || bytes % KEY_BYTES != 0)
		fail("the keys are not of 13 bytes each");
	stream->packets = (size_t)bytes / KEY_BYTES;
	stream->keys = malloc((size_t)bytes);
	if (stream->keys == NULL || fread(stream->keys, KEY_BYTES, stream->packets, file) != stream->packets)
		fail("cannot read the keys");
	fclose(file);
}

static void read_top(struct stream *stream, const char *path)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		fail("cannot read the largest flows");
	char digits[2 * KEY_BYTES + 1];
	unsigned long long packets;
	while (stream->flows < TOP && fscanf(file, "%26s %llu", digits, &packets) == 2) {
		struct flow *flow = &stream->largest[stream->flows++];
		for (int i = 0; i < KEY_BYTES; i++)
			if (sscanf(digits + 2 * i, "%2hhx", &flow->key[i]) != 1)
				fail("a key is not hexadecimal");
		flow->packets = packets;
	}
	if (stream->flows == 0)
		fail("there are no largest flows");
	fclose(file);
}

static double processor_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Keeps DPDK on the processor that this program was put on, and off huge pages and devices. It uses AVX-512, where
 * there is any, only if it is told to.
 */
static void start_dpdk(char *program)
{
	cpu_set_t allowed;
	int cpu = 0;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed))
			cpu++;
	char lcores[32];
	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", cpu);
	char *arguments[] = {program, lcores, "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "64",
			     "--log-level=error", "--force-max-simd-bitwidth=512"};
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) < 0)
		fail(rte_strerror(rte_errno));
	rte_srand(SEED);
}

static struct rte_member_setsum *create(double p, uint32_t flags)
{
	static unsigned int number;
	char name[RTE_MEMBER_NAMESIZE];
	snprintf(name, sizeof(name), "sketch-%u", number++);
	double counted = flags & RTE_MEMBER_SKETCH_COUNT_BYTE ? 1 : p;
	struct rte_member_parameters parameters = {
		.name = name,
		.type = RTE_MEMBER_TYPE_SKETCH,
		.key_len = KEY_BYTES,
		.error_rate = (float)(4.0 / (WIDTH + 0.5) / counted),
		.sample_rate = (float)p,
		.top_k = TOP,
		.prim_hash_seed = SEED,
		.sec_hash_seed = SEED + 1,
		.extra_flag = flags,
		.socket_id = SOCKET_ID_ANY,
	};
	struct rte_member_setsum *sketch = rte_member_create(&parameters);
	if (sketch == NULL)
		fail("rte_member_create");
	return sketch;
}

/* What the heap reports for a flow if it names it, or else what the sketch answers. */
static double estimate(const struct rte_member_setsum *sketch, const uint8_t *key, void **named, uint64_t *counts,
		       int names, int *found)
{
	for (int i = 0; i < names; i++)
		if (memcmp(named[i], key, KEY_BYTES) == 0) {
			++*found;
			return (double)counts[i];
		}
	uint64_t count = 0;
	rte_member_query_count(sketch, key, &count);
	return (double)count;
}

static void run(const struct stream *stream, const char *contender, double p, uint32_t flags, const char *note)
{
	struct rte_member_setsum *sketch = create(p, flags);
	const uint8_t *key = stream->keys, *end = stream->keys + stream->packets * KEY_BYTES;
	double start = processor_seconds();
	if (flags & RTE_MEMBER_SKETCH_COUNT_BYTE)
		for (; key < end; key += KEY_BYTES)
			rte_member_add_byte_count(sketch, key, 1);
	else
		for (; key < end; key += KEY_BYTES)
			rte_member_add(sketch, key, 1);
	double seconds = processor_seconds() - start;

	void *named[TOP];
	uint64_t counts[TOP];
	int names = rte_member_report_heavyhitter(sketch, named, counts);
	int found = 0;
	double error = 0;
	for (size_t i = 0; i < stream->flows; i++) {
		const struct flow *flow = &stream->largest[i];
		double count = estimate(sketch, flow->key, named, counts, names, &found);
		error += fabs(count - (double)flow->packets) / (double)flow->packets;
	}
	/* With bytes only the heap is sampled: every row counts every packet. */
	printf("{\"contender\":\"%s\",\"sketch\":\"Count-Min\",\"rows\":%u,\"width\":%u,\"p\":%.17g,\"top\":%d,"
	       "\"key_bytes\":%d,\"memory_bytes\":%zu,\"note\":\"%s\",\"packets\":%zu,\"seconds\":%.9f,"
	       "\"error\":%.9g,\"found\":%d}\n",
	       contender, sketch->num_row, sketch->num_col, flags & RTE_MEMBER_SKETCH_COUNT_BYTE ? 1.0 : p, TOP,
	       KEY_BYTES, (size_t)sketch->num_row * sketch->num_col * sizeof(uint64_t), note, stream->packets, seconds,
	       error / (double)stream->flows, found);
	fflush(stdout);
	rte_member_free(sketch);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		fail("usage: rte-member-sketch KEYS TOP");
	struct stream stream = {0};
	read_keys(&stream, argv[1]);
	read_top(&stream, argv[2]);
	start_dpdk(argv[0]);
	const double sampled[] = {1, 1.0 / 16, 1.0 / 128};
	for (int i = 0; i < 3; i++)
		run(&stream, "DPDK rte_member", sampled[i], 0, "64-bit counters; 8191 as CRC32 wants no power of two");
	for (int i = 0; i < 3; i += 2) {
		char note[80];
		snprintf(note, sizeof(note), "64-bit counters; heap fed 1 in %.0f packets", 1 / sampled[i]);
		run(&stream, "DPDK rte_member, bytes", sampled[i], RTE_MEMBER_SKETCH_COUNT_BYTE, note);
	}
	return 0;
}
