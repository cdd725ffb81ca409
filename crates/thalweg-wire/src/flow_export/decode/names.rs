//! Names of interfaces, VRFs and the exporter, which exporters report in options records.
//!
//! | element | meaning |
//! |---|---|
//! | `interfaceName` 82, `interfaceDescription` 83 | the name of the interface that the record describes, and what its operator calls it; the name takes precedence |
//! | `ingressInterface` 10, `egressInterface` 14, the scope "interface" of NetFlow v9 | that interface |
//! | `VRFname` 236 | the name of the VRF that the record describes |
//! | `ingressVRFID` 234, `egressVRFID` 235 | that VRF |
//! | `observationDomainName` 300 | the name of the exporter, or of its part |
//!
//! A row has the names that are known when it arrives, and none before; a name that changes applies to later rows. Names
//! of observation domain 0 apply to all domains of the exporter that have none of their own for a number, because a
//! message about the whole exporter has that domain (RFC 7011 section 3.1).

use std::collections::BTreeMap;

use super::error::DecodeErrorKind;
use super::field::Field;
use super::held::Budget;
use super::reader::Reader;
use crate::flow_export::{Name, RecordBatch};

/// The names of an observation domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    exporter: Name,
    interfaces: BTreeMap<u32, Name>,
    vrfs: BTreeMap<u32, Name>,
}

/// What an options record names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameOptions<'a> {
    interface: Option<u32>,
    vrf: Option<u32>,
    interface_name: &'a [u8],
    interface_description: &'a [u8],
    vrf_name: &'a [u8],
    domain_name: &'a [u8],
}

/// The result of learning from an options record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    /// Names that are new or have changed.
    pub(super) changed: u64,
    /// Names beyond the limits.
    pub(super) refused: u64,
}

impl<'a> NameOptions<'a> {
    /// Adds a field of the record.
    pub(super) fn field(&mut self, field: Field, bytes: &'a [u8]) {
        if field.enterprise != 0 {
            return;
        }
        let number = || <[u8; 4]>::try_from(bytes).map(u32::from_be_bytes).ok().or_else(|| short(bytes));
        match field.id {
            10 | 14 => self.interface = number().filter(|&number| number > 0).or(self.interface),
            234 | 235 => self.vrf = number().or(self.vrf),
            82 => self.interface_name = bytes,
            83 => self.interface_description = bytes,
            236 => self.vrf_name = bytes,
            300 => self.domain_name = bytes,
            _ => {}
        }
    }
}

/// Returns a number of fewer than four bytes (RFC 7011 section 6.2).
fn short(bytes: &[u8]) -> Option<u32> {
    let is_short = (1..4).contains(&bytes.len());
    is_short.then(|| bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

impl Names {
    /// The number of names of interfaces and VRFs.
    pub(super) fn len(&self) -> usize {
        self.interfaces.len() + self.vrfs.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0 && !self.exporter.is_some()
    }

    /// Stores the names of an options record within the budget.
    pub(super) fn learn(&mut self, options: &NameOptions<'_>, budget: &mut Budget) -> Learnt {
        let mut learnt = Learnt::default();
        let text = |bytes: &[u8]| Name::of_bytes(bytes);
        if let Some(interface) = options.interface {
            let named = match text(options.interface_name) {
                Some(Name::NONE) => text(options.interface_description),
                named => named,
            };
            learnt += insert(&mut self.interfaces, interface, named, budget);
        }
        if let Some(vrf) = options.vrf {
            learnt += insert(&mut self.vrfs, vrf, text(options.vrf_name), budget);
        }
        match text(options.domain_name) {
            None => learnt.refused += 1,
            Some(name) if name.is_some() && name != self.exporter => {
                self.exporter = name;
                learnt.changed += 1;
            }
            Some(_) => {}
        }
        learnt
    }

    /// Removes all names, and returns their memory to the budget.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        budget.used = budget.used.saturating_sub(self.len());
        *self = Names::default();
    }

    /// Fills the names of rows from `first`: these, else those of the whole exporter.
    pub(super) fn apply(&self, whole: Option<&Names>, first: usize, rows: &mut RecordBatch) {
        let none = Names::default();
        let whole = whole.unwrap_or(&none);
        if self.is_empty() && whole.is_empty() {
            return;
        }
        let exporter = if self.exporter.is_some() { self.exporter } else { whole.exporter };
        if exporter.is_some() {
            rows.exporter_name.values_mut()[first..].fill(exporter);
        }
        let interface = |number: u32| find(number, &self.interfaces, &whole.interfaces);
        // 0 also stands for a VRF that the exporter did not report.
        let vrf = |number: u32| if number == 0 { Name::NONE } else { find(number, &self.vrfs, &whole.vrfs) };
        for row in first..rows.len() {
            let (ingress, egress) = (rows.ingress_interface[row], rows.egress_interface[row]);
            rows.ingress_interface_name.set(row, interface(ingress));
            rows.egress_interface_name.set(row, interface(egress));
            let (ingress, egress) = (rows.ingress_vrf_id.get(row), rows.egress_vrf_id.get(row));
            rows.ingress_vrf_name.set(row, vrf(ingress));
            rows.egress_vrf_name.set(row, vrf(egress));
        }
    }

    /// Appends the names for [`SavedSession`](super::SavedSession): the exporter's, then of interfaces and of VRFs a u32
    /// with their number, and each as u32 and its name. A name is a u8 with its length, and its bytes.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        let name = |name: Name, into: &mut Vec<u8>| {
            into.push(name.text().len() as u8);
            into.extend(name.text().as_bytes());
        };
        name(self.exporter, into);
        for names in [&self.interfaces, &self.vrfs] {
            into.extend((names.len() as u32).to_be_bytes());
            for (number, &of_number) in names {
                into.extend(number.to_be_bytes());
                name(of_number, into);
            }
        }
    }

    /// Decodes what [`Names::encode`] appended. Names beyond the limit of the process are left out.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Names, DecodeErrorKind> {
        let name = |reader: &mut Reader<'_>| -> Result<Name, DecodeErrorKind> {
            let length = reader.u8()?;
            Ok(Name::of_bytes(reader.take(length.into())?).unwrap_or_default())
        };
        let mut names = Names { exporter: name(reader)?, ..Names::default() };
        for of_kind in [&mut names.interfaces, &mut names.vrfs] {
            for _ in 0..reader.u32()? {
                of_kind.insert(reader.u32()?, name(reader)?);
            }
        }
        Ok(names)
    }
}

impl std::ops::AddAssign for Learnt {
    fn add_assign(&mut self, other: Learnt) {
        self.changed += other.changed;
        self.refused += other.refused;
    }
}

/// Stores a name, unless the text is empty.
fn insert(names: &mut BTreeMap<u32, Name>, number: u32, name: Option<Name>, budget: &mut Budget) -> Learnt {
    let Some(name) = name else { return Learnt { refused: 1, ..Learnt::default() } };
    let known = names.get_mut(&number);
    match known {
        _ if !name.is_some() => Learnt::default(),
        Some(known) => {
            let before = std::mem::replace(known, name);
            Learnt { changed: u64::from(before != name), refused: 0 }
        }
        None if budget.used >= budget.limit => Learnt { refused: 1, ..Learnt::default() },
        None => {
            budget.used += 1;
            names.insert(number, name);
            Learnt { changed: 1, refused: 0 }
        }
    }
}

/// Returns the name of a number; 0 is no interface and the default VRF, which only has a name if that was reported.
fn find(number: u32, own: &BTreeMap<u32, Name>, whole: &BTreeMap<u32, Name>) -> Name {
    own.get(&number).or_else(|| whole.get(&number)).copied().unwrap_or_default()
}
