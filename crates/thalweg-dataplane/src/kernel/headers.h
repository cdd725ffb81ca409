// SPDX-License-Identifier: Apache-2.0
// Parses frames as `thalweg_wire::parse` does without decapsulation: the same keys, lengths and errors.
//
// Common packets are read in the frame (packet.h). All others are copied, up to CAPTURED bytes, and parsed layer by layer in
// the copy: tags, labels, PPPoE, IPv4 options, IPv6 extension headers.
// The copy is what a capture with a snap length of CAPTURED bytes has.

#pragma once

#include "base.h"
#include "packet.h"

#define CAPTURED 512

#define ETHERTYPE_SERVICE_VLAN 0x88A8
#define ETHERTYPE_OLD_SERVICE_VLAN 0x9100
#define ETHERTYPE_MPLS 0x8847
#define ETHERTYPE_MPLS_UPSTREAM 0x8848
#define ETHERTYPE_PPPOE 0x8864
#define MAX_LLC_LENGTH 1500

#define MAX_TAGS 8
#define MAX_LABELS 16
#define MAX_EXTENSION_HEADERS 12
#define MAX_OPTIONS 8

#define PROTOCOL_ICMP 1
#define PROTOCOL_DCCP 33
#define PROTOCOL_ICMPV6 58
#define PROTOCOL_SCTP 132
#define PROTOCOL_UDP_LITE 136

#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define AUTHENTICATION 51
#define NO_NEXT_HEADER 59
#define DESTINATION_OPTIONS 60
#define MOBILITY 135
#define HOST_IDENTITY 139
#define SHIM6 140

#define MAX_IP_LENGTH (8 * 65535)
#define MAX_16_BIT_LENGTH (65535 + 40)

// A position in the copy of a frame. Positions beyond `end` have no bytes.
//
// Cursors are in memory, and every use reads them again. The verifier follows each path with all positions that lead to
// different bytes; of a position that it has just read it knows nothing, so that paths which differ in it only are one.
struct cursor {
    __u32 at;
    __u32 end;      // Of the captured bytes.
    __u32 wire_end; // Of the frame, according to the layers parsed so far.
    __u32 padding;
};

// The memory of the parser.
struct parser {
    struct cursor cursor;
    struct cursor options;
    __u8 copy[CAPTURED];
};

#define CURSOR volatile struct cursor

INLINE __u8 byte_at(const struct parser *parser, const CURSOR *cursor, __u32 offset) {
    return parser->copy[(cursor->at + offset) & (CAPTURED - 1)];
}

INLINE __u32 number_at(const struct parser *parser, const CURSOR *cursor, __u32 offset) {
    return (__u32)byte_at(parser, cursor, offset) << 8 | byte_at(parser, cursor, offset + 1);
}

// The word at an offset, in memory order.
INLINE __u64 word_at(const struct parser *parser, const CURSOR *cursor, __u32 offset, __u32 bytes) {
    __u64 word = 0;
#pragma unroll
    for (__u32 byte = 0; byte < bytes; byte++)
        word |= (__u64)byte_at(parser, cursor, offset + byte) << (8 * byte);
    return word;
}

INLINE int has(const CURSOR *cursor, __u32 bytes) { return cursor->at + bytes <= cursor->end; }

INLINE __u32 wire_length(const CURSOR *cursor) {
    __u32 at = cursor->at, end = cursor->wire_end;
    return end > at ? end - at : 0;
}

// The reason why a header of `bytes` bytes is missing.
INLINE __u32 missing(const CURSOR *cursor, __u32 bytes) {
    return wire_length(cursor) >= bytes ? TRUNCATED : TOO_SHORT;
}

// Skips bytes. Offsets are at most 8 tags and 12 headers of 2,048 bytes each, so they do not wrap.
INLINE void skip(CURSOR *cursor, __u32 bytes) { cursor->at += bytes; }

// Limits the rest to the length that a header states.
INLINE void limit(CURSOR *cursor, __u32 length) {
    __u32 end = cursor->at + length;
    if (cursor->end > end) cursor->end = end;
    cursor->wire_end = end;
}

INLINE int is_extension_header(__u8 number) {
    return number == HOP_BY_HOP || number == ROUTING || number == FRAGMENT || number == AUTHENTICATION ||
           number == DESTINATION_OPTIONS || number == MOBILITY || number == HOST_IDENTITY || number == SHIM6;
}

// Sets the length of an IP packet: as stated in its header, unless that is zero or no link carries as much.
INLINE void set_ip_length(struct packet *packet, __u32 stated, int is_stated, __u32 frame_length) {
    __u32 length = is_stated && (stated <= frame_length || stated <= MAX_16_BIT_LENGTH) ? stated : frame_length;
    if ((is_stated && stated > frame_length) || length > MAX_IP_LENGTH) packet->notes |= BEYOND_FRAME;
    packet->ip_length = length < MAX_IP_LENGTH ? length : MAX_IP_LENGTH;
}

// Moves to the IP header. Returns the IP version, or 0 with the reason.
INLINE __u32 find_ip(const struct parser *parser, CURSOR *cursor, struct packet *packet) {
    if (!has(cursor, 14)) {
        packet->reason = missing(cursor, 14);
        return 0;
    }
    __u32 ethertype = number_at(parser, cursor, 12);
    skip(cursor, 14);
    packet->reason = NOT_IP;
    int has_labels = 0, has_pppoe = 0;
    LOOP (__u32 tag = 0; tag < MAX_TAGS; tag++) {
        if (ethertype == ETHERTYPE_IPV4) return 4;
        if (ethertype == ETHERTYPE_IPV6) return 6;
        if (ethertype == ETHERTYPE_MPLS || ethertype == ETHERTYPE_MPLS_UPSTREAM) {
            has_labels = 1;
            break;
        }
        if (ethertype == ETHERTYPE_PPPOE) {
            has_pppoe = 1;
            break;
        }
        if (ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_SERVICE_VLAN ||
            ethertype == ETHERTYPE_OLD_SERVICE_VLAN) {
            if (!has(cursor, 4)) {
                packet->reason = missing(cursor, 4);
                return 0;
            }
            ethertype = number_at(parser, cursor, 2);
            skip(cursor, 4);
        } else if (ethertype <= MAX_LLC_LENGTH) {
            // LLC with SNAP (RFC 1042), or IEEE 802.1H.
            if (!has(cursor, 8) || number_at(parser, cursor, 0) != 0xAAAA || byte_at(parser, cursor, 2) != 3 ||
                number_at(parser, cursor, 3) || (byte_at(parser, cursor, 5) && byte_at(parser, cursor, 5) != 0xF8))
                return 0;
            ethertype = number_at(parser, cursor, 6);
            skip(cursor, 8);
        } else {
            return 0;
        }
    }
    if (has_labels) {
        int is_bottom = 0;
        LOOP (__u32 label = 0; label < MAX_LABELS && !is_bottom; label++) {
            if (!has(cursor, 4)) {
                packet->reason = missing(cursor, 4);
                return 0;
            }
            is_bottom = byte_at(parser, cursor, 2) & 1;
            skip(cursor, 4);
        }
        if (!is_bottom) return 0;
        if (!has(cursor, 1)) {
            packet->reason = missing(cursor, 1);
            return 0;
        }
        __u32 version = byte_at(parser, cursor, 0) >> 4;
        return version == 4 || version == 6 ? version : 0;
    }
    if (has_pppoe) {
        if (!has(cursor, 7)) {
            packet->reason = missing(cursor, 7);
            return 0;
        }
        __u32 kind = number_at(parser, cursor, 0), protocol = byte_at(parser, cursor, 6), bytes = 1;
        skip(cursor, 6);
        if (!(protocol & 1)) {
            if (!has(cursor, 2)) {
                packet->reason = missing(cursor, 2);
                return 0;
            }
            protocol = number_at(parser, cursor, 0);
            bytes = 2;
        }
        skip(cursor, bytes);
        if (kind != 0x1100) return 0;
        return protocol == 0x21 ? 4 : protocol == 0x57 ? 6 : 0;
    }
    return 0;
}

// Whether the packet is a later fragment, after an IPv6 fragment header or in IPv4.
struct position {
    int is_later;
};

// Skips up to `most` extension headers to the transport header.
INLINE void skip_extension_headers(const struct parser *parser, CURSOR *cursor, struct packet *packet,
                                   struct position *position, __u32 most) {
    LOOP (__u32 header = 0; header < most; header++) {
        __u8 number = packet->protocol;
        if (!is_extension_header(number)) return;
        if (!has(cursor, 2)) break;
        __u8 next = byte_at(parser, cursor, 0);
        __u32 length = byte_at(parser, cursor, 1);
        if (next == NO_NEXT_HEADER && (number == MOBILITY || number == HOST_IDENTITY || number == SHIM6)) return;
        if (number == FRAGMENT) {
            if (!has(cursor, 8)) break;
            position->is_later = number_at(parser, cursor, 2) >> 3 != 0;
            length = 8;
        } else {
            length = number == AUTHENTICATION ? (length + 2) * 4 : (length + 1) * 8;
        }
        skip(cursor, length);
        packet->protocol = next;
        if (position->is_later) return;
    }
    if (is_extension_header(packet->protocol)) packet->notes |= NO_PORTS;
}

// The length in a jumbo payload option (RFC 2675), in hop-by-hop options at the cursor; 0 if there is none.
INLINE __u32 jumbo_length(const struct parser *parser, CURSOR *options) {
    if (!has(options, 2)) return 0;
    limit(options, (byte_at(parser, options, 1) + 1) * 8);
    skip(options, 2);
    LOOP (__u32 option = 0; option < MAX_OPTIONS; option++) {
        if (!has(options, 1)) return 0;
        __u8 kind = byte_at(parser, options, 0);
        if (kind == 0) {
            skip(options, 1);
            continue;
        }
        if (!has(options, 2)) return 0;
        if (kind == 0xC2 && byte_at(parser, options, 1) == 4 && has(options, 6)) {
            __u32 length = number_at(parser, options, 2) << 16 | number_at(parser, options, 4);
            return length > 0xFFFF ? length : 0;
        }
        skip(options, byte_at(parser, options, 1) + 2);
    }
    return 0;
}

INLINE void parse_ports(const struct parser *parser, const CURSOR *cursor, struct packet *packet) {
    switch (packet->protocol) {
    case PROTOCOL_TCP:
    case PROTOCOL_UDP:
    case PROTOCOL_UDP_LITE:
    case PROTOCOL_SCTP:
    case PROTOCOL_DCCP:
        if (has(cursor, 4)) {
            packet->source_port = word_at(parser, cursor, 0, 2);
            packet->destination_port = word_at(parser, cursor, 2, 2);
        } else {
            packet->notes |= NO_PORTS;
        }
        return;
    case PROTOCOL_ICMP:
    case PROTOCOL_ICMPV6: {
        if (!has(cursor, 1)) {
            packet->notes |= NO_PORTS;
            return;
        }
        __u8 kind = byte_at(parser, cursor, 0);
        int is_echo = packet->protocol == PROTOCOL_ICMP ? kind == 8 || kind == 0 : kind == 128 || kind == 129;
        if (!is_echo) return;
        if (!has(cursor, 6)) {
            packet->notes |= NO_PORTS;
            return;
        }
        packet->source_port = packet->destination_port = word_at(parser, cursor, 4, 2);
        return;
    }
    default: return;
    }
}

// Parses any packet in a copy of its first bytes.
INLINE void parse_copy(struct parser *parser, __u32 captured, __u32 length, struct packet *packet) {
    CURSOR *cursor = &parser->cursor;
    cursor->at = 0;
    cursor->end = captured;
    cursor->wire_end = length;
    struct position position = {0};
    packet->source_port = packet->destination_port = 0;
    packet->notes = 0;
    __u32 version = find_ip(parser, cursor, packet);
    if (!version) return;
    __u32 header_bytes = version == 4 ? 20 : 40;
    if (!has(cursor, header_bytes)) {
        packet->reason = missing(cursor, header_bytes);
        return;
    }
    if (byte_at(parser, cursor, 0) >> 4 != version) {
        packet->reason = IP_VERSION;
        return;
    }
    packet->is_ipv6 = version == 6;
    __u32 most_headers;
    if (version == 4) {
        header_bytes = (byte_at(parser, cursor, 0) & 15) * 4;
        if (header_bytes < 20) {
            packet->reason = HEADER_LENGTH;
            return;
        }
        __u32 stated = number_at(parser, cursor, 2);
        set_ip_length(packet, stated, stated != 0, wire_length(cursor));
        if (packet->ip_length < header_bytes) {
            packet->reason = TOTAL_LENGTH;
            return;
        }
        position.is_later = (number_at(parser, cursor, 6) & 0x1FFF) != 0;
        packet->protocol = byte_at(parser, cursor, 9);
        packet->source[0] = word_at(parser, cursor, 12, 4);
        packet->destination[0] = word_at(parser, cursor, 16, 4);
        most_headers = packet->protocol == AUTHENTICATION && !position.is_later;
    } else {
        __u32 stated = number_at(parser, cursor, 4);
        __u8 next = byte_at(parser, cursor, 6);
        int is_stated = 1;
        if (!stated) {
            CURSOR *options = &parser->options;
            options->at = cursor->at + 40;
            options->end = cursor->end;
            options->wire_end = cursor->wire_end;
            stated = next == HOP_BY_HOP ? jumbo_length(parser, options) : 0;
            is_stated = stated || !(next == PROTOCOL_TCP || next == PROTOCOL_UDP || is_extension_header(next));
        }
        stated = stated > 0xFFFFFFFF - 40 ? 0xFFFFFFFF : stated + 40;
        set_ip_length(packet, stated, is_stated, wire_length(cursor));
        packet->protocol = next;
        packet->source[0] = word_at(parser, cursor, 8, 8);
        packet->source[1] = word_at(parser, cursor, 16, 8);
        packet->destination[0] = word_at(parser, cursor, 24, 8);
        packet->destination[1] = word_at(parser, cursor, 32, 8);
        most_headers = MAX_EXTENSION_HEADERS;
    }
    packet->reason = COUNTED;
    limit(cursor, packet->ip_length);
    skip(cursor, header_bytes);
    if (most_headers && is_extension_header(packet->protocol))
        skip_extension_headers(parser, cursor, packet, &position, most_headers);
    if (position.is_later)
        packet->notes |= NO_FRAGMENT_PORTS;
    else
        parse_ports(parser, cursor, packet);
}
