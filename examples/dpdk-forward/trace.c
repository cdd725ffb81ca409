/* Capture files: the classic pcap format, version 2.4, in microseconds or nanoseconds. */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum {
	FILE_HEADER = 24,
	RECORD_HEADER = 16,
	CAPTURED = 8,
	LENGTH = 12,
	LINK_TYPE = 20,
	LINK_TYPE_ETHERNET = 1,
	/* A longer record is damage. */
	MAX_CAPTURED = 1 << 18,
};

static const uint32_t MAGIC_MICROSECONDS = 0xa1b2c3d4, MAGIC_NANOSECONDS = 0xa1b23c4d;

static uint32_t read32(const uint8_t *bytes)
{
	uint32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

struct trace_cursor trace_start(void)
{
	return (struct trace_cursor){FILE_HEADER};
}

int trace_next(const struct trace *trace, struct trace_cursor *cursor, struct trace_packet *packet)
{
	size_t left = trace->length - cursor->offset;
	if (left < RECORD_HEADER)
		return 0;
	const uint8_t *record = trace->bytes + cursor->offset;
	packet->captured = read32(record + CAPTURED);
	packet->length = read32(record + LENGTH);
	packet->bytes = record + RECORD_HEADER;
	if (packet->captured > MAX_CAPTURED || packet->captured > left - RECORD_HEADER)
		return 0;
	cursor->offset += RECORD_HEADER + packet->captured;
	return 1;
}

void trace_load(struct trace *trace, const char *path)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		fail("cannot read %s: %s", path, strerror(errno));
	long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
	rewind(file);
	if (length < FILE_HEADER)
		fail("%s: expected a pcap file", path);
	trace->length = (size_t)length;
	trace->bytes = malloc(trace->length);
	if (trace->bytes == NULL)
		fail("no memory for the %ld bytes of %s", length, path);
	if (fread(trace->bytes, 1, trace->length, file) != trace->length)
		fail("cannot read %s", path);
	fclose(file);
	uint32_t magic = read32(trace->bytes);
	if (magic != MAGIC_MICROSECONDS && magic != MAGIC_NANOSECONDS)
		fail("%s: expected a pcap file in this machine's byte order (editcap -F pcap converts others)", path);
	if (read32(trace->bytes + LINK_TYPE) != LINK_TYPE_ETHERNET)
		fail("%s: expected Ethernet frames", path);

	struct trace_cursor cursor = trace_start();
	struct trace_packet packet;
	while (trace_next(trace, &cursor, &packet)) {
		trace->packets++;
		if (packet.captured > trace->longest)
			trace->longest = packet.captured;
	}
	if (cursor.offset != trace->length)
		fprintf(stderr, "warning: %s is damaged after packet %zu\n", path, trace->packets);
	if (trace->packets == 0)
		fail("%s has no packets", path);
}
