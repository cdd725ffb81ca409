//! Flow records: from routers' exports to what moved through the network.
//!
//! | module | what it has |
//! |---|---|

