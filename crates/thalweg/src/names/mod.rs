//! Names of hosts and of services, for people who read addresses and ports.
//!
//! | file | contents |
//! |---|---|
//! | `cache` | names of addresses, bounded, each for some time |
//! | `resolver` | reverse DNS in background threads |
//! | `services` | names of ports from `/etc/services` |
//!
//! See decision 77.

mod cache;
mod resolver;
mod services;

pub(crate) use resolver::{HostNames, Resolver};
pub(crate) use services::Services;
