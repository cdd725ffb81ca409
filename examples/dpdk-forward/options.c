/* Reads the command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
	"Forwards packets between two DPDK ports and counts their flows in a sketch.\n"
	"\n"
	"usage: thalweg-dpdk-forward EAL-OPTIONS -- [OPTIONS]\n"
	"\n"
	"Without --trace it forwards between the first two ports, in both directions. With --trace it forwards packets of a file\n"
	"from memory to the first port, or back to memory if there is none.\n"
	"\n"
	"  --sketch KIND        none, count-min, count-sketch, k-ary, univmon, member (DPDK's rte_member) [none]\n"
	"  --rows N             rows [5]\n"
	"  --width N            counters in a row, a power of two; of rte_member not one [1024; member 1023]\n"
	"  --levels N           levels of a UnivMon [16]\n"
	"  --top-k N            largest flows to track [100]\n"
	"  --counter-bits N     32 or 64 [32]\n"
	"  --sampling 1/N       the sampling probability; with --mode line-rate and correct the smallest [1, 1/128]\n"
	"  --mode MODE          fixed, line-rate, correct [fixed]\n"
	"  --share SHARE        line-rate: the share of the processor's time for updates [0.1]\n"
	"  --row-ns NS          line-rate: time of a row at p = 1, a fifth of a packet's [1.5]\n"
	"  --sampled-row-ns NS  line-rate: time of a sampled row, with its key [12]\n"
	"  --hash-seed N        equal seeds let sketches be merged [0]\n"
	"  --sampler-seed N     seed of the sampling [1]\n"
	"  --trace FILE         forward the packets of this pcap file from memory\n"
	"  --rate PPS           offer packets at this rate, from a second lcore [as fast as they are forwarded]\n"
	"  --loops N            send the trace this often [1]\n"
	"  --ring N             packets that wait in memory, a power of two [4096]\n"
	"  --segment BYTES      bytes of a packet buffer; a longer packet takes several [2048]\n"
	"  --burst N            packets that are received, counted and sent at a time, 1 to 256 [32]\n"
	"  --duration SECONDS   stop after this time, at the end of the trace [no limit]\n"
	"  --exact              compare the largest 100 flows with exact counts of the trace\n"
	"  --save FILE          write the sketch for `thalweg sketch`\n"
	"  --label TEXT         label of the saved sketch\n"
	"  --json FILE          write the result here [standard output]\n"
	"\n"
	"Ends with SIGINT, too.\n";

static const char *const SKETCHES[] = {"none", "count-min", "count-sketch", "k-ary", "univmon", "member"};
static const char *const MODES[] = {"fixed", "line-rate", "correct"};

enum { COUNT_OF_SKETCHES = sizeof(SKETCHES) / sizeof(*SKETCHES), COUNT_OF_MODES = sizeof(MODES) / sizeof(*MODES) };

void fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("error: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

const char *sketch_name(enum sketch_kind kind)
{
	return SKETCHES[kind];
}

const char *mode_name(enum sampling_mode mode)
{
	return MODES[mode];
}

static unsigned int choice(const char *option, const char *text, const char *const *names, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	fprintf(stderr, "error: %s %s: expected", option, text);
	for (unsigned int i = 0; i < count; i++)
		fprintf(stderr, "%s %s", i == 0 ? "" : ",", names[i]);
	fputc('\n', stderr);
	exit(2);
}

static uint64_t whole(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 0);
	if (errno != 0 || *text == '-' || *text == 0 || *end != 0 || value < min || value > max) {
		fprintf(stderr, "error: %s %s: expected a number from %llu to %llu\n", option, text,
			(unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return value;
}

static double positive(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);
	if (*text == 0 || *end != 0 || !(value > 0) || value > 1e12) {
		fprintf(stderr, "error: %s %s: expected a number above 0\n", option, text);
		exit(2);
	}
	return value;
}

static uint32_t power_of_two(const char *option, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = whole(option, text, min, max);
	if ((value & (value - 1)) != 0) {
		fprintf(stderr, "error: %s %s: expected a power of two\n", option, text);
		exit(2);
	}
	return (uint32_t)value;
}

/* Reads `1` or `1/64`. */
static uint32_t inverse_of(const char *text)
{
	if (strcmp(text, "1") == 0)
		return 1;
	if (strncmp(text, "1/", 2) != 0) {
		fprintf(stderr, "error: --sampling %s: expected 1, 1/2, 1/4 to 1/1024\n", text);
		exit(2);
	}
	return power_of_two("--sampling", text + 2, 1, 1024);
}

void options_read(struct options *options, int argc, char **argv)
{
	enum { SKETCH = 1, ROWS, WIDTH, LEVELS, TOP_K, BITS, SAMPLING, MODE, SHARE, ROW_NS, SAMPLED_ROW_NS, HASH_SEED, SAMPLER_SEED, TRACE, RATE, LOOPS,
	       RING, SEGMENT, PACKETS, DURATION, EXACT, SAVE, LABEL, JSON, HELP };
	static const struct option KNOWN[] = {
		{"sketch", required_argument, NULL, SKETCH},
		{"rows", required_argument, NULL, ROWS},
		{"width", required_argument, NULL, WIDTH},
		{"levels", required_argument, NULL, LEVELS},
		{"top-k", required_argument, NULL, TOP_K},
		{"counter-bits", required_argument, NULL, BITS},
		{"sampling", required_argument, NULL, SAMPLING},
		{"mode", required_argument, NULL, MODE},
		{"share", required_argument, NULL, SHARE},
		{"row-ns", required_argument, NULL, ROW_NS},
		{"sampled-row-ns", required_argument, NULL, SAMPLED_ROW_NS},
		{"hash-seed", required_argument, NULL, HASH_SEED},
		{"sampler-seed", required_argument, NULL, SAMPLER_SEED},
		{"trace", required_argument, NULL, TRACE},
		{"rate", required_argument, NULL, RATE},
		{"loops", required_argument, NULL, LOOPS},
		{"ring", required_argument, NULL, RING},
		{"segment", required_argument, NULL, SEGMENT},
		{"burst", required_argument, NULL, PACKETS},
		{"duration", required_argument, NULL, DURATION},
		{"exact", no_argument, NULL, EXACT},
		{"save", required_argument, NULL, SAVE},
		{"label", required_argument, NULL, LABEL},
		{"json", required_argument, NULL, JSON},
		{"help", no_argument, NULL, HELP},
		{NULL, 0, NULL, 0},
	};
	*options = (struct options){
		.rows = 5, .levels = 16, .top_k = 100, .counter_bits = 32, .inverse_probability = 1,
		.sampler_seed = 1, .ring = 4096, .segment = 2048, .loops = 1, .burst = 32,
	};
	uint64_t width = 0;
	int found;
	optind = 1;
	while ((found = getopt_long(argc, argv, "", KNOWN, NULL)) != -1) {
		switch (found) {
		case SKETCH: options->sketch = choice("--sketch", optarg, SKETCHES, COUNT_OF_SKETCHES); break;
		case ROWS: options->rows = (uint32_t)whole("--rows", optarg, 1, 8); break;
		case WIDTH: width = whole("--width", optarg, 4, 1 << 23); break;
		case LEVELS: options->levels = (uint32_t)whole("--levels", optarg, 1, 17); break;
		case TOP_K: options->top_k = (uint32_t)whole("--top-k", optarg, 0, 1 << 24); break;
		case BITS: options->counter_bits = power_of_two("--counter-bits", optarg, 32, 64); break;
		case SAMPLING: options->inverse_probability = inverse_of(optarg); break;
		case MODE: options->mode = choice("--mode", optarg, MODES, COUNT_OF_MODES); break;
		case SHARE: options->share = positive("--share", optarg); break;
		case ROW_NS: options->row_ns = positive("--row-ns", optarg); break;
		case SAMPLED_ROW_NS: options->sampled_row_ns = positive("--sampled-row-ns", optarg); break;
		case HASH_SEED: options->hash_seed = whole("--hash-seed", optarg, 0, UINT64_MAX); break;
		case SAMPLER_SEED: options->sampler_seed = whole("--sampler-seed", optarg, 0, UINT64_MAX); break;
		case TRACE: options->trace = optarg; break;
		case RATE: options->rate_pps = positive("--rate", optarg); break;
		case LOOPS: options->loops = whole("--loops", optarg, 1, 1000000); break;
		case RING: options->ring = power_of_two("--ring", optarg, 64, 1 << 20); break;
		case SEGMENT: options->segment = (uint32_t)whole("--segment", optarg, 16, 16384); break;
		case PACKETS: options->burst = (uint32_t)whole("--burst", optarg, 1, 256); break;
		case DURATION: options->duration_seconds = positive("--duration", optarg); break;
		case EXACT: options->exact = true; break;
		case SAVE: options->save = optarg; break;
		case LABEL: options->label = optarg; break;
		case JSON: options->json = optarg; break;
		case HELP: fputs(USAGE, stdout); exit(0);
		default: fputs("run thalweg-dpdk-forward -- --help for the options\n", stderr); exit(2);
		}
	}
	if (optind < argc)
		fail("unexpected argument %s", argv[optind]);
	options->width = width != 0 ? (uint32_t)width : options->sketch == SKETCH_MEMBER ? 1023 : 1024;
	if (options->trace == NULL && (options->exact || options->rate_pps > 0))
		fail("--exact and --rate need --trace");
	if (options->save != NULL && (options->sketch == SKETCH_NONE || options->sketch == SKETCH_MEMBER))
		fail("--save needs a sketch of Thalweg: --sketch count-sketch");
	if (options->sketch == SKETCH_MEMBER && options->mode == MODE_LINE_RATE)
		fail("--sketch member has the modes fixed and correct");
}
