/*
 * Copyright 2021 Sebastiano Miano <mianosebastiano@gmail.com>
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 * http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 */

/*
 * nitrosketch_main.h and countsketch_main.h of ebpf-sketches, changed for Thalweg's benchmark: written for clang and
 * libbpf-style maps instead of BCC, packets pass instead of being dropped or redirected, bpf_probe_read_kernel is a
 * volatile read, and the sign of the Count Sketch is bit 15 of the 16-bit hash in both (countsketch_main.h tests bit 31,
 * which is always zero).
 */

#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "fasthash.h"

#define HASHFN_N 4
#define COLUMNS 1024
#define MAX_GEOSAMPLING_SIZE 4096
#define _SEED_HASHFN 77
#define CHECK_BIT(var, pos) ((var) & (1 << (pos)))

#define PEER_INLINE static inline __attribute__((always_inline))
#define htons(value) __builtin_bswap16(value)

struct countsketch {
	__u32 values[HASHFN_N][COLUMNS];
};

struct pkt_md {
	__u32 cnt;
	__u32 geo_sampling_idx;
	__u64 drop_cnt;
	__u32 geo_sampling_array[MAX_GEOSAMPLING_SIZE];
};

struct eth_hdr {
	__u8 dst[6];
	__u8 src[6];
	__be16 proto;
} __attribute__((packed));

struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

struct pkt_5tuple {
	__be32 src_ip;
	__be32 dst_ip;
	__be16 src_port;
	__be16 dst_port;
	__u8 proto;
} __attribute__((packed));

struct {
	int(*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int(*max_entries)[1];
	__u32 *key;
	struct pkt_md *value;
} peer_metadata __attribute__((section(".maps"), used));

struct {
	int(*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int(*max_entries)[1];
	__u32 *key;
	struct countsketch *value;
} peer_sketch __attribute__((section(".maps"), used));

PEER_INLINE void peer_add(struct countsketch *cs, __u16 *hashes, __u32 row_to_update)
{
	__u16 hash, target_idx;

	if (row_to_update >= HASHFN_N)
		return;
	hash = hashes[row_to_update];
	target_idx = hash & (COLUMNS - 1);
	if (CHECK_BIT(hash, 15))
		cs->values[row_to_update][target_idx] += 1;
	else
		cs->values[row_to_update][target_idx] -= 1;
}

/* Whether the packet has a key. */
PEER_INLINE int peer_parse(void *data, void *data_end, struct pkt_5tuple *pkt)
{
	__u64 nh_off = 0;
	struct eth_hdr *eth = data;

	nh_off = sizeof(*eth);
	if (data + nh_off > data_end)
		return 0;
	__u16 h_proto = eth->proto;

	/* parse double vlans */
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (h_proto == htons(ETH_P_8021Q) || h_proto == htons(ETH_P_8021AD)) {
			struct vlan_hdr *vhdr = data + nh_off;

			nh_off += sizeof(struct vlan_hdr);
			if (data + nh_off > data_end)
				return 0;
			h_proto = vhdr->h_vlan_encapsulated_proto;
		}
	}
	if (h_proto != htons(ETH_P_IP))
		return 0;

	struct iphdr *ip = data + nh_off;

	if ((void *)&ip[1] > data_end)
		return 0;
	pkt->src_ip = ip->saddr;
	pkt->dst_ip = ip->daddr;
	pkt->proto = ip->protocol;
	switch (ip->protocol) {
	case IPPROTO_TCP: {
		struct tcphdr *tcp = data + nh_off + sizeof(*ip);

		if (data + nh_off + sizeof(*ip) + sizeof(*tcp) > data_end)
			return 0;
		pkt->src_port = tcp->source;
		pkt->dst_port = tcp->dest;
		return 1;
	}
	case IPPROTO_UDP: {
		struct udphdr *udp = data + nh_off + sizeof(*ip);

		if (data + nh_off + sizeof(*ip) + sizeof(*udp) > data_end)
			return 0;
		pkt->src_port = udp->source;
		pkt->dst_port = udp->dest;
		return 1;
	}
	default:
		return 0;
	}
}

PEER_INLINE void peer_hash(const struct pkt_5tuple *pkt, __u16 *hashes)
{
	/* Calculate just a single hash and re-use it to update and query the sketch */
	__u64 h = fasthash64(pkt, sizeof(*pkt), _SEED_HASHFN);

	hashes[0] = (h & 0xFFFF);
	hashes[1] = h >> 16 & 0xFFFF;
	hashes[2] = h >> 32 & 0xFFFF;
	hashes[3] = h >> 48 & 0xFFFF;
}

/* nitrosketch_main.h */
PEER_INLINE void peer_nitrosketch(void *data, void *data_end)
{
	__u32 zero = 0;
	struct pkt_md *md = bpf_map_lookup_elem(&peer_metadata, &zero);

	if (!md)
		return;
	if (md->cnt >= HASHFN_N) {
		md->cnt -= HASHFN_N;
		goto SKIP;
	}

	struct pkt_5tuple pkt;

	if (!peer_parse(data, data_end, &pkt))
		return;

	struct countsketch *cm = bpf_map_lookup_elem(&peer_sketch, &zero);

	if (!cm)
		return;

	__u32 row_to_update = *(volatile __u32 *)&md->cnt;
	__u32 next_geo_value = 0;
	__u16 hashes[4];

	peer_hash(&pkt, hashes);
	/* In the worst case, we do HASHFN_N cycles to update the counters */
	for (int i = 0; i < HASHFN_N; i++) {
		peer_add(cm, hashes, row_to_update);

		/* We should now generate again a new discrete variable for the geometric sampling */
		__u32 geo_value_idx = md->geo_sampling_idx;

		geo_value_idx = (geo_value_idx + 1) & (MAX_GEOSAMPLING_SIZE - 1);
		next_geo_value = md->geo_sampling_array[geo_value_idx];
		row_to_update += next_geo_value;
		md->geo_sampling_idx = geo_value_idx;
		if (row_to_update >= HASHFN_N)
			break;
	}
	if (next_geo_value > 0)
		md->cnt = next_geo_value - 1;
SKIP:;
	md->drop_cnt += 1;
}

/* countsketch_main.h: all rows of every packet. */
PEER_INLINE void peer_countsketch(void *data, void *data_end)
{
	__u32 zero = 0;
	struct pkt_md *md = bpf_map_lookup_elem(&peer_metadata, &zero);
	struct countsketch *cm = bpf_map_lookup_elem(&peer_sketch, &zero);
	struct pkt_5tuple pkt;
	__u16 hashes[4];

	if (!md || !cm || !peer_parse(data, data_end, &pkt))
		return;
	peer_hash(&pkt, hashes);
#pragma unroll
	for (int i = 0; i < HASHFN_N; i++)
		peer_add(cm, hashes, i);
	md->drop_cnt += 1;
}
