// SPDX-License-Identifier: Apache-2.0
// A parsed packet, and the fast path for common ones: TCP and UDP over plain IP with at most one VLAN tag, read in the frame.

#pragma once

#include "base.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86DD
#define ETHERTYPE_VLAN 0x8100
#define VLAN_TAG 4 // Bytes.

#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

// Why a frame has no key; the order is that of `Reason` in the loader.
enum reason {
    COUNTED,
    NOT_IP,
    TRUNCATED,
    TOO_SHORT,
    IP_VERSION,
    HEADER_LENGTH,
    TOTAL_LENGTH,
    FAULT, // A map is smaller than the loader promised.
    REASONS = 8,
};

// What a key lacks.
enum note {
    NO_FRAGMENT_PORTS = 1, // A later fragment: ports zero.
    NO_PORTS = 2,          // The copy ends before the ports: zero.
    BEYOND_FRAME = 4,      // The stated IP length is longer than the frame.
};

// A parsed packet. Addresses and ports are in network byte order, as in memory.
struct packet {
    __u64 source[2]; // IPv4: the low half of the first word.
    __u64 destination[2];
    __u16 source_port;
    __u16 destination_port;
    __u8 protocol;
    __u8 is_ipv6;
    __u8 reason;
    __u8 notes;
    __u32 ip_length;
};

// Headers in a frame. The compiler reads fields that are aligned for its types at once, and others byte by byte. Frames begin two
// bytes behind a word, so that IP headers are aligned for words of four bytes (NET_IP_ALIGN); where they are not, the
// processor reads them anyhow, or the verifier refuses the program.
struct vlan_frame {
    __u8 addresses[12];
    __u16 ethertype;
    __u16 tag;
    __u16 inner_ethertype;
} __attribute__((packed, aligned(2)));

struct ipv4_header {
    __u8 version_and_length;
    __u8 class;
    __u16 total_length;
    __u16 identification;
    __u16 fragment;
    __u8 ttl;
    __u8 protocol;
    __u16 checksum;
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
} __attribute__((packed, aligned(4)));

struct ipv6_header {
    __u8 version_and_class;
    __u8 class_and_label[3];
    __u16 payload_length;
    __u8 next_header;
    __u8 hop_limit;
    __u64 source[2];
    __u64 destination[2];
    __u16 source_port;
    __u16 destination_port;
} __attribute__((packed, aligned(4)));

// Whether the packet is a common one, which is then parsed.
INLINE int parse_common(const void *data, const void *end, __u32 length, struct packet *packet) {
    const struct vlan_frame *frame = data;
    const void *network = data + 14;
    if ((const void *)(frame + 1) > end) return 0;
    __u16 ethertype = frame->ethertype;
    __u32 network_length = length - 14;
    if (ethertype == NETWORK_16(ETHERTYPE_VLAN)) {
        ethertype = frame->inner_ethertype;
        network = data + 18;
        network_length = length - 18;
    }
    if (ethertype == NETWORK_16(ETHERTYPE_IPV4)) {
        const struct ipv4_header *ip = network;
        if ((const void *)(ip + 1) > end) return 0;
        __u32 ip_length = NETWORK_16(ip->total_length);
        if (ip->version_and_length != 0x45 || ip->fragment & NETWORK_16(0x3FFF)) return 0;
        if (ip->protocol != PROTOCOL_TCP && ip->protocol != PROTOCOL_UDP) return 0;
        if (ip_length < sizeof(*ip) || ip_length > network_length) return 0;
        packet->source[0] = ip->source;
        packet->destination[0] = ip->destination;
        packet->source_port = ip->source_port;
        packet->destination_port = ip->destination_port;
        packet->protocol = ip->protocol;
        packet->is_ipv6 = 0;
        packet->ip_length = ip_length;
    } else if (ethertype == NETWORK_16(ETHERTYPE_IPV6)) {
        const struct ipv6_header *ip = network;
        if ((const void *)(ip + 1) > end) return 0;
        __u32 ip_length = 40 + NETWORK_16(ip->payload_length);
        if (ip->version_and_class >> 4 != 6) return 0;
        if (ip->next_header != PROTOCOL_TCP && ip->next_header != PROTOCOL_UDP) return 0;
        if (ip_length < sizeof(*ip) || ip_length > network_length) return 0;
        packet->source[0] = ip->source[0];
        packet->source[1] = ip->source[1];
        packet->destination[0] = ip->destination[0];
        packet->destination[1] = ip->destination[1];
        packet->source_port = ip->source_port;
        packet->destination_port = ip->destination_port;
        packet->protocol = ip->next_header;
        packet->is_ipv6 = 1;
        packet->ip_length = ip_length;
    } else {
        return 0;
    }
    packet->reason = COUNTED;
    packet->notes = 0;
    return 1;
}
