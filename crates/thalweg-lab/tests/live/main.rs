//! Labs on this machine: each test makes its own and removes it. Needs root, ip(8), ping(8) and a build with the switch
//! program; otherwise every test says that it is skipped.

#![expect(unsafe_code, reason = "frames written to a packet socket")]

mod faults;
mod leftovers;
mod ovs;
mod setup;
mod switching;
mod timing;
