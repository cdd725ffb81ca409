//! Bytes of other people's programs, and bytes for them.

mod flow_export_foreign;
mod openflow_os_ken;
