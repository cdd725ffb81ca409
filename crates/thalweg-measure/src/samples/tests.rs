use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

fn frame(time: u64, bytes: &[u8]) -> Frame<'_> {
    let original_length = bytes.len() as u32 + 1_000;
    Frame { time: Timestamp(time), bytes, original_length, link_type: LinkType::Ethernet }
}

#[test]
fn sizes_out_of_range_are_rejected() {
    let new = |bytes, snap_length| {
        SampleRing::new(SampleRingOptions { bytes: Bytes(bytes), snap_length }).map(|_| ())
    };
    assert_eq!(new(1 << 20, 63), Err(SampleRingError::SnapLength(63)));
    assert_eq!(new(1 << 30, 65_529), Err(SampleRingError::SnapLength(65_529)));
    assert_eq!(new(8_191, 64), Err(SampleRingError::Size { bytes: Bytes(8_191), snap_length: 64 }));
    assert_eq!(new(8_192, 64), Ok(()));
    assert_eq!(SampleRing::min_bytes(64), Bytes(8_192));
    assert!(matches!(new(u64::MAX, 64), Err(SampleRingError::Size { .. })));
    let (_, ring) = SampleRing::new(SampleRingOptions::default()).unwrap();
    assert_eq!((ring.capacity(), ring.snap_length(), ring.bytes()), (16_383 * 21, 176, Bytes(64 << 20)));
}

proptest! {
    /// Compared with a list of all.
    #[test]
    fn the_ring_has_the_last_frames_up_to_the_snap_length(
        pages in 2u64..4,
        snap_length in 64u32..80,
        lengths in prop::collection::vec(0usize..120, 0..400),
        max in 0u64..300,
    ) {
        let bytes = Bytes(pages * 4_096);
        let (mut writer, ring) = SampleRing::new(SampleRingOptions { bytes, snap_length }).unwrap();
        let kept = ring.snap_length() as usize;
        prop_assert!(kept >= snap_length as usize && kept < snap_length as usize + 8);
        let all: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(i, &length)| vec![(i % 251) as u8; length]).collect();
        for (time, bytes) in all.iter().enumerate() {
            writer.write(&frame(time as u64, bytes));
        }
        let samples = ring.copy(max);
        let begin = all.len() - samples.len();
        for (frame, number) in samples.iter().zip(begin..) {
            let whole = &all[number];
            prop_assert_eq!(frame.time.0, number as u64);
            prop_assert_eq!(frame.bytes, &whole[..whole.len().min(kept)]);
            prop_assert_eq!(frame.original_length, whole.len() as u32 + 1_000);
        }
        let held = samples.len() as u64;
        prop_assert!(held <= max && held >= max.min(ring.capacity()).min(all.len() as u64), "{held}");
        prop_assert_eq!(samples.overwritten, 0);
        prop_assert_eq!(ring.written(), all.len() as u64);
    }
}

/// Every byte of frame `number` identifies the frame, so that a mixture of two shows.
fn content(number: u64) -> ([u8; 176], usize) {
    ([number as u8 ^ (number >> 8) as u8; 176], 64 + (number % 113) as usize)
}

#[test]
fn concurrent_readers_get_whole_frames_in_order() {
    const FRAMES: u64 = 400_000;
    let options = SampleRingOptions { bytes: Bytes(4 * 4_096), snap_length: 176 };
    let (mut writer, ring) = SampleRing::new(options).unwrap();
    let done = AtomicBool::new(false);
    // Wait for readers that have read something: on a busy machine the writer would finish before they begin.
    let begun = AtomicU64::new(0);
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
                            assert!(last < Some(frame.time), "out of order");
                            last = Some(frame.time);
                        }
                        if read == 0 && !samples.is_empty() {
                            begun.fetch_add(1, Ordering::Relaxed);
                        }
                        read += samples.len();
                        overwritten += samples.overwritten;
                    }
                    (read, overwritten)
                })
            })
            .collect();
        let has_enough = |number| number >= FRAMES && begun.load(Ordering::Relaxed) == 3;
        for number in (0..1_000 * FRAMES).take_while(|&number| !has_enough(number)) {
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
    assert!(last.len() as u64 >= ring.capacity());
    let written = ring.written();
    assert_eq!(last, (written - last.len() as u64..written).collect::<Vec<_>>());
}
