/* DPDK ports with one queue each way. */
#ifndef PORTS_H
#define PORTS_H

#include <stdint.h>

/* Packets that a port dropped because no descriptor or no packet buffer was free. */
struct port_drops {
	uint64_t missed, no_buffer;
};

/* Sets up the queues of a port and starts it. Ends the program with a message if that fails. */
void port_start(uint16_t port);

struct port_drops port_drops(uint16_t port);

void port_stop(uint16_t port);

#endif
