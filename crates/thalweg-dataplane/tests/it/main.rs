//! Sketches in the kernel: their state is that of user space, and frames are never harmed.

mod equality;
mod frames;
mod harness;
mod live;
mod verified;
mod wire;
