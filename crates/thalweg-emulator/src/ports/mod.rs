//! Ports of a router and the links behind them.
//!
//! | module | contents |
//! |---|---|
//! | `lane` | links as delay lines |
//! | `port` | the sending side of a link |
//! | `impairment` | random loss and jitter of a link |
//! | `tally` | what is counted at a port |
//! | `queue_span` | mean and maximum of a queue over a time |
//! | `monitor` | mirrored ports and the monitor port that their copies go to |

pub(crate) mod impairment;
pub mod lane;
pub mod monitor;
pub mod port;
pub mod queue_span;
pub mod tally;
