//! The parser of the kernel programs, beside that of user space.

use std::cell::RefCell;
use std::io::ErrorKind;

use thalweg_dataplane::kernel_sketches::Entry;
use thalweg_dataplane::{
    DataplaneError, KernelKey, KernelSketches, Reader, ReaderOptions, SketchKind, SketchSpec, Specification,
    WindowSketch,
};
use thalweg_linux::bpf::Program;
use thalweg_measure::tasks::{FlowBytes, KeyDefinition};
use thalweg_sketch::{CountMin, Hasher, Mode, Nitro, Probability, RowSketch as _, Shape};
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;
use thalweg_wire::{LinkType, Timestamp};

/// The bytes of a frame that the programs parse.
const PARSED: usize = 512;

/// The longest frame of one buffer in a test run.
const ONE_BUFFER: usize = 3_000;

/// XDP_PASS of linux/bpf.h.
const PASS: i32 = 2;

/// A program with its sketch.
struct Kernel {
    program: Program,
    reader: RefCell<Reader<FlowBytes>>,
}

impl Kernel {
    /// Loads the program; `None` without the privilege.
    fn load() -> Option<Kernel> {
        let shape = Shape::new(3, 64).expect("a valid shape");
        let spec = SketchSpec::new(SketchKind::CountMin(shape), KernelKey::FiveTuple);
        let kernel = match KernelSketches::create(Specification::new(vec![spec], Hasher::new(1)), &[]) {
            Err(DataplaneError::Privilege) => return None,
            kernel => kernel.expect("sketches in the kernel"),
        };
        let program = kernel.load(Entry::Xdp).expect("the verifier accepts the program");
        Some(Kernel { program, reader: RefCell::new(Reader::new(kernel, &ReaderOptions::default())) })
    }

    fn check(&self, data: &[u8]) {
        let run = match self.program.test_run(data, 1) {
            // The kernel runs programs on whole Ethernet headers only.
            Err(error) if error.kind() == ErrorKind::InvalidInput => return,
            run => run.expect("a test run"),
        };
        assert_eq!(run.verdict, PASS);
        assert_eq!(run.frame, data, "the frame is unchanged");
        let frame = Frame {
            time: Timestamp::default(),
            bytes: &data[..data.len().min(PARSED)],
            original_length: data.len() as u32,
            link_type: LinkType::Ethernet,
        };
        let packet = Parser::default().parse(&frame).ok();
        let window = self.reader.borrow_mut().end_window(0).window;
        assert_eq!(window.totals().packets, 1);
        assert_eq!(window.ip_packets(0), u64::from(packet.is_some()));
        let Ok(WindowSketch::CountMin32(sketch)) = window.sketch::<FlowBytes>(0) else {
            panic!("a Count-Min sketch")
        };
        let expected = CountMin::<i32>::new(sketch.shape(), sketch.hasher());
        let mut expected = Nitro::new(expected, Mode::Fixed(Probability::ONE), 0);
        let key = "5tuple".parse::<KeyDefinition>().expect("a key");
        if let Some(packet) = packet {
            expected.update([key.of(&packet.key)].as_slice());
        }
        assert_eq!(sketch.rows().cells(), expected.sketch().rows().cells(), "{packet:?}");
    }
}

/// Checks that a frame passes unchanged, and that the kernel counts its 5-tuple, or that it has none, as user space does. Does nothing without
/// the privilege to load programs.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    thread_local!(static KERNEL: Option<Kernel> = Kernel::load());
    if data.len() <= ONE_BUFFER {
        KERNEL.with(|kernel| {
            if let Some(kernel) = kernel {
                kernel.check(data);
            }
        });
    }
}
