// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Redirects what a host sends by an interface to the TAP interface of its endpoint. It runs at the egress of the interface.
// These pass unchanged:
//  - what the endpoint itself sends: released packets, and its datagrams for the arbiter. They have its mark.
//  - frames without IP, such as ARP, and neighbour discovery (RFC 4861). Hosts cannot reach each other without them, and an
//    emulated network does not have them. They are counted.
//
// `convey_tcp` also notes up to which sequence number the application of a TCP connection has written data. So the endpoint
// knows how many bytes of the flow a packet has before it: pFabric's priority. `written.rs` beside this file reads it.
//
// Structures of the kernel may be read only by programs with a licence compatible with the GPL, hence the second licence.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((preserve_access_index))

// Map declarations for loaders: a number is the length of an array, a type that of a pointer.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, of) typeof(of) *name

// Helpers of bpf-helpers(7), by number.
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_redirect)(__u32 interface, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_skb_load_bytes_relative)(const void *skb, __u32 offset, void *to, __u32 length,
                                           __u32 start) = (void *)BPF_FUNC_skb_load_bytes_relative;
struct tcp_sock;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sock) = (void *)BPF_FUNC_skc_to_tcp_sock;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK_16(value) __builtin_bswap16(value)
#else
#define NETWORK_16(value) (value)
#endif

#define FRAGMENT_OFFSET 0x1fff
#define ICMPV6 58

// Bytes of a VLAN tag.
#define TAG 4

// Router solicitation to redirect (RFC 4861, section 4).
#define FIRST_NEIGHBOUR_MESSAGE 133
#define LAST_NEIGHBOUR_MESSAGE 137

// TCX_NEXT of linux/bpf.h 6.6: the next program, then the queue.
#define NEXT (-1)

// The number of places for connections. A power of two.
#define CONNECTIONS 65536

// --- Kernel structures, as far as used --------------------------------------------------------------------

// The loader relocates the offset.
struct tcp_sock {
    __u32 write_seq;
} KERNEL;

// --- Maps -------------------------------------------------------------------------------------------------

// Written by the endpoint before the program is attached.
struct settings {
    __u32 interface; // The index of the TAP interface.
    __u32 mark;      // Of the endpoint's own packets.
};

// Packets that passed although the endpoint did not send them.
struct passed {
    __u64 not_ip;
    __u64 neighbour_discovery;
};

// The connection that used a place last. The endpoint maps this.
struct written {
    __u32 addresses; // All words of both addresses, combined by exclusive or.
    __u32 ports;     // As in the packet.
    __u32 sequence;  // That of the next byte that the application will write.
    __u32 is_used;
};

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct settings);
} settings SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, __u32);
    TYPE(value, struct passed);
} passed SECTION(".maps");

struct {
    NUMBER(type, BPF_MAP_TYPE_ARRAY);
    NUMBER(map_flags, BPF_F_MMAPABLE);
    NUMBER(max_entries, CONNECTIONS);
    TYPE(key, __u32);
    TYPE(value, struct written);
} written SECTION(".maps");

// --- Headers ----------------------------------------------------------------------------------------------

// Reads `length` bytes at `offset` of the frame. Returns whether it has them.
INLINE int read(struct __sk_buff *skb, __u32 offset, void *to, __u32 length) {
    return bpf_skb_load_bytes_relative(skb, offset, to, length, BPF_HDR_START_MAC) == 0;
}

INLINE int is_neighbour_discovery(struct __sk_buff *skb, __u32 start) {
    struct ipv6hdr header;
    __u8 type;
    if (!read(skb, start, &header, sizeof header) || header.nexthdr != ICMPV6)
        return 0;
    if (!read(skb, start + sizeof header, &type, 1))
        return 0;
    return type >= FIRST_NEIGHBOUR_MESSAGE && type <= LAST_NEIGHBOUR_MESSAGE;
}

// Finds addresses and ports of a TCP packet. Returns 0 for others, and with extension headers.
INLINE int read_tcp(struct __sk_buff *skb, __u32 start, __u16 protocol, __u32 *addresses, __u32 *ports) {
    __u32 transport;
    if (protocol == NETWORK_16(ETH_P_IP)) {
        struct iphdr header;
        if (!read(skb, start, &header, sizeof header) || header.protocol != IPPROTO_TCP ||
            (header.frag_off & NETWORK_16(FRAGMENT_OFFSET)))
            return 0;
        *addresses = header.saddr ^ header.daddr;
        transport = start + (__u32)header.ihl * 4;
    } else {
        struct {
            __u8 until_addresses[8];
            __u32 words[8];
        } header;
        if (!read(skb, start, &header, sizeof header) || header.until_addresses[6] != IPPROTO_TCP)
            return 0;
        *addresses = header.words[0] ^ header.words[1] ^ header.words[2] ^ header.words[3] ^ header.words[4] ^
                     header.words[5] ^ header.words[6] ^ header.words[7];
        transport = start + sizeof header;
    }
    return read(skb, transport, ports, sizeof *ports);
}

// Notes how far the application has written.
INLINE void note_written(struct __sk_buff *skb, __u32 start, __u16 protocol) {
    struct bpf_sock *sock = skb->sk;
    if (!sock)
        return;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sock);
    __u32 addresses, ports;
    if (!tcp || !read_tcp(skb, start, protocol, &addresses, &ports))
        return;
    __u32 place = ((addresses ^ ports) * 0x9e3779b1) >> 16;
    struct written *entry = bpf_map_lookup_elem(&written, &place);
    if (!entry)
        return;
    entry->addresses = addresses;
    entry->ports = ports;
    entry->sequence = tcp->write_seq;
    entry->is_used = 1;
}

// --- Programs ---------------------------------------------------------------------------------------------

INLINE int redirect(struct __sk_buff *skb, int notes_written) {
    __u32 zero = 0;
    struct settings *own = bpf_map_lookup_elem(&settings, &zero);
    struct passed *counters = bpf_map_lookup_elem(&passed, &zero);
    if (!own || !counters || skb->mark == own->mark)
        return NEXT;
    __u16 protocol = (__u16)skb->protocol;
    __u32 start = ETH_HLEN;
    // The tag of an offloaded VLAN is not in the frame.
    if (protocol == NETWORK_16(ETH_P_8021Q) || protocol == NETWORK_16(ETH_P_8021AD)) {
        start += TAG;
        if (!read(skb, start - sizeof protocol, &protocol, sizeof protocol))
            protocol = 0;
    }
    if (protocol == NETWORK_16(ETH_P_IPV6)) {
        if (is_neighbour_discovery(skb, start)) {
            counters->neighbour_discovery++;
            return NEXT;
        }
    } else if (protocol != NETWORK_16(ETH_P_IP)) {
        counters->not_ip++;
        return NEXT;
    }
    if (notes_written)
        note_written(skb, start, protocol);
    return bpf_redirect(own->interface, 0);
}

SECTION("classifier") int convey(struct __sk_buff *skb) { return redirect(skb, 0); }

SECTION("classifier_tcp") int convey_tcp(struct __sk_buff *skb) { return redirect(skb, 1); }

char licence[] SECTION("license") = "GPL v2";
