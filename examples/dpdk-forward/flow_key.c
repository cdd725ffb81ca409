/* The 5-tuple of a packet. Each read is checked against the length of the frame and of the IP packet. */
#include "flow_key.h"

#include <stdbool.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

enum {
	ETHERNET_HEADER = 14,
	VLAN_TAG = 4,
	MAX_TAGS = 8,
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	/* A valid packet has each kind once and destination options twice (RFC 8200 section 4.1). */
	MAX_EXTENSION_HEADERS = 12,
};

/* EtherTypes (IANA, IEEE 802 Numbers). */
enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86DD,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_SERVICE_VLAN = 0x88A8,
	ETHERTYPE_OLD_SERVICE_VLAN = 0x9100,
};

/* Protocol numbers (IANA). */
enum {
	HOP_BY_HOP = 0,
	ICMP = 1,
	TCP = 6,
	UDP = 17,
	DCCP = 33,
	ROUTING = 43,
	FRAGMENT = 44,
	AUTHENTICATION = 51,
	ICMPV6 = 58,
	NO_NEXT_HEADER = 59,
	DESTINATION_OPTIONS = 60,
	SCTP = 132,
	MOBILITY = 135,
	UDP_LITE = 136,
	HOST_IDENTITY = 139,
	SHIM6 = 140,
};

/* Flags and fragment offset of an IPv4 header (RFC 791 section 3.1). */
enum { MORE_FRAGMENTS = 0x2000, FRAGMENT_OFFSET = 0x1FFF };

/* A part of a packet that has not been read yet. */
struct rest {
	const struct rte_mbuf *packet;
	uint32_t offset;
	uint32_t end;
};

/* What IP says about the packet. */
struct datagram {
	struct rest payload;
	uint8_t protocol;
	bool is_later_fragment;
};

static uint16_t read16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* Returns the next `length` bytes, copied to `copy` if they are in several segments; NULL if the rest is shorter. */
static const uint8_t *peek(const struct rest *rest, uint32_t length, uint8_t *copy)
{
	if (rest->end - rest->offset < length)
		return NULL;
	return rte_pktmbuf_read(rest->packet, rest->offset, length, copy);
}

static void skip(struct rest *rest, uint32_t length)
{
	rest->offset = rest->end - rest->offset < length ? rest->end : rest->offset + length;
}

/* Ends the rest after `length` bytes, if it is longer. */
static void limit(struct rest *rest, uint32_t length)
{
	if (rest->end - rest->offset > length)
		rest->end = rest->offset + length;
}

static bool is_extension_header(uint8_t protocol)
{
	switch (protocol) {
	case HOP_BY_HOP:
	case ROUTING:
	case FRAGMENT:
	case AUTHENTICATION:
	case DESTINATION_OPTIONS:
	case MOBILITY:
	case HOST_IDENTITY:
	case SHIM6:
		return true;
	default:
		return false;
	}
}

/* Skips up to `max` extension headers; stops at a later fragment and at the end of the frame. */
static void skip_extension_headers(struct datagram *datagram, int max)
{
	uint8_t copy[8];
	for (int i = 0; i < max && is_extension_header(datagram->protocol); i++) {
		uint8_t number = datagram->protocol;
		const uint8_t *header = peek(&datagram->payload, number == FRAGMENT ? 8 : 2, copy);
		if (header == NULL)
			return;
		/* Messages of these protocols that have no next header are the payload. */
		if (header[0] == NO_NEXT_HEADER &&
		    (number == MOBILITY || number == HOST_IDENTITY || number == SHIM6))
			return;
		uint32_t length;
		if (number == FRAGMENT)
			length = 8;
		else if (number == AUTHENTICATION)
			length = (header[1] + 2u) * 4;
		else
			length = (header[1] + 1u) * 8;
		datagram->protocol = header[0];
		datagram->is_later_fragment = number == FRAGMENT && read16(header + 2) >> 3 != 0;
		skip(&datagram->payload, length);
		if (datagram->is_later_fragment)
			return;
	}
}

/* Reads ports, or the identifier of an echo; leaves zeros if there are none. */
static void read_ports(const struct datagram *datagram, uint8_t *ports)
{
	uint8_t copy[6];
	const uint8_t *header;
	bool is_echo;
	memset(ports, 0, 4);
	if (datagram->is_later_fragment)
		return;
	switch (datagram->protocol) {
	case TCP:
	case UDP:
	case UDP_LITE:
	case SCTP:
	case DCCP:
		header = peek(&datagram->payload, 4, copy);
		if (header != NULL)
			memcpy(ports, header, 4);
		break;
	case ICMP:
	case ICMPV6:
		header = peek(&datagram->payload, 6, copy);
		if (header == NULL)
			break;
		is_echo = datagram->protocol == ICMP ? header[0] == 8 || header[0] == 0
						     : header[0] == 128 || header[0] == 129;
		if (is_echo) {
			memcpy(ports, header + 4, 2);
			memcpy(ports + 2, header + 4, 2);
		}
		break;
	default:
		break;
	}
}

static size_t ipv4_key(struct rest rest, uint8_t *key)
{
	uint8_t copy[IPV4_HEADER];
	const uint8_t *header = peek(&rest, IPV4_HEADER, copy);
	if (header == NULL || header[0] >> 4 != 4)
		return 0;
	uint32_t header_length = (header[0] & 0x0Fu) * 4, total = read16(header + 2);
	if (total == 0) /* A length beyond 16 bits: segmentation offload, BIG TCP. */
		total = rest.end - rest.offset;
	if (header_length < IPV4_HEADER || total < header_length)
		return 0;
	uint16_t fragmentation = read16(header + 6);
	struct datagram datagram = {
		.payload = rest,
		.protocol = header[9],
		.is_later_fragment = (fragmentation & FRAGMENT_OFFSET) != 0,
	};
	memcpy(key, header + 12, 8);
	limit(&datagram.payload, total);
	skip(&datagram.payload, header_length);
	if (datagram.protocol == AUTHENTICATION && !datagram.is_later_fragment)
		skip_extension_headers(&datagram, 1);
	read_ports(&datagram, key + 8);
	key[12] = datagram.protocol;
	return FLOW_KEY_IPV4;
}

static size_t ipv6_key(struct rest rest, uint8_t *key)
{
	uint8_t copy[IPV6_HEADER];
	const uint8_t *header = peek(&rest, IPV6_HEADER, copy);
	if (header == NULL || header[0] >> 4 != 6)
		return 0;
	struct datagram datagram = {.payload = rest, .protocol = header[6]};
	uint32_t length = read16(header + 4);
	memcpy(key, header + 8, 32);
	/* 0 is a length beyond 16 bits if a header must follow: segmentation offload, BIG TCP, jumbograms. */
	if (length != 0 || !(datagram.protocol == TCP || datagram.protocol == UDP ||
			     is_extension_header(datagram.protocol)))
		limit(&datagram.payload, IPV6_HEADER + length);
	skip(&datagram.payload, IPV6_HEADER);
	skip_extension_headers(&datagram, MAX_EXTENSION_HEADERS);
	read_ports(&datagram, key + 32);
	key[36] = datagram.protocol;
	return FLOW_KEY_IPV6;
}

/* Most packets: TCP or UDP over IPv4 without options and fragments, the headers in one segment. */
static bool common_key(const struct rte_mbuf *packet, uint8_t *key)
{
	enum { IP = ETHERNET_HEADER, PORTS = IP + IPV4_HEADER };
	if (packet->data_len < PORTS + 4)
		return false;
	const uint8_t *frame = rte_pktmbuf_mtod(packet, const uint8_t *);
	uint8_t protocol = frame[IP + 9];
	if (read16(frame + 12) != ETHERTYPE_IPV4 || frame[IP] != 0x45 || read16(frame + IP + 2) < IPV4_HEADER + 4 ||
	    (read16(frame + IP + 6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET)) != 0 ||
	    (protocol != TCP && protocol != UDP))
		return false;
	memcpy(key, frame + IP + 12, 12);
	key[12] = protocol;
	return true;
}

size_t flow_key(const struct rte_mbuf *packet, uint8_t *key)
{
	if (likely(common_key(packet, key)))
		return FLOW_KEY_IPV4;
	struct rest rest = {packet, 0, rte_pktmbuf_pkt_len(packet)};
	uint8_t copy[ETHERNET_HEADER];
	const uint8_t *header = peek(&rest, ETHERNET_HEADER, copy);
	if (header == NULL)
		return 0;
	uint16_t ethertype = read16(header + 12);
	skip(&rest, ETHERNET_HEADER);
	for (int tags = 0; tags < MAX_TAGS; tags++) {
		switch (ethertype) {
		case ETHERTYPE_IPV4:
			return ipv4_key(rest, key);
		case ETHERTYPE_IPV6:
			return ipv6_key(rest, key);
		case ETHERTYPE_VLAN:
		case ETHERTYPE_SERVICE_VLAN:
		case ETHERTYPE_OLD_SERVICE_VLAN:
			header = peek(&rest, VLAN_TAG, copy);
			if (header == NULL)
				return 0;
			ethertype = read16(header + 2);
			skip(&rest, VLAN_TAG);
			break;
		default:
			return 0;
		}
	}
	return 0;
}
