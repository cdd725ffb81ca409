//! Idle processors that do not sleep (PM QoS, Documentation/power/pm_qos_interface.rst of the kernel).

use std::fs::File;
use std::io::{self, Write as _};

/// The device that takes the longest time that processors may take to wake up.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// While a value of this type exists, idle processors of the machine poll for work instead of sleeping, so that threads wake up sooner: a
/// sleeping one takes some microseconds, and much longer in a virtual machine, whose processor then serves others. Costs power. Ends
/// with the process.
#[derive(Debug)]
pub struct Awake {
    _device: File,
}

impl Awake {
    /// Keeps the processors awake.
    ///
    /// # Errors
    /// If the process is not root, or the kernel lacks the device.
    pub fn keep() -> io::Result<Awake> {
        let mut device = File::options().write(true).open(DEVICE)?;
        // In microseconds, as a number of 32 bits.
        device.write_all(&0_i32.to_ne_bytes())?;
        Ok(Awake { _device: device })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn root_may_keep_the_processors_awake() {
        let may = nix::unistd::geteuid().is_root() && Path::new(DEVICE).exists();
        let kept = Awake::keep();
        assert!(kept.is_ok() || !may, "{kept:?}");
    }
}
