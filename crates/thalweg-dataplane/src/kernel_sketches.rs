//! Loads the programs and creates their memory.

use std::io;

use bytemuck::{Zeroable as _, bytes_of};
use thalweg_linux::bpf::map::possible_cpus;
use thalweg_linux::bpf::{MappedRegion, Maps, Object, ObjectError, Program, ProgramKind};
use thalweg_sketch::Probability;
use thalweg_sketch::nitro::first_gap;

use crate::error::DataplaneError;
use crate::layout::{self, Config, Control, CpuState, STATE_BYTES, Sizes};
use crate::spec::{MAX_SKETCHES, SketchKind, Specification};

/// Compiled from `kernel/sketch.bpf.c` by `scripts/bpf.sh`.
const PROGRAMS: &[u8] = include_bytes!("kernel/sketch.bpf.o");

/// The most bytes of counters per CPU: positions of counters have 32 bits in the programs.
const MAX_CELLS: u64 = 1 << 31;

/// The name of the map of constants.
pub(crate) const CONSTANTS_MAP: &str = ".rodata";
/// The names of the maps that are shared with the reader.
pub(crate) const SHARED_MAPS: [&str; 4] = ["states", "cells", "logs", "controls"];

/// The program of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// XDP, for frames in one buffer.
    Xdp,
    /// XDP, also for frames in several buffers.
    XdpMultiBuffer,
    /// The ingress of tc.
    Ingress,
}

/// Sketches in the kernel: their memory, and the programs that can count into it.
#[derive(Debug)]
pub struct KernelSketches {
    specification: Specification,
    config: Config,
    memory: SharedMemory,
    maps: Maps,
}

/// The maps that programs and reader share.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    pub(crate) states: MappedRegion,
    pub(crate) cells: MappedRegion,
    pub(crate) logs: MappedRegion,
    pub(crate) controls: MappedRegion,
}

impl Entry {
    fn name(self) -> &'static str {
        match self {
            Entry::Xdp => "sketch_xdp",
            Entry::XdpMultiBuffer => "sketch_xdp_frags",
            Entry::Ingress => "sketch_tc",
        }
    }

    fn kind(self) -> ProgramKind {
        match self {
            Entry::Xdp => ProgramKind::Xdp,
            Entry::XdpMultiBuffer => ProgramKind::XdpMultiBuffer,
            Entry::Ingress => ProgramKind::Classifier,
        }
    }
}

impl KernelSketches {
    /// Creates the memory of the sketches, empty. `probabilities` are those that sampling may use meanwhile, beside the
    /// ones of the specification.
    ///
    /// # Errors
    /// If there are no sketches or more than [`MAX_SKETCHES`], they do not fit into a map, or this process lacks the
    /// privilege.
    pub fn create(
        specification: Specification,
        probabilities: &[Probability],
    ) -> Result<KernelSketches, DataplaneError> {
        KernelSketches::create_from(PROGRAMS, specification, probabilities)
    }

    /// As [`create`](Self::create), with another object file of programs that share the memory, such as those of a benchmark.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_from(
        programs: &[u8],
        specification: Specification,
        probabilities: &[Probability],
    ) -> Result<KernelSketches, DataplaneError> {
        let found = specification.sketches.len();
        if !(1..=MAX_SKETCHES).contains(&found) {
            return Err(DataplaneError::Sketches { found });
        }
        let bytes = specification.sketches.iter().map(|sketch| sketch.bytes()).sum::<u64>();
        if bytes > MAX_CELLS {
            return Err(DataplaneError::Counters { bytes, limit: MAX_CELLS });
        }
        let (config, sizes, tables) = plan(&specification, probabilities);
        let cpus = possible_cpus().map_err(DataplaneError::Map)?;
        let maps = create_maps(programs, &config, sizes, cpus)?;
        let memory = SharedMemory::of(&maps)?;
        let gaps = map(&maps, "gaps")?;
        gaps.write(0, &tables);
        memory.begin(&specification, cpus);
        Ok(KernelSketches { specification, config, memory, maps })
    }

    /// Returns the specification.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// Returns the bytes that the sketches take in the kernel.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Loads the program of a hook.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn load(&self, entry: Entry) -> Result<Program, DataplaneError> {
        self.load_program(PROGRAMS, entry.name(), entry.kind())
    }

    /// Loads another program that uses this memory.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn load_program(
        &self,
        programs: &[u8],
        name: &str,
        kind: ProgramKind,
    ) -> Result<Program, DataplaneError> {
        let bytes = self.memory_bytes();
        let mut object = Object::read(programs).map_err(|source| load_error(source, bytes))?;
        object.set_constants(bytes_of(&self.config)).map_err(|source| load_error(source, bytes))?;
        object.load_with(name, kind, &self.maps).map_err(|source| load_error(source, bytes))
    }

    /// Returns the maps of all programs of the object file.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    pub(crate) fn into_memory(self) -> (Specification, Config, SharedMemory) {
        (self.specification, self.config, self.memory)
    }
}

impl SharedMemory {
    pub(crate) fn of(maps: &Maps) -> Result<SharedMemory, DataplaneError> {
        let [states, cells, logs, controls] = SHARED_MAPS.map(|name| map(maps, name));
        Ok(SharedMemory { states: states?, cells: cells?, logs: logs?, controls: controls? })
    }

    /// Returns the bytes of all maps.
    pub(crate) fn bytes(&self) -> u64 {
        let regions = [&self.states, &self.cells, &self.logs, &self.controls];
        regions.iter().map(|region| (region.entries() * region.value_bytes()) as u64).sum()
    }

    /// Writes the state of an empty sketch: the first packet to update on each CPU.
    fn begin(&self, specification: &Specification, cpus: usize) {
        let mut control = Control::zeroed();
        for (log2, sketch) in control.log2.iter_mut().zip(&specification.sketches) {
            *log2 = u32::from(probability_of(sketch.kind, sketch.probability).log2_inverse());
        }
        self.controls.write(0, bytes_of(&control));
        for cpu in 0..cpus {
            let mut state = CpuState { wake: u64::MAX, ..CpuState::default() };
            for (sampling, sketch) in state.sampling.iter_mut().zip(&specification.sketches) {
                let probability = probability_of(sketch.kind, sketch.probability);
                let rows = sketch.kind.rows() as u64;
                let (random, gap) = first_gap(probability, sketch.seed_of_cpu(cpu));
                (sampling.random, sampling.gap) = (random, gap);
                sampling.log2 = u32::from(probability.log2_inverse());
                sampling.next_packet = (gap - 1) / rows;
                sampling.row = ((gap - 1) % rows) as u32;
                state.wake = state.wake.min(sampling.next_packet);
            }
            self.states.write(cpu, bytes_of(&state));
        }
    }
}

/// Registers see every packet: a key that is not sampled cannot be counted later.
fn probability_of(kind: SketchKind, probability: Probability) -> Probability {
    match kind {
        SketchKind::HyperLogLog { .. } => Probability::ONE,
        _ => probability,
    }
}

/// Returns the constants of the programs, the sizes of their maps, and the tables of gaps.
pub(crate) fn plan(specification: &Specification, probabilities: &[Probability]) -> (Config, Sizes, Vec<u8>) {
    let mut probabilities = probabilities.to_vec();
    probabilities.extend(specification.sketches.iter().map(|sketch| sketch.probability));
    probabilities.sort_unstable();
    probabilities.dedup();
    layout::plan(specification, &probabilities)
}

fn create_maps(programs: &[u8], config: &Config, sizes: Sizes, cpus: usize) -> Result<Maps, DataplaneError> {
    let bytes = (sizes.cells + sizes.log + STATE_BYTES as u64) * cpus as u64 + sizes.gaps;
    let create = || -> Result<Maps, ObjectError> {
        let mut object = Object::read(programs)?;
        for (name, size) in [("states", STATE_BYTES as u64), ("cells", sizes.cells), ("logs", sizes.log)] {
            object.set_value_size(name, size as u32)?;
            object.set_max_entries(name, cpus as u32)?;
        }
        object.set_value_size("gaps", sizes.gaps as u32)?;
        object.set_constants(bytes_of(config))?;
        object.create_maps()
    };
    create().map_err(|source| load_error(source, bytes))
}

/// Maps a map into memory; the map stays in `maps`.
fn map(maps: &Maps, name: &str) -> Result<MappedRegion, DataplaneError> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no map {name:?}"));
    let map = maps.get(name).ok_or_else(missing).and_then(|map| map.try_clone());
    map.and_then(MappedRegion::try_from).map_err(DataplaneError::Map)
}

fn load_error(source: ObjectError, bytes: u64) -> DataplaneError {
    let error = match &source {
        ObjectError::Map { source, .. } => Some(source),
        ObjectError::Program { source, .. } => Some(&source.source),
        _ => None,
    };
    match error {
        Some(error) if error.raw_os_error() == Some(libc::EPERM) => DataplaneError::Privilege,
        _ => DataplaneError::Load { bytes, source },
    }
}
