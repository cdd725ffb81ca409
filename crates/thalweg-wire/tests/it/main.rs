//! Interoperability tests with foreign data and programs.

mod flow_export_foreign;
mod openflow_os_ken;
