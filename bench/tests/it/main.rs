//! A tiny version of every benchmark, so that none rots.

mod ns3;
mod tiny;
