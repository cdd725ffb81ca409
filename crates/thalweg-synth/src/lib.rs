//! Synthetic packet traces and flow records with ground truth.
//!
//! | module | contents |
//! |---|---|
//! | [`trace`] | packets of a backbone link as a pcap file, with planted cheetah flows |
//! | [`records`] | flow records of a research network's routers, with planted transfers |

mod random;
pub mod records;
pub mod trace;
