/* Sets up ports. */
#include "ports.h"

#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "options.h"

enum {
	DESCRIPTORS = 1024,
	BUFFERS = 8192,
	CACHE = 256,
};

/* All ports share the packet buffers. */
static struct rte_mempool *buffers(void)
{
	static struct rte_mempool *pool;
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create("ports", BUFFERS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		fail("cannot create packet buffers: %s", rte_strerror(rte_errno));
	return pool;
}

static void check(int status, uint16_t port, const char *step)
{
	if (status != 0)
		fail("port %u: cannot %s: %s", port, step, rte_strerror(-status));
}

void port_start(uint16_t port)
{
	struct rte_eth_dev_info info;
	check(rte_eth_dev_info_get(port, &info), port, "read its properties");
	struct rte_eth_conf configuration = {
		/* Frames longer than a buffer take several. */
		.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER,
		.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
	};
	check(rte_eth_dev_configure(port, 1, 1, &configuration), port, "configure it");
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	check(rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx), port, "choose its descriptors");
	int socket = rte_eth_dev_socket_id(port);
	check(rte_eth_rx_queue_setup(port, 0, rx, socket, NULL, buffers()), port, "set up its receive queue");
	check(rte_eth_tx_queue_setup(port, 0, tx, socket, NULL), port, "set up its transmit queue");
	check(rte_eth_dev_start(port), port, "start it");
	/* Virtual devices receive everything and have no such mode. */
	rte_eth_promiscuous_enable(port);
}

struct port_drops port_drops(uint16_t port)
{
	struct rte_eth_stats statistics;
	struct port_drops drops = {0};
	if (rte_eth_stats_get(port, &statistics) == 0)
		drops = (struct port_drops){statistics.imissed, statistics.rx_nombuf};
	return drops;
}

void port_stop(uint16_t port)
{
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}
