//! IEEE 802.11 data frames, with or without a radiotap header.

use crate::parse::Unparsed;
use crate::parse::frame_cursor::FrameCursor;
use crate::parse::ip::Network;
use crate::parse::link;

/// Frame control (IEEE 802.11-2020 section 9.2.4.1): type and subtype in the first byte, flags in the second.
const TYPE: u8 = 0x0C;
const DATA: u8 = 0x08;
const NO_DATA: u8 = 0x40;
const QOS: u8 = 0x80;
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const HT_CONTROL: u8 = 0x80;
/// QoS control (section 9.2.4.5): the body is an aggregate of several frames.
const AGGREGATE: u8 = 0x80;

/// Radiotap (radiotap.org): another word of the bitmap follows; fields TSFT and flags; padding between header and body.
const ANOTHER_WORD: u32 = 1 << 31;
const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const DATA_PADDING: u8 = 0x20;
/// Words of the bitmap that are read.
const MAX_WORDS: u32 = 32;

/// Parses a radiotap header, and the frame after it.
pub(super) fn radiotap(rest: FrameCursor<'_>) -> Result<Network<'_>, Unparsed> {
    let &[_, _, low, high, p0, p1, p2, p3] = rest.header()?;
    let length = u32::from(u16::from_le_bytes([low, high]));
    let present = u32::from_le_bytes([p0, p1, p2, p3]);
    let (mut words, mut word) = (1, present);
    while word & ANOTHER_WORD != 0 && words < MAX_WORDS {
        word = u32::from_le_bytes(*rest.skip(4 + 4 * words).header()?);
        words += 1;
    }
    let mut at = 4 + 4 * words;
    if present & TSFT != 0 {
        // Fields are aligned to their size from the begin of the header.
        at = at.next_multiple_of(8) + 8;
    }
    let is_padded =
        present & FLAGS != 0 && rest.skip(at).peek().is_some_and(|[flags]| flags & DATA_PADDING != 0);
    data_frame(rest.skip(length.max(8)), is_padded)
}

/// Parses a data frame. Of an aggregate (A-MSDU) the first frame counts. Encrypted frames and others than data are not IP; their
/// EtherType in the error is the frame control field.
pub(super) fn data_frame(rest: FrameCursor<'_>, is_padded: bool) -> Result<Network<'_>, Unparsed> {
    let &[control, flags] = rest.header()?;
    let not_ip = Err(Unparsed::NonIp { ethertype: u16::from_be_bytes([control, flags]) });
    if control & TYPE != DATA || control & NO_DATA != 0 || flags & PROTECTED != 0 {
        return not_ip;
    }
    let addresses = if flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS { 30 } else { 24 };
    let (mut length, mut is_aggregate) = (addresses, false);
    if control & QOS != 0 {
        is_aggregate = rest.skip(addresses).peek().is_some_and(|[qos]| qos & AGGREGATE != 0);
        length += if flags & HT_CONTROL != 0 { 6 } else { 2 };
    }
    if is_padded {
        length = length.next_multiple_of(4);
    }
    let body = rest.skip(length + if is_aggregate { 14 } else { 0 });
    link::llc(body)
}
