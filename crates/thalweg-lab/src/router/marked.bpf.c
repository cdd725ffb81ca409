// SPDX-License-Identifier: Apache-2.0
// Notes when the first packet of each flow with DSCP 1 (RFC 8622) leaves an interface. It runs at the egress of the
// interface, before the queue reads the class, and changes nothing. `marks.rs` beside this file defines the same
// structures.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#define SECTION(name) __attribute__((section(name), used))

// Map declarations for loaders: a number is the length of an array, a type that of a pointer.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, of) typeof(of) *name

// Helpers of bpf-helpers(7), by number.
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
                                   __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to,
                                  __u32 length) = (void *)BPF_FUNC_skb_load_bytes;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK_16(value) __builtin_bswap16(value)
#else
#define NETWORK_16(value) (value)
#endif

#define MARK 1

// A direction of a flow over IPv4. Addresses and ports are in network byte order.
struct flow {
    __u32 source;
    __u32 destination;
    __u16 source_port;
    __u16 destination_port;
    __u32 protocol;
};

// When the first packet passed, by bpf_ktime_get_ns.
struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1024);
    TYPE(key, struct flow);
    TYPE(value, __u64);
} first_packets SECTION(".maps");

SECTION("classifier") int note_marked(struct __sk_buff *skb) {
    struct iphdr header;
    if (skb->protocol != NETWORK_16(ETH_P_IP) ||
        bpf_skb_load_bytes(skb, ETH_HLEN, &header, sizeof header) != 0)
        return TC_ACT_UNSPEC;
    if (header.tos >> 2 != MARK || (header.protocol != IPPROTO_TCP && header.protocol != IPPROTO_UDP))
        return TC_ACT_UNSPEC;
    __u16 ports[2];
    if (bpf_skb_load_bytes(skb, ETH_HLEN + (__u32)header.ihl * 4, ports, sizeof ports) != 0)
        return TC_ACT_UNSPEC;
    struct flow flow = {
        .source = header.saddr,
        .destination = header.daddr,
        .source_port = ports[0],
        .destination_port = ports[1],
        .protocol = header.protocol,
    };
    if (bpf_map_lookup_elem(&first_packets, &flow))
        return TC_ACT_UNSPEC;
    __u64 now = bpf_ktime_get_ns();
    // Of two processors that both see the first packet, the earlier one writes.
    bpf_map_update_elem(&first_packets, &flow, &now, BPF_NOEXIST);
    return TC_ACT_UNSPEC;
}

char licence[] SECTION("license") = "Apache-2.0";
