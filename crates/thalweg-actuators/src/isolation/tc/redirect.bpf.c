// SPDX-License-Identifier: Apache-2.0
// Redirects single flows to another class of the queue of an interface. It runs at the egress of the interface, before
// the queue. A packet whose 5-tuple is in the map gets the class of its entry; HTB reads it from skb->priority. Every
// other packet passes unchanged. `maps.rs` beside this file defines the same structures.
//
// An entry has an expiry that the program checks itself, so no flow stays redirected after its controller has died.
//
// A flow moves back without reordering: its controller writes the number of packets that had left the queue. The
// program releases the flow only if it has redirected exactly as many. If it has redirected more, the flow stays.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// Map declarations for loaders: a number is the length of an array, a type that of a pointer.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, of) typeof(of) *name

// Helpers of bpf-helpers(7), by number.
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_skb_load_bytes_relative)(const void *skb, __u32 offset, void *to, __u32 length,
                                           __u32 start) = (void *)BPF_FUNC_skb_load_bytes_relative;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK_16(value) __builtin_bswap16(value)
#else
#define NETWORK_16(value) (value)
#endif

// Maximum number of IPv6 extension headers; a packet with more passes.
#define MAX_EXTENSION_HEADERS 6

#define FRAGMENT_OFFSET 0x1fff

// --- Maps -------------------------------------------------------------------------------------------------

// A direction of a flow. An IPv4 address is in the first four bytes. Ports are in network byte order.
struct flow {
    __u8 source[16];
    __u8 destination[16];
    __u16 source_port;
    __u16 destination_port;
    __u8 protocol;
    __u8 version;
    __u8 padding[2];
};

// Written by the controller alone.
struct redirection {
    __u64 expires;    // By bpf_ktime_get_ns.
    __u64 release_at; // With `releases`: the flow is released if this many packets were redirected.
    __u32 class;      // MAJOR << 16 | MINOR.
    __u32 releases;
};

// Written by the program alone, once the controller has created it.
struct counters {
    __u64 packets; // On the wire: a segment that the network card cuts counts as its pieces.
    __u64 bytes;
    __u64 first; // When the first packet was redirected, by bpf_ktime_get_ns; 0 before.
};

// Packets that matched an entry, over all entries.
struct totals {
    __u64 redirected;
    __u64 expired;
    __u64 released;
};

// What the interface had before: kind, handle, length of options, options of its queue.
struct previous {
    __u8 bytes[1024];
};

// The loader sets the sizes of both hash maps.
struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1);
    TYPE(key, struct flow);
    TYPE(value, struct redirection);
} redirections SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1);
    TYPE(key, struct flow);
    TYPE(value, struct counters);
} flow_counters SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct totals);
} totals SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct previous);
} previous SECTION(".maps");

// --- Headers ----------------------------------------------------------------------------------------------

// Reads `length` bytes at `offset` from the IP header on. Returns whether the packet has them.
INLINE int read(struct __sk_buff *skb, __u32 offset, void *to, __u32 length) {
    return bpf_skb_load_bytes_relative(skb, offset, to, length, BPF_HDR_START_NET) == 0;
}

// Reads the ports at `offset`; an ICMP echo has its identifier as both. Returns 0 if the packet is too short.
INLINE int read_ports(struct __sk_buff *skb, __u32 offset, struct flow *flow) {
    __u16 words[4];
    switch (flow->protocol) {
    case IPPROTO_TCP:
    case IPPROTO_UDP:
    case IPPROTO_DCCP:
    case IPPROTO_SCTP:
    case IPPROTO_UDPLITE:
        if (!read(skb, offset, words, 4))
            return 0;
        flow->source_port = words[0];
        flow->destination_port = words[1];
        return 1;
    case IPPROTO_ICMP:
    case 58: { // ICMPv6
        if (!read(skb, offset, words, 8))
            return 0;
        __u8 type = *(__u8 *)words;
        int is_echo = flow->protocol == IPPROTO_ICMP ? type == 0 || type == 8 : type == 128 || type == 129;
        flow->source_port = flow->destination_port = is_echo ? words[2] : 0;
        return 1;
    }
    default:
        return 1;
    }
}

INLINE int read_ipv4(struct __sk_buff *skb, struct flow *flow) {
    struct iphdr header;
    if (!read(skb, 0, &header, sizeof header))
        return 0;
    // Later fragments have no ports.
    if (header.frag_off & NETWORK_16(FRAGMENT_OFFSET))
        return 0;
    *(__u32 *)flow->source = header.saddr;
    *(__u32 *)flow->destination = header.daddr;
    flow->protocol = header.protocol;
    return read_ports(skb, (__u32)header.ihl * 4, flow);
}

INLINE int read_ipv6(struct __sk_buff *skb, struct flow *flow) {
    struct ipv6hdr header;
    if (!read(skb, 0, &header, sizeof header))
        return 0;
    __builtin_memcpy(flow->source, &header.saddr, 16);
    __builtin_memcpy(flow->destination, &header.daddr, 16);
    __u8 next = header.nexthdr;
    __u32 offset = sizeof header;
#pragma unroll
    for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
        __u8 extension[8];
        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
            next != IPPROTO_FRAGMENT)
            break;
        if (!read(skb, offset, extension, sizeof extension))
            return 0;
        if (next == IPPROTO_FRAGMENT && (extension[2] != 0 || (extension[3] & 0xf8) != 0))
            return 0;
        offset += next == IPPROTO_FRAGMENT ? 8 : ((__u32)extension[1] + 1) * 8;
        next = extension[0];
    }
    flow->protocol = next;
    return read_ports(skb, offset, flow);
}

// --- Program ----------------------------------------------------------------------------------------------

SECTION("classifier") int redirect(struct __sk_buff *skb) {
    struct flow flow = {};
    __u8 first;
    if (!read(skb, 0, &first, 1))
        return TC_ACT_UNSPEC;
    flow.version = first >> 4;
    if (flow.version == 4) {
        if (!read_ipv4(skb, &flow))
            return TC_ACT_UNSPEC;
    } else if (flow.version == 6) {
        if (!read_ipv6(skb, &flow))
            return TC_ACT_UNSPEC;
    } else {
        return TC_ACT_UNSPEC;
    }
    struct redirection *entry = bpf_map_lookup_elem(&redirections, &flow);
    if (!entry)
        return TC_ACT_UNSPEC;
    __u32 zero = 0;
    struct totals *total = bpf_map_lookup_elem(&totals, &zero);
    struct counters *counters = bpf_map_lookup_elem(&flow_counters, &flow);
    if (!total || !counters) {
        // The kernel keeps only maps that the program refers to.
        bpf_map_lookup_elem(&previous, &zero);
        return TC_ACT_UNSPEC;
    }
    __u64 packets = skb->gso_segs > 1 ? skb->gso_segs : 1;
    __u64 now = bpf_ktime_get_ns();
    if (now >= entry->expires) {
        total->expired += packets;
        return TC_ACT_UNSPEC;
    }
    if (entry->releases && counters->packets == entry->release_at) {
        total->released += packets;
        return TC_ACT_UNSPEC;
    }
    // Two processors may both see the first packet; their times differ by less than a packet takes.
    if (counters->first == 0)
        counters->first = now;
    __sync_fetch_and_add(&counters->packets, packets);
    __sync_fetch_and_add(&counters->bytes, skb->len);
    total->redirected += packets;
    skb->priority = entry->class;
    return TC_ACT_UNSPEC;
}

char licence[] SECTION("license") = "Apache-2.0";
