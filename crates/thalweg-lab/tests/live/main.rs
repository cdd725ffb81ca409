//! Tests on real labs: each test creates and removes its own. They need root, ip(8), ping(8) and a build with the
//! switch program; otherwise every test reports that it is skipped.

#![expect(unsafe_code, reason = "frames written to a packet socket")]

mod faults;
mod leftovers;
mod ovs;
mod setup;
mod switching;
mod timing;
