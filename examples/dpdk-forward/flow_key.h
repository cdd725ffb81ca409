/* Flow keys: the 5-tuple of a packet, in the bytes that `thalweg watch` uses for its key `5tuple`. */
#ifndef FLOW_KEY_H
#define FLOW_KEY_H

#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;

/* Bytes of a key: source, destination, source port, destination port, protocol. */
enum { FLOW_KEY_IPV4 = 13, FLOW_KEY_IPV6 = 37 };

/*
 * Writes the key of an Ethernet frame to `key`, which has room for FLOW_KEY_IPV6 bytes, and returns its length; 0 if the frame
 * is not IP, or malformed before the end of the addresses.
 *
 * Reads VLAN tags, IPv4 options, IPv6 extension headers and frames of several segments. Ports are those of TCP, UDP, UDP-Lite,
 * SCTP and DCCP, and the identifier of an ICMP echo twice. They are 0 for other protocols, in later fragments, and where the
 * frame ends before them.
 */
size_t flow_key(const struct rte_mbuf *packet, uint8_t *key);

#endif
