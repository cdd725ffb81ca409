//! The C interface of the sketches: `libthalweg_sketch` and its header.
//!
//! Switches and other programs count their packets with it, in their forwarding thread. [`options`] says what a
//! [`sketch`] is, [`update`] counts, [`query`] answers, [`save`] exchanges states with other programs of Thalweg. `include/`
//! has the header, which is made from these modules.
//!
//! No panic crosses the border: [`status::guarded`] turns it into a status. Pointers come from another language, so every
//! function states what they must point to, and refuses null.

#![expect(unsafe_code, reason = "functions with C linkage, whose arguments point to the caller's memory")]

pub mod options;
pub mod query;
pub mod save;
pub mod sketch;
pub mod status;
pub mod update;
