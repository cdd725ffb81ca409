//! How the hosts of an emulated lab use TCP.

use super::{Algorithm, LabTcp};
use crate::error::LabError;
use crate::plan::PlanError;
use crate::sysctl::{self, SysctlChange};

/// How the hosts of an emulated lab use TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTcp {
    /// The congestion control of all connections that choose no other: one of the kernel, or `dctcp` or `htcp`, which the lab registers
    /// as an eBPF program if the kernel lacks it.
    pub congestion_control: String,
    /// Whether connections ask for ECN. DCTCP needs it.
    pub ecn: bool,
}

/// A congestion control that the kernel has. One in eBPF is registered as long as this value exists, and longer in namespaces whose
/// default it has become meanwhile: they keep it until they are removed.
#[derive(Debug)]
pub(crate) struct ProvidedTcp {
    /// The kernel's name of it.
    pub(crate) name: String,
    /// Whether connections ask for ECN.
    pub(crate) ecn: bool,
    /// The change of the machine that lets namespaces use it, if one is needed.
    pub(crate) changed: Option<SysctlChange>,
    _registered: Option<LabTcp>,
}

impl Default for HostTcp {
    /// CUBIC without ECN, as in a lab with switches.
    fn default() -> HostTcp {
        HostTcp { congestion_control: "cubic".to_owned(), ecn: false }
    }
}

impl HostTcp {
    /// Makes the congestion control available.
    ///
    /// # Errors
    /// If the kernel has none of this name, or refuses the eBPF program.
    pub(crate) fn provide(&self) -> Result<ProvidedTcp, LabError> {
        let (name, ecn) = (self.congestion_control.clone(), self.ecn);
        if sysctl::congestion_controls()?.contains(&name) {
            let changed = Some(SysctlChange::to_allow(&name)?);
            return Ok(ProvidedTcp { name, ecn, changed, _registered: None });
        }
        let algorithm = match name.as_str() {
            "dctcp" => Algorithm::Dctcp,
            "htcp" => Algorithm::HTcp,
            _ => return Err(PlanError::CongestionControl { name }.into()),
        };
        let registered = LabTcp::register(algorithm)?;
        Ok(ProvidedTcp {
            name: registered.name().to_owned(),
            ecn,
            changed: None,
            _registered: Some(registered),
        })
    }
}
