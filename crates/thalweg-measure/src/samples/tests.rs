use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

fn frame(time: u64, bytes: &[u8]) -> Frame<'_> {
    let original_length = bytes.len() as u32 + 1_000;
    Frame { time: Timestamp(time), bytes, original_length, link_type: LinkType::Ethernet }
}

fn ring(capacity: u64, snap_length: u32) -> (SampleWriter, SampleRing) {
    let bytes = Bytes(capacity * (16 + u64::from(snap_length.next_multiple_of(8))));
    SampleRing::new(SampleRingOptions { bytes, snap_length }).unwrap()
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let new = |bytes, snap_length| {
        SampleRing::new(SampleRingOptions { bytes: Bytes(bytes), snap_length }).map(|_| ())
    };
    assert_eq!(new(1 << 20, 63), Err(SampleRingError::SnapLength(63)));
    assert_eq!(new(1 << 30, 65_529), Err(SampleRingError::SnapLength(65_529)));
    assert_eq!(new(159, 64), Err(SampleRingError::Size { bytes: Bytes(159), snap_length: 64 }));
    assert_eq!(new(160, 64), Ok(()));
    assert!(matches!(new(u64::MAX, 64), Err(SampleRingError::Size { .. })));
    let (_, ring) = SampleRing::new(SampleRingOptions::default()).unwrap();
    assert_eq!((ring.capacity(), ring.snap_length()), (349_524, 176));
}

proptest! {
    /// Against a queue that lets go of its oldest.
    #[test]
    fn it_holds_the_last_frames_cut_to_the_snap_length(
        capacity in 2u64..9,
        snap_length in 64u32..80,
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..30),
        most in 0u64..12,
    ) {
        let (mut writer, ring) = ring(capacity, snap_length);
        let kept = ring.snap_length() as usize;
        prop_assert!(kept >= snap_length as usize && kept < snap_length as usize + 8);
        let mut queue = VecDeque::new();
        for (time, bytes) in frames.iter().enumerate() {
            writer.write(&frame(time as u64, bytes));
            queue.push_back((time as u64, &bytes[..bytes.len().min(kept)], bytes.len() as u32 + 1_000));
            if queue.len() as u64 > ring.capacity().min(most) {
                queue.pop_front();
            }
        }
        let samples = ring.copy(most);
        let read: Vec<_> = samples.iter().map(|frame| (frame.time.0, frame.bytes, frame.original_length)).collect();
        prop_assert_eq!(ring.capacity(), capacity - 1);
        prop_assert_eq!(read, Vec::from(queue));
        prop_assert_eq!(samples.overwritten, 0);
        prop_assert_eq!(ring.written(), frames.len() as u64);
    }
}

/// Every byte of frame `number` says which frame it is, so that a mixture of two shows.
fn content(number: u64) -> ([u8; 176], usize) {
    ([number as u8 ^ (number >> 8) as u8; 176], 64 + (number % 113) as usize)
}

#[test]
fn readers_get_whole_frames_in_order_while_they_are_overwritten() {
    const FRAMES: u64 = 400_000;
    let (mut writer, ring) = ring(64, 176);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut read, mut overwritten) = (0, 0);
                    while !done.load(Ordering::Relaxed) {
                        let samples = ring.copy(u64::MAX);
                        let mut last = None;
                        for frame in samples.iter() {
                            let (bytes, length) = content(frame.time.0);
                            assert_eq!(frame.bytes, &bytes[..length], "frame {}", frame.time.0);
                            assert_eq!(frame.original_length, frame.time.0 as u32);
                            assert!(last < Some(frame.time), "in order");
                            last = Some(frame.time);
                        }
                        read += samples.len();
                        overwritten += samples.overwritten;
                    }
                    (read, overwritten)
                })
            })
            .collect();
        for number in 0..FRAMES {
            let (bytes, length) = content(number);
            let original_length = number as u32;
            let link_type = LinkType::Ethernet;
            writer.write(&Frame {
                time: Timestamp(number),
                bytes: &bytes[..length],
                original_length,
                link_type,
            });
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let (read, _) = reader.join().unwrap();
            assert!(read > 0);
        }
    });
    let last: Vec<u64> = ring.copy(u64::MAX).iter().map(|frame| frame.time.0).collect();
    assert_eq!(last, (FRAMES - 63..FRAMES).collect::<Vec<_>>());
}
