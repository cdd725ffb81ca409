//! The C interface, from programs in C, C++ and Go.

#![cfg(target_os = "linux")]

mod arguments;
mod programs;
