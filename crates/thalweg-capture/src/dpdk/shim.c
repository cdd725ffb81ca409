/*
 * The part of the DPDK source that must be C: DPDK receives packets by inline functions, which no other language can
 * call. `ffi.rs` declares these functions. No packet buffer leaves this file: packets are copied, and given back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdbool.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

/* Packets of one call of a driver. */
#define BURST 32
/* Packet buffers besides those in the descriptors: bursts in progress, and the cache of a thread. */
#define SPARE_BUFFERS 1024
#define CACHE 256
/* Bytes of a VLAN tag, and where it is in a frame. */
#define TAG 4
#define ADDRESSES 12
/* Packet sockets of a port, and the descriptors among which they are. */
#define MAX_SOCKETS 16
#define MAX_DESCRIPTORS 1024

/* What opening a port needs; see `PortRequest` in ffi.rs. */
struct thalweg_dpdk_request {
	uint16_t readers;
	uint16_t descriptors;
	uint16_t frame_bytes;
	bool promiscuous;
};

/* An open port; see `OpenPort` in ffi.rs. */
struct thalweg_dpdk_port {
	struct rte_mempool *pool;
	uint32_t interface;
	uint16_t port;
	uint16_t queues;
	uint32_t socket_count;
	int sockets[MAX_SOCKETS];
	bool made_promiscuous;
};

/* A received packet; see `Received` in ffi.rs. */
struct thalweg_dpdk_packet {
	uint32_t captured;
	uint32_t length;
};

/* What a port has dropped; see `Drops` in ffi.rs. */
struct thalweg_dpdk_drops {
	uint64_t missed;
	uint64_t no_buffer;
	uint64_t by_kernel;
};

/* The ports that are open. The EAL attaches some devices by itself, so attached is not open. */
static bool in_use[RTE_MAX_ETHPORTS];

/*
 * While a log is redirected, what DPDK reports goes to `text`: the reason of a failure is only there. Returns NULL
 * if there is no memory for it, and then the messages go where they always go.
 */
static FILE *redirect_log(char *text, size_t size)
{
	text[0] = 0;
	FILE *file = fmemopen(text, size, "w");
	if (file != NULL) {
		setvbuf(file, NULL, _IONBF, 0);
		rte_openlog_stream(file);
	}
	return file;
}

static void restore_log(FILE *file, char *text, size_t size)
{
	if (file != NULL) {
		rte_openlog_stream(NULL);
		fclose(file);
	}
	text[size - 1] = 0;
}

/* Hides the standard output, to which the EAL writes all its options if one is wrong. Returns what restores it. */
static int hide_output(void)
{
	fflush(stdout);
	int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (output >= 0 && nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	if (nowhere >= 0)
		close(nowhere);
	return output;
}

static void restore_output(int output)
{
	fflush(stdout);
	if (output < 0)
		return;
	dup2(output, STDOUT_FILENO);
	close(output);
}

/* Starts the EAL. Returns 0, or an error number. The EAL pins the thread that starts it; this one stays free. */
int thalweg_dpdk_start(int argc, char **argv, char *log, size_t log_size)
{
	cpu_set_t allowed;
	int known = sched_getaffinity(0, sizeof(allowed), &allowed);
	FILE *file = redirect_log(log, log_size);
	int output = hide_output();
	int started = rte_eal_init(argc, argv);
	int error = started < 0 ? rte_errno : 0;
	restore_output(output);
	restore_log(file, log, log_size);
	if (known == 0)
		sched_setaffinity(0, sizeof(allowed), &allowed);
	return started < 0 && error == 0 ? EINVAL : error;
}

/* Finds the port of a device that was just attached. */
static int port_of(const char *device, uint16_t *port)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	size_t length = strcspn(device, ",");
	if (length < sizeof(name)) {
		memcpy(name, device, length);
		name[length] = 0;
		if (rte_eth_dev_get_port_by_name(name, port) == 0)
			return 0;
	}
	struct rte_dev_iterator iterator;
	RTE_ETH_FOREACH_MATCHING_DEV(*port, device, &iterator) {
		rte_eth_iterator_cleanup(&iterator);
		return 0;
	}
	return -ENODEV;
}

/* Whether the descriptor is a packet socket of the interface with this index. */
static bool is_packet_socket(int descriptor, uint32_t interface)
{
	struct sockaddr_ll address = {0};
	socklen_t length = sizeof(address);
	return getsockname(descriptor, (struct sockaddr *)&address, &length) == 0 && address.sll_family == AF_PACKET &&
	       address.sll_ifindex == (int)interface;
}

/*
 * Finds the packet sockets of the driver net_af_packet, which does not report the packets that the kernel drops in front of them. The
 * sockets of others were there before.
 */
static void find_sockets(struct thalweg_dpdk_port *open, const bool *others)
{
	for (int descriptor = 0; descriptor < MAX_DESCRIPTORS && open->socket_count < MAX_SOCKETS; descriptor++)
		if (!others[descriptor] && is_packet_socket(descriptor, open->interface))
			open->sockets[open->socket_count++] = descriptor;
}

/* Notes which descriptors are sockets. */
static void note_sockets(bool *found)
{
	struct sockaddr_ll address;
	for (int descriptor = 0; descriptor < MAX_DESCRIPTORS; descriptor++) {
		socklen_t length = sizeof(address);
		found[descriptor] = getsockname(descriptor, (struct sockaddr *)&address, &length) == 0;
	}
}

/* Whether the arguments of the device set its queues, so that packets of a queue that nobody reads would be lost. */
static bool has_fixed_queues(const struct rte_eth_dev_info *info)
{
	const char *drivers[] = {"net_af_packet", "net_af_xdp", "net_pcap", "net_ring"};
	for (size_t i = 0; i < RTE_DIM(drivers); i++)
		if (strcmp(info->driver_name, drivers[i]) == 0)
			return true;
	return false;
}

/* The bytes of a packet buffer, for frames of this length. */
static uint16_t buffer_size(uint16_t frame_bytes)
{
	return RTE_MIN(RTE_MAX(frame_bytes + RTE_PKTMBUF_HEADROOM, RTE_MBUF_DEFAULT_BUF_SIZE), UINT16_MAX);
}

static int set_up_queues(struct thalweg_dpdk_port *open, const struct rte_eth_dev_info *info,
			 const struct thalweg_dpdk_request *request, uint16_t tx_queues)
{
	uint16_t descriptors = request->descriptors;
	uint16_t tx_descriptors = descriptors;
	int status = rte_eth_dev_adjust_nb_rx_tx_desc(open->port, &descriptors, &tx_descriptors);
	if (status != 0)
		return status;
	char name[RTE_MEMPOOL_NAMESIZE];
	snprintf(name, sizeof(name), "thalweg_port_%u", open->port);
	unsigned int buffers = open->queues * (descriptors + SPARE_BUFFERS) + tx_queues * tx_descriptors;
	open->pool = rte_pktmbuf_pool_create(name, buffers, CACHE, 0, buffer_size(request->frame_bytes), SOCKET_ID_ANY);
	if (open->pool == NULL)
		return -rte_errno;
	int socket = rte_eth_dev_socket_id(open->port);
	for (uint16_t queue = 0; queue < open->queues; queue++) {
		status = rte_eth_rx_queue_setup(open->port, queue, descriptors, socket, &info->default_rxconf,
						open->pool);
		if (status != 0)
			return status;
	}
	for (uint16_t queue = 0; queue < tx_queues; queue++) {
		status = rte_eth_tx_queue_setup(open->port, queue, tx_descriptors, socket, &info->default_txconf);
		if (status != 0)
			return status;
	}
	return 0;
}

/* Whether somebody made the network interface promiscuous, as the driver net_af_packet does. */
static bool is_promiscuous(unsigned int interface)
{
	struct ifreq request = {0};
	if (interface == 0 || if_indextoname(interface, request.ifr_name) == NULL)
		return false;
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known = any >= 0 && ioctl(any, SIOCGIFFLAGS, &request) == 0;
	if (any >= 0)
		close(any);
	return known && (request.ifr_flags & IFF_PROMISC) != 0;
}

static int start_port(struct thalweg_dpdk_port *open, const struct thalweg_dpdk_request *request)
{
	struct rte_eth_dev_info info;
	int status = rte_eth_dev_info_get(open->port, &info);
	if (status != 0)
		return status;
	open->interface = info.if_index;
	/* Starting the port ends the mode. */
	bool was_promiscuous = is_promiscuous(info.if_index);
	open->queues = has_fixed_queues(&info) ? info.max_rx_queues : RTE_MIN(info.max_rx_queues, request->readers);
	/* Some drivers need as many queues to send as to receive, though nothing is sent. */
	uint16_t tx_queues = RTE_MIN(info.max_tx_queues, open->queues);
	struct rte_eth_conf configuration = {0};
	if (open->queues > 1 && info.flow_type_rss_offloads != 0) {
		configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		configuration.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	configuration.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	status = rte_eth_dev_configure(open->port, open->queues, tx_queues, &configuration);
	if (status != 0)
		return status;
	status = set_up_queues(open, &info, request, tx_queues);
	if (status != 0)
		return status;
	status = rte_eth_dev_start(open->port);
	if (status != 0)
		return status;
	if (request->promiscuous || was_promiscuous) {
		/* Virtual devices receive everything and know no such mode. */
		status = rte_eth_promiscuous_enable(open->port);
		open->made_promiscuous = status == 0 && !was_promiscuous;
		if (status == -ENOTSUP)
			status = 0;
	}
	return status;
}

/* Stops a port and detaches its device. */
void thalweg_dpdk_close(struct thalweg_dpdk_port *open)
{
	struct rte_eth_dev_info info;
	bool known = rte_eth_dev_info_get(open->port, &info) == 0;
	if (open->made_promiscuous)
		rte_eth_promiscuous_disable(open->port);
	rte_eth_dev_stop(open->port);
	rte_eth_dev_close(open->port);
	if (known && info.device != NULL)
		rte_dev_remove(info.device);
	rte_mempool_free(open->pool);
	in_use[open->port] = false;
}

/* Attaches a device and starts its port. Returns 0, or an error number; nothing is left of a device that failed. */
int thalweg_dpdk_open(const char *device, const struct thalweg_dpdk_request *request, struct thalweg_dpdk_port *open,
		      char *log, size_t log_size)
{
	bool others[MAX_DESCRIPTORS];
	memset(open, 0, sizeof(*open));
	note_sockets(others);
	FILE *file = redirect_log(log, log_size);
	int status = rte_dev_probe(device);
	if (status == 0)
		status = port_of(device, &open->port);
	if (status == 0 && in_use[open->port])
		status = -EEXIST;
	if (status == 0) {
		in_use[open->port] = true;
		status = start_port(open, request);
		if (status != 0)
			thalweg_dpdk_close(open);
		else if (open->interface != 0)
			find_sockets(open, others);
	}
	restore_log(file, log, log_size);
	if (status == -EEXIST)
		snprintf(log, log_size, "it is already open in this process");
	return -status;
}

/* Copies up to `limit` bytes of a packet, which may have several segments, and restores a VLAN tag that was removed. */
static uint32_t copy(const struct rte_mbuf *packet, uint8_t *bytes, uint32_t limit)
{
	bool tagged = packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && packet->data_len >= ADDRESSES &&
		      limit >= ADDRESSES + TAG;
	uint32_t copied = 0, skipped = 0;
	if (tagged) {
		const uint8_t *data = rte_pktmbuf_mtod(packet, const uint8_t *);
		const uint8_t tag[TAG] = {0x81, 0x00, packet->vlan_tci >> 8, packet->vlan_tci & 0xff};
		memcpy(bytes, data, ADDRESSES);
		memcpy(bytes + ADDRESSES, tag, TAG);
		copied = ADDRESSES + TAG;
		skipped = ADDRESSES;
	}
	for (const struct rte_mbuf *segment = packet; segment != NULL && copied < limit; segment = segment->next) {
		uint32_t part = RTE_MIN(segment->data_len - skipped, limit - copied);
		memcpy(bytes + copied, rte_pktmbuf_mtod(segment, const uint8_t *) + skipped, part);
		copied += part;
		skipped = 0;
	}
	return copied;
}

/*
 * Receives at most `max` packets of a queue. The packet i is at `bytes + i * stride`, at most `stride` bytes of it.
 * A thread that calls this gets a buffer cache of its own, until `thalweg_dpdk_leave`.
 */
uint16_t thalweg_dpdk_receive(uint16_t port, uint16_t queue, uint8_t *bytes, uint32_t stride,
			      struct thalweg_dpdk_packet *packets, uint16_t max)
{
	struct rte_mbuf *burst[BURST];
	uint16_t received = 0;
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		rte_thread_register();
	while (received + BURST <= max) {
		uint16_t count = rte_eth_rx_burst(port, queue, burst, BURST);
		for (uint16_t i = 0; i < count; i++)
			rte_prefetch0(rte_pktmbuf_mtod(burst[i], const void *));
		for (uint16_t i = 0; i < count; i++) {
			const struct rte_mbuf *packet = burst[i];
			uint32_t tag = packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED ? TAG : 0;
			packets[received].captured = copy(packet, bytes + (size_t)received * stride, stride);
			packets[received].length = rte_pktmbuf_pkt_len(packet) + tag;
			received++;
		}
		rte_pktmbuf_free_bulk(burst, count);
		if (count == 0)
			break;
	}
	return received;
}

/* Gives back what the calling thread got with its first call of `thalweg_dpdk_receive`. */
void thalweg_dpdk_leave(void)
{
	if (rte_lcore_id() != LCORE_ID_ANY && rte_eal_lcore_role(rte_lcore_id()) == ROLE_NON_EAL)
		rte_thread_unregister();
}

/* Reads how many packets the port has dropped, and the kernel in front of it since the last call. */
void thalweg_dpdk_drops(const struct thalweg_dpdk_port *open, struct thalweg_dpdk_drops *drops)
{
	struct rte_eth_stats statistics;
	if (rte_eth_stats_get(open->port, &statistics) == 0) {
		drops->missed = statistics.imissed;
		drops->no_buffer = statistics.rx_nombuf;
	}
	for (uint32_t i = 0; i < open->socket_count; i++) {
		struct tpacket_stats kernel;
		socklen_t length = sizeof(kernel);
		if (getsockopt(open->sockets[i], SOL_PACKET, PACKET_STATISTICS, &kernel, &length) == 0)
			drops->by_kernel += kernel.tp_drops;
	}
}

/* Returns 1 if the link is up, 0 if it is down, -1 if the device was removed. */
int thalweg_dpdk_link(uint16_t port)
{
	if (rte_eth_dev_is_removed(port) == 1)
		return -1;
	struct rte_eth_link link = {0};
	/* A driver that does not know its link is taken to be up. */
	return rte_eth_link_get_nowait(port, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}
