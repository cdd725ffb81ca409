//! Typed functions for the commands of bpf(2). Structures and numbers are those of linux/bpf.h.

#![expect(unsafe_code, reason = "a system call that takes pointers")]

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::instruction::Instruction;
use crate::socket::check;

/// Commands of `enum bpf_cmd`.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP_ELEMENT: c_int = 1;
const MAP_UPDATE_ELEMENT: c_int = 2;
const MAP_DELETE_ELEMENT: c_int = 3;
const MAP_GET_NEXT_KEY: c_int = 4;
const PROGRAM_LOAD: c_int = 5;
const PROGRAM_GET_FD_BY_ID: c_int = 13;
const MAP_GET_FD_BY_ID: c_int = 14;
const OBJECT_GET_INFO_BY_FD: c_int = 15;
const BTF_LOAD: c_int = 18;
const MAP_FREEZE: c_int = 22;
const MAP_LOOKUP_BATCH: c_int = 24;
const MAP_UPDATE_BATCH: c_int = 26;
const LINK_CREATE: c_int = 28;
const LINK_DETACH: c_int = 34;

/// BPF_MAP_TYPE_STRUCT_OPS, and BPF_F_LINK: the operations are active while a link is open.
const MAP_TYPE_STRUCT_OPS: u32 = 26;
const FLAG_LINK: u32 = 1 << 13;

/// BPF_STRUCT_OPS of `enum bpf_attach_type`.
const ATTACH_TYPE_STRUCT_OPS: u32 = 44;

/// The length of a name in bytes, including the final NUL (`BPF_OBJ_NAME_LEN`).
const NAME_LENGTH: usize = 16;

/// Attributes of BPF_MAP_CREATE.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; NAME_LENGTH],
    interface_index: u32,
    type_information: u32,
    key_type: u32,
    value_type: u32,
    /// The kernel's structure that a map of type BPF_MAP_TYPE_STRUCT_OPS holds.
    kernel_value_type: u32,
}

/// Attributes of BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM and, with the next key as value,
/// BPF_MAP_GET_NEXT_KEY.
#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Attributes of BPF_MAP_LOOKUP_BATCH and BPF_MAP_UPDATE_BATCH.
#[repr(C)]
struct MapBatch {
    before: u64,
    after: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Where a batch ends: a bucket of a hash table, or a key of an array.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub(super) struct Cursor([u8; 8]);

/// Attributes of BPF_PROG_LOAD, as far as used.
#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_LENGTH],
    interface_index: u32,
    expected_attach_type: u32,
    type_information: u32,
    function_record_size: u32,
    functions: u64,
    function_count: u32,
    line_record_size: u32,
    lines: u64,
    line_count: u32,
    /// The kernel's structure of operations to which the program belongs.
    attach_type_id: u32,
}

/// Attributes of BPF_PROG_GET_FD_BY_ID and BPF_MAP_GET_FD_BY_ID.
#[repr(C)]
struct ById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// Attributes of BPF_BTF_LOAD.
#[repr(C)]
struct TypesLoad {
    types: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
}

/// Attributes of BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct InfoByDescriptor {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// Attributes of BPF_LINK_CREATE.
#[repr(C)]
struct LinkCreate {
    /// The program, or the map of operations.
    program: u32,
    interface_index: u32,
    attach_type: u32,
    flags: u32,
}

/// The first fields of `struct bpf_map_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapInfo {
    pub(super) map_type: u32,
    pub(super) id: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) map_flags: u32,
    pub(super) name: [u8; NAME_LENGTH],
}

/// The first fields of `struct bpf_link_info`, for links to interfaces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkInfo {
    pub(super) link_type: u32,
    pub(super) id: u32,
    pub(super) program: u32,
    padding: u32,
    /// 0 after the interface was removed or the program detached.
    pub(super) interface_index: u32,
}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ProgramInfo {
    program_type: u32,
    id: u32,
    tag: [u8; 8],
    jited_length: u32,
    translated_length: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    user: u32,
    map_count: u32,
    map_ids: u64,
}

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadRequest<'a> {
    pub(super) program_type: u32,
    pub(super) expected_attach_type: u32,
    pub(super) flags: u32,
    /// The number of the kernel's structure of operations; 0 for other programs.
    pub(super) attach_type_id: u32,
    pub(super) name: &'a str,
    pub(super) licence: &'a CStr,
    pub(super) instructions: &'a [Instruction],
}

/// Creates a map.
pub(super) fn create_map(
    map_type: u32,
    name: &str,
    [key_size, value_size, max_entries, map_flags]: [u32; 4],
) -> io::Result<OwnedFd> {
    let name = padded(name);
    let attributes = MapCreate {
        map_type,
        key_size,
        value_size,
        max_entries,
        map_flags,
        inner_map: 0,
        numa_node: 0,
        name,
        interface_index: 0,
        type_information: 0,
        key_type: 0,
        value_type: 0,
        kernel_value_type: 0,
    };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(MAP_CREATE, &attributes) }
}

/// Creates a map of operations (BPF_MAP_TYPE_STRUCT_OPS) that are active while a link is open. `kernel_value_type` is the
/// number of the kernel's structure that it holds, `value_size` the size of that. The kernel requires type information
/// of the object file too, although it does not use it.
pub(super) fn create_operations(
    name: &str,
    value_size: u32,
    kernel_value_type: u32,
    types: &OwnedFd,
) -> io::Result<OwnedFd> {
    let attributes = MapCreate {
        map_type: MAP_TYPE_STRUCT_OPS,
        key_size: 4,
        value_size,
        max_entries: 1,
        map_flags: FLAG_LINK,
        inner_map: 0,
        numa_node: 0,
        name: padded(name),
        interface_index: 0,
        type_information: types.as_raw_fd() as u32,
        key_type: 0,
        value_type: 0,
        kernel_value_type,
    };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(MAP_CREATE, &attributes) }
}

/// Loads type information (BTF).
pub(super) fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let attributes = TypesLoad {
        types: types.as_ptr() as u64,
        log: 0,
        size: types.len() as u32,
        log_size: 0,
        log_level: 0,
    };
    // SAFETY: the attributes of this command; the kernel reads no more than the size.
    unsafe { bpf_for_descriptor(BTF_LOAD, &attributes) }
}

/// Reads the value of a key.
///
/// # Safety
/// `key` and `value` must be as long as the map's keys and values. For a per-CPU map `value` must hold the values of
/// all possible CPUs, each rounded up to eight bytes.
pub(super) unsafe fn look_up(map: &OwnedFd, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    // SAFETY: the attributes of this command; key and value are as long as the map's.
    unsafe { element(MAP_LOOKUP_ELEMENT, map, key.as_ptr(), value.as_mut_ptr()) }
}

/// Writes the value of a key.
///
/// # Safety
/// As [`look_up`].
pub(super) unsafe fn update(map: &OwnedFd, key: &[u8], value: &[u8]) -> io::Result<()> {
    // SAFETY: the attributes of this command; key and value are as long as the map's, and the kernel only reads them.
    unsafe { element(MAP_UPDATE_ELEMENT, map, key.as_ptr(), value.as_ptr().cast_mut()) }
}

/// Writes the value of a map of operations, which has one entry.
///
/// # Errors
/// If the value has another length than the map's, or the kernel rejects the operations.
pub(super) fn update_operations(map: &OwnedFd, value: &[u8]) -> io::Result<()> {
    const KEY: [u8; 4] = [0; 4];
    let MapInfo { key_size, value_size, .. } = map_info(map)?;
    if key_size as usize != KEY.len() || value_size as usize != value.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: key and value are as long as the map's.
    unsafe { update(map, &KEY, value) }
}

/// Removes a key.
///
/// # Safety
/// `key` must be as long as the map's keys.
pub(super) unsafe fn remove(map: &OwnedFd, key: &[u8]) -> io::Result<()> {
    // SAFETY: the attributes of this command; the key is as long as the map's.
    unsafe { element(MAP_DELETE_ELEMENT, map, key.as_ptr(), std::ptr::null_mut()) }
}

/// Reads the key after another, or the first one.
///
/// # Safety
/// Both must be as long as the map's keys.
pub(super) unsafe fn next_key(map: &OwnedFd, key: Option<&[u8]>, next: &mut [u8]) -> io::Result<()> {
    let key = key.map_or(std::ptr::null(), <[u8]>::as_ptr);
    // SAFETY: the attributes of this command; both keys are as long as the map's.
    unsafe { element(MAP_GET_NEXT_KEY, map, key, next.as_mut_ptr()) }
}

/// Reads up to `count` entries that follow `cursor`, or the first ones. Advances the cursor. Returns how many were read, and
/// whether there are more.
///
/// # Safety
/// `keys` and `values` must have room for `count` of the map's keys and values, whose keys have at most eight bytes unless it
/// is a hash table.
pub(super) unsafe fn look_up_batch(
    map: &OwnedFd,
    cursor: &mut Option<Cursor>,
    (keys, values): (&mut [u8], &mut [u8]),
    count: usize,
) -> io::Result<(usize, bool)> {
    let (before, mut after) = (cursor.unwrap_or_default(), Cursor::default());
    let mut attributes = MapBatch {
        before: cursor.map_or(0, |_| std::ptr::from_ref(&before) as u64),
        after: std::ptr::from_mut(&mut after) as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
        count: count as u32,
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the attributes of this command, of which the kernel writes the count; the rest is as the caller promises.
    let read = unsafe { bpf_mut(MAP_LOOKUP_BATCH, &mut attributes) };
    *cursor = Some(after);
    match read {
        Ok(_) => Ok((attributes.count as usize, true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((attributes.count as usize, false)),
        Err(error) => Err(error),
    }
}

/// Writes the values of `count` keys.
///
/// # Errors
/// If the kernel returns an error: earlier keys of the batch are written then.
///
/// # Safety
/// `keys` and `values` must hold `count` keys and values of the map's lengths.
pub(super) unsafe fn update_batch(map: &OwnedFd, keys: &[u8], values: &[u8], count: usize) -> io::Result<()> {
    let mut attributes = MapBatch {
        before: 0,
        after: 0,
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: count as u32,
        map: map.as_raw_fd() as u32,
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the attributes of this command, of which the kernel writes the count; keys and values, which the kernel only reads,
    // are as the caller promises.
    unsafe { bpf_mut(MAP_UPDATE_BATCH, &mut attributes) }.map(drop)
}

/// Makes a map constant for processes.
pub(super) fn freeze_map(map: &OwnedFd) -> io::Result<()> {
    let attributes = map.as_raw_fd() as u32;
    // SAFETY: the attributes of this command, a descriptor alone.
    unsafe { bpf(MAP_FREEZE, &attributes) }.map(drop)
}

/// Loads a program. The verifier log goes into `log`, unless that is empty.
pub(super) fn load_program(request: LoadRequest<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let LoadRequest { program_type, expected_attach_type, flags, attach_type_id, .. } = request;
    let LoadRequest { name, licence, instructions, .. } = request;
    let attributes = ProgramLoad {
        program_type,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_size: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel_version: 0,
        flags,
        name: padded(name),
        interface_index: 0,
        expected_attach_type,
        type_information: 0,
        function_record_size: 0,
        functions: 0,
        function_count: 0,
        line_record_size: 0,
        lines: 0,
        line_count: 0,
        attach_type_id,
    };
    // SAFETY: the attributes of this command; program and log have the given lengths, the licence is a C string.
    unsafe { bpf_for_descriptor(PROGRAM_LOAD, &attributes) }
}

/// Opens a program by its id.
pub(super) fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    let attributes = ById { id, next_id: 0, open_flags: 0 };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(PROGRAM_GET_FD_BY_ID, &attributes) }
}

/// Opens a map by its id.
pub(super) fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    let attributes = ById { id, next_id: 0, open_flags: 0 };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(MAP_GET_FD_BY_ID, &attributes) }
}

/// Returns the kernel's description of a map.
pub(super) fn map_info(map: &OwnedFd) -> io::Result<MapInfo> {
    let mut info = MapInfo::default();
    // SAFETY: integers only, of which any bytes are a value, laid out as the kernel's.
    unsafe { get_info(map, &mut info) }?;
    Ok(info)
}

/// Returns the ids of the maps that a program uses.
pub(super) fn maps_of_program(program: &OwnedFd) -> io::Result<Vec<u32>> {
    let mut info = ProgramInfo::default();
    // SAFETY: integers only, of which any bytes are a value, laid out as the kernel's; the array of maps is empty, so
    // that the kernel writes none.
    unsafe { get_info(program, &mut info) }?;
    let mut ids = vec![0; info.map_count as usize];
    let mut info =
        ProgramInfo { map_count: info.map_count, map_ids: ids.as_mut_ptr() as u64, ..ProgramInfo::default() };
    // SAFETY: as above; the array of maps has the given length.
    unsafe { get_info(program, &mut info) }?;
    Ok(ids)
}

/// Returns the kernel's description of a link.
pub(super) fn link_info(link: &OwnedFd) -> io::Result<LinkInfo> {
    let mut info = LinkInfo::default();
    // SAFETY: integers only, of which any bytes are a value, laid out as the kernel's.
    unsafe { get_info(link, &mut info) }?;
    Ok(info)
}

/// Returns the id of a program.
pub(super) fn program_id(program: &OwnedFd) -> io::Result<u32> {
    let mut info = ProgramInfo::default();
    // SAFETY: integers only, of which any bytes are a value, laid out as the kernel's; the array of maps is empty.
    unsafe { get_info(program, &mut info) }?;
    Ok(info.id)
}

/// Attaches a program to an interface while the returned link is open in any process.
pub(super) fn create_link(
    program: &OwnedFd,
    interface_index: i32,
    attach_type: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface_index: interface_index as u32,
        attach_type,
        flags,
    };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(LINK_CREATE, &attributes) }
}

/// Activates a map of operations (BPF_F_LINK) while the returned link is open in any process.
pub(super) fn create_operations_link(map: &OwnedFd) -> io::Result<OwnedFd> {
    let attributes = LinkCreate {
        program: map.as_raw_fd() as u32,
        interface_index: 0,
        attach_type: ATTACH_TYPE_STRUCT_OPS,
        flags: 0,
    };
    // SAFETY: the attributes of this command, without pointers.
    unsafe { bpf_for_descriptor(LINK_CREATE, &attributes) }
}

/// Detaches the program immediately, even if another process has the link open.
pub(super) fn detach_link(link: &OwnedFd) -> io::Result<()> {
    let attributes = link.as_raw_fd() as u32;
    // SAFETY: the attributes of this command, a descriptor alone.
    unsafe { bpf(LINK_DETACH, &attributes) }.map(drop)
}

/// # Safety
/// `key` and `value` must be valid for `command` on this map.
unsafe fn element(command: c_int, map: &OwnedFd, key: *const u8, value: *mut u8) -> io::Result<()> {
    let attributes = MapElement {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the attributes of these commands; the rest is as the caller promises.
    unsafe { bpf(command, &attributes) }.map(drop)
}

/// # Safety
/// Any bytes must be a valid `T`, with the layout of the kernel's structure for this descriptor.
pub(super) unsafe fn get_info<T>(descriptor: &OwnedFd, info: &mut T) -> io::Result<()> {
    let attributes = InfoByDescriptor {
        descriptor: descriptor.as_raw_fd() as u32,
        length: size_of::<T>() as u32,
        info: std::ptr::from_mut(info) as u64,
    };
    // SAFETY: the attributes of this command; the kernel writes no more than the length.
    unsafe { bpf(OBJECT_GET_INFO_BY_FD, &attributes) }.map(drop)
}

/// # Safety
/// As [`bpf`], for a command that returns a descriptor.
pub(super) unsafe fn bpf_for_descriptor<T>(command: c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises.
    let descriptor = unsafe { bpf(command, attributes) }?;
    // SAFETY: the descriptor is open and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// # Safety
/// `attributes` must have the layout that `command` requires, and valid pointers.
pub(super) unsafe fn bpf<T>(command: c_int, attributes: &T) -> io::Result<RawFd> {
    let length = size_of::<T>();
    // SAFETY: the kernel reads `length` bytes, and the rest is as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), length) };
    let result = result as c_int;
    check(result)?;
    Ok(result)
}

/// # Safety
/// As [`bpf`], for a command that writes its attributes.
pub(super) unsafe fn bpf_mut<T>(command: c_int, attributes: &mut T) -> io::Result<RawFd> {
    let length = size_of::<T>();
    // SAFETY: the kernel reads and writes `length` bytes, and the rest is as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), length) };
    let result = result as c_int;
    check(result)?;
    Ok(result)
}

/// Truncates a name to 15 bytes and pads it with zeros.
fn padded(name: &str) -> [u8; NAME_LENGTH] {
    let mut padded = [0; NAME_LENGTH];
    let length = name.len().min(NAME_LENGTH - 1);
    padded[..length].copy_from_slice(&name.as_bytes()[..length]);
    padded
}
