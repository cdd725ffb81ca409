//! Tests of the whole program.

mod api;
mod cli;
mod collect;
mod dashboard;
mod dpdk_forward;
mod dpdk_port;
mod emulate;
mod encapsulations;
#[cfg(target_os = "linux")]
mod endpoint;
mod exporters;
mod flow_export;
mod flow_filter;
mod flows;
mod foreign_captures;
mod frames;
#[path = "../../../../fuzz/src/lib.rs"]
pub mod fuzz;
mod fuzz_corpus;
mod in_kernel;
mod json_reference;
mod lab;
mod lab_emulated;
mod lab_lines;
mod live;
mod live_interface;
mod live_iperf3;
mod open_vswitch;
mod program;
mod real_time_lines;
mod reference;
mod serve;
mod sketch;
mod watch_files;
mod watch_tables;
mod watch_tasks;
