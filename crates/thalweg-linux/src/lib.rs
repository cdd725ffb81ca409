//! The interfaces of the Linux kernel that Thalweg uses, each behind one safe wrapper.

pub mod namespace;
pub mod socket;

pub use namespace::{Namespace, NamespaceError};
