//! Fabrics of switches in memory.

mod fabric;
pub(crate) mod table_switch;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use thalweg_wire::Nanos;
use thalweg_wire::openflow::{DatapathId, PortNumber};

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);
/// Maximum time of any step on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
