//! Random values of all structures. The macros of structures implement [`Sample`] for what they declare.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::mac_address::MacAddress;
use crate::openflow::multipart::{MultipartReply, MultipartRequest};
use crate::openflow::{
    DatapathId, Hello, Masked, Match, Message, OtherField, PacketOut, RoleMasks, Text, Xid,
};
use crate::protocol::Protocol;

/// A generator of random numbers: SplitMix64 (Steele, Lea & Flood 2014, Figure 17).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }

    /// Returns a number that no table defines.
    pub(crate) fn unknown_kind(&mut self) -> u8 {
        99
    }

    /// Returns bytes that form a multiple of 8 with a header of 4 bytes, so that no padding is needed.
    pub(crate) fn unknown_body(&mut self) -> Vec<u8> {
        let length = self.one_of(&[4, 12, 20]);
        (0..length).map(|_| u8::sample(self)).collect()
    }
}

/// A type with random values.
pub(crate) trait Sample: Sized {
    fn sample(draw: &mut Draw) -> Self;
}

macro_rules! sample {
    ($($type:ty: $draw:ident => $made:expr;)+) => { $(
        impl Sample for $type {
            fn sample($draw: &mut Draw) -> $type {
                $made
            }
        }
    )+ };
}

sample! {
    u8: draw => draw.next() as u8;
    u16: draw => draw.next() as u16;
    u32: draw => draw.next() as u32;
    u64: draw => draw.next();
    bool: draw => draw.next() & 1 != 0;
    MacAddress: draw => MacAddress([(); 6].map(|()| u8::sample(draw)));
    Ipv4Addr: draw => Ipv4Addr::from(u32::sample(draw));
    Ipv6Addr: draw => Ipv6Addr::from([(); 8].map(|()| u16::sample(draw)));
    Protocol: draw => Protocol(u8::sample(draw));
    DatapathId: draw => DatapathId(u64::sample(draw));
    RoleMasks: draw => RoleMasks { master: u32::sample(draw), slave: u32::sample(draw) };
    Hello: draw => Hello { versions: Vec::sample(draw) };
    Match: draw => Match(Vec::sample(draw));
    OtherField: draw => OtherField {
        class: draw.one_of(&[0, 1, 0x8001, 0xffff]),
        field: u8::sample(draw) & 0x7f,
        has_mask: bool::sample(draw),
        payload: Vec::sample(draw),
    };
    PacketOut: draw => PacketOut {
        buffer_id: Sample::sample(draw),
        in_port: Sample::sample(draw),
        actions: Vec::sample(draw),
        data: Vec::sample(draw),
    };
    MultipartRequest: draw => MultipartRequest { more: bool::sample(draw), request: Sample::sample(draw) };
    MultipartReply: draw => MultipartReply { more: bool::sample(draw), reply: Sample::sample(draw) };
    Message: draw => Message { xid: Xid::sample(draw), body: Sample::sample(draw) };
}

impl<T: Sample> Sample for Masked<T> {
    fn sample(draw: &mut Draw) -> Masked<T> {
        let value = T::sample(draw);
        Masked { value, mask: bool::sample(draw).then(|| T::sample(draw)) }
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(draw: &mut Draw) -> Vec<T> {
        let length = draw.one_of(&[0, 1, 2, 3, 5]);
        (0..length).map(|_| T::sample(draw)).collect()
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(draw: &mut Draw) -> Box<T> {
        Box::new(T::sample(draw))
    }
}

impl<const N: usize> Sample for Text<N> {
    fn sample(draw: &mut Draw) -> Text<N> {
        Text::new(&format!("text-{}", u64::sample(draw)))
    }
}
