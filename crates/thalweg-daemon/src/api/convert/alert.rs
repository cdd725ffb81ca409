//! Alert rules.

use thalweg_api::Alert;

use crate::alerts::{self, AlertCounts};

/// Converts a rule.
pub fn alert(alert: &alerts::Alert) -> Alert {
    let config = alert.config();
    let AlertCounts { sent, lost, failures } = alert.counts();
    Alert {
        name: config.name.clone(),
        types: config.types.clone(),
        link: config.link.clone(),
        collector: config.collector.clone(),
        webhook: config.webhook.origin(),
        sent,
        lost,
        failures,
    }
}
