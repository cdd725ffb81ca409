// SPDX-License-Identifier: Apache-2.0
// A switch: it looks up the destination address of each received frame, copies the frame to the monitor port, and hands
// it to the queue of another port. The same program is attached to the ingress of every port; the port determines the
// switch. `mod.rs` next to this file defines the same structures.
//
// A packet that passes n switches takes n runs of this program and n queues; no other part of the network stack is
// involved.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// Map declarations for loaders: a number is the length of an array, a type that of a pointer.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, of) typeof(of) *name

// Helpers of bpf-helpers(7), by number.
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 length,
                                   __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_skb_pull_data)(struct __sk_buff *skb, __u32 length) = (void *)BPF_FUNC_skb_pull_data;
static long (*bpf_clone_redirect)(struct __sk_buff *skb, __u32 interface,
                                  __u64 flags) = (void *)BPF_FUNC_clone_redirect;
static long (*bpf_redirect)(__u32 interface, __u64 flags) = (void *)BPF_FUNC_redirect;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK_16(value) __builtin_bswap16(value)
#else
#define NETWORK_16(value) (value)
#endif

// Maximum number of switches on a path; a packet beyond it is in a loop. The longest path of a fat tree has 5.
#define MAX_HOPS 32

// --- Maps -------------------------------------------------------------------------------------------------

// A port.
struct port {
    __u32 router;
    __u32 monitor; // Interface of its switch's monitor port; 0 while nothing is mirrored.
};

// Counters of a port. Bytes count whole frames without preamble and check sequence.
struct counters {
    __u64 received_packets;
    __u64 received_bytes;
    __u64 sent_packets; // Handed to the port's queue, which counts its own drops.
    __u64 sent_bytes;
    __u64 mirrored_packets; // Received here and handed to the monitor port's queue.
    __u64 mirrored_bytes;
    __u64 mirror_failed; // Mirrored, but refused by the monitor port because it is down.
    __u64 arp_answered;
    // Received here and dropped:
    __u64 no_entry; // The switch has no entry for the address.
    __u64 hairpin;  // The output port is the input port.
    __u64 looped;   // It has passed MAX_HOPS switches.
    __u64 group;    // A group address, and not an ARP request that the switch answers.
    __u64 malformed;
};

struct destination {
    __u16 router;
    __u8 mac[ETH_ALEN];
};

struct route {
    __u32 interface;
    __u16 port; // Of the switch; for reading the table back.
    __u8 mac[ETH_ALEN];
    __u32 rewrites; // Whether `mac` becomes the destination address.
};

struct mac {
    __u8 octets[8]; // The first six.
};

// By interface. The loader sets the sizes of all maps.
struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct port);
} ports SECTION(".maps");

// By interface.
struct {
    NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct counters);
} counters SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1);
    NUMBER(map_flags, BPF_F_NO_PREALLOC); // The capacity is much larger than typical tables.
    TYPE(key, struct destination);
    TYPE(value, struct route);
} forwarding SECTION(".maps");

// By IPv4 address, in network byte order.
struct {
    NUMBER(type, BPF_MAP_TYPE_HASH);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct mac);
} hosts SECTION(".maps");

// --- ARP --------------------------------------------------------------------------------------------------

// RFC 826, for Ethernet and IPv4.
struct arp {
    __u16 hardware_type;
    __u16 protocol_type;
    __u8 hardware_length;
    __u8 protocol_length;
    __u16 operation;
    __u8 sender_mac[ETH_ALEN];
    __u8 sender_ip[4];
    __u8 target_mac[ETH_ALEN];
    __u8 target_ip[4];
} __attribute__((packed));

#define ARP_REQUEST 1
#define ARP_REPLY 2

struct arp_frame {
    struct ethhdr ethernet;
    struct arp arp;
} __attribute__((packed));

// Answers a broadcast ARP request for a host's address: rewrites the frame into the reply and returns it. Unicast
// requests are forwarded.
INLINE int answer_arp(struct __sk_buff *skb, struct counters *count) {
    if (bpf_skb_pull_data(skb, sizeof(struct arp_frame)) != 0)
        goto group;
    struct arp_frame *frame = (void *)(long)skb->data;
    if ((void *)(frame + 1) > (void *)(long)skb->data_end)
        goto group;
    struct arp *arp = &frame->arp;
    if (arp->hardware_type != NETWORK_16(1) || arp->protocol_type != NETWORK_16(ETH_P_IP) ||
        arp->hardware_length != ETH_ALEN || arp->protocol_length != 4 || arp->operation != NETWORK_16(ARP_REQUEST))
        goto group;

    __u32 asked;
    __builtin_memcpy(&asked, arp->target_ip, 4);
    struct mac *host = bpf_map_lookup_elem(&hosts, &asked);
    // A request for the sender's own address is an announcement or a conflict probe: no answer.
    if (!host || __builtin_memcmp(arp->sender_ip, arp->target_ip, 4) == 0)
        goto group;

    __builtin_memcpy(frame->ethernet.h_dest, arp->sender_mac, ETH_ALEN);
    __builtin_memcpy(frame->ethernet.h_source, host->octets, ETH_ALEN);
    arp->operation = NETWORK_16(ARP_REPLY);
    __builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
    __builtin_memcpy(arp->target_ip, arp->sender_ip, 4);
    __builtin_memcpy(arp->sender_mac, host->octets, ETH_ALEN);
    __builtin_memcpy(arp->sender_ip, &asked, 4);
    count->arp_answered++;
    return bpf_redirect(skb->ifindex, 0);
group:
    count->group++;
    return TC_ACT_SHOT;
}

// --- Forwarding -------------------------------------------------------------------------------------------

SECTION("classifier") int forward(struct __sk_buff *skb) {
    __u32 interface = skb->ifindex;
    struct port *port = bpf_map_lookup_elem(&ports, &interface);
    struct counters *count = bpf_map_lookup_elem(&counters, &interface);
    if (!port || !count)
        return TC_ACT_SHOT; // Not a port of the lab; the program is attached only to the lab's ports.
    count->received_packets++;
    count->received_bytes += skb->len;

    struct ethhdr *ethernet = (void *)(long)skb->data;
    if ((void *)(ethernet + 1) > (void *)(long)skb->data_end) {
        count->malformed++;
        return TC_ACT_SHOT;
    }
    if (ethernet->h_dest[0] & 1) {
        if (ethernet->h_proto == NETWORK_16(ETH_P_ARP))
            return answer_arp(skb, count);
        count->group++;
        return TC_ACT_SHOT;
    }

    struct destination destination = {.router = port->router};
    __builtin_memcpy(destination.mac, ethernet->h_dest, ETH_ALEN);
    struct route *route = bpf_map_lookup_elem(&forwarding, &destination);
    if (!route) {
        count->no_entry++;
        return TC_ACT_SHOT;
    }
    __u32 output = route->interface;
    if (output == interface) {
        count->hairpin++;
        return TC_ACT_SHOT;
    }
    // The mark stays with a packet from switch to switch, and is cleared when it enters or leaves the namespace.
    if (skb->mark >= MAX_HOPS) {
        count->looped++;
        return TC_ACT_SHOT;
    }
    skb->mark++;

    // Mirrored before the rewrite, so that a copy's address shows its tree, also at the last switch.
    __u32 monitor = port->monitor;
    if (monitor) {
        count->mirrored_packets++;
        count->mirrored_bytes += skb->len;
        if (bpf_clone_redirect(skb, monitor, 0) < 0)
            count->mirror_failed++;
    }
    if (route->rewrites)
        bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_dest), route->mac, ETH_ALEN, 0);

    struct counters *sent = bpf_map_lookup_elem(&counters, &output);
    if (sent) {
        sent->sent_packets++;
        sent->sent_bytes += skb->len;
    }
    // A frame is charged to its socket until it is freed, so that a sender would wait for the queues of all switches as
    // for its own. Forward a copy without a socket instead.
    if (skb->sk) {
        bpf_clone_redirect(skb, output, 0);
        return TC_ACT_STOLEN;
    }
    return bpf_redirect(output, 0);
}

char licence[] SECTION("license") = "Apache-2.0";
