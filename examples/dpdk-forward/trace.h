/* A capture file in memory. */
#ifndef TRACE_H
#define TRACE_H

#include <stddef.h>
#include <stdint.h>

/* The packets of a pcap file of Ethernet frames, in its order. */
struct trace {
	uint8_t *bytes;
	size_t length;
	size_t packets;
	/* The longest captured part of a packet. */
	uint32_t longest;
};

/* A packet of a trace: its captured part, and its length on the wire. */
struct trace_packet {
	const uint8_t *bytes;
	uint32_t captured;
	uint32_t length;
};

/* A position in a trace. */
struct trace_cursor {
	size_t offset;
};

/* Reads a file. Ends the program with a message if it is not a pcap file of Ethernet frames in this machine's byte order. */
void trace_load(struct trace *trace, const char *path);

/* Returns the first position. */
struct trace_cursor trace_start(void);

/* Reads the packet at the cursor and moves on. Returns 0 at the end. */
int trace_next(const struct trace *trace, struct trace_cursor *cursor, struct trace_packet *packet);

#endif
