//! Ports of a router and the links behind them.
//!
//! | module | contents |
//! |---|---|
//! | `lane` | links as delay lines |
//! | `port` | the sending side of a link |
//! | `impairment` | random loss and jitter of a link |
//! | `tally` | what is counted at a port |
//! | `monitor` | mirrored ports and the monitor port that their copies go to |

pub(crate) mod impairment;
pub mod lane;
pub mod monitor;
pub mod port;
pub mod tally;
