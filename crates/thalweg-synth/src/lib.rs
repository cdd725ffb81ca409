//! Traces and flow records with known truth.
//!
//! | module | what it has |
//! |---|---|
//! | [`trace`] | packets of a backbone link as a pcap file, with planted cheetah flows |
//! | [`records`] | flow records of a research network's routers, with planted transfers |

mod random;
pub mod records;
pub mod trace;
