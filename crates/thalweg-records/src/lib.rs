//! Flow records: from routers' exports to what moved through the network.
//!
//! | module | what it has |
//! |---|---|
//! | [`analyse`] | flow reconstruction and parallel flowsets over stored records, in bounded memory |

pub mod analyse;
