//! The disk of a directory.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its name in `/proc/diskstats`, such as `sda1`.
    pub name: String,
    /// Type of the file system of the directory.
    pub file_system: String,
}

impl Disk {
    /// Returns the device of a directory; an empty name if the file system has none, such as one of the network.
    ///
    /// # Errors
    /// If the directory does not exist, or `/proc` cannot be read.
    pub fn of(directory: &Path) -> io::Result<Disk> {
        let device = fs::metadata(directory)?.dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let wanted = format!("{major}:{minor}");
        // ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS] - TYPE SOURCE ... (proc_pid_mountinfo(5))
        let file_system = mounts.lines().find_map(|line| {
            let (mount, source) = line.split_once(" - ")?;
            (mount.split(' ').nth(2)? == wanted).then(|| source.split(' ').next())?
        });
        let devices = fs::read_to_string("/proc/diskstats")?;
        let name = devices.lines().find_map(|line| {
            let mut fields = line.split_whitespace();
            let numbers = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (numbers == (major, minor)).then(|| fields.next())?
        });
        Ok(Disk {
            name: name.unwrap_or_default().to_owned(),
            file_system: file_system.unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_directory_has_the_file_system_of_its_mount() {
        let disk = Disk::of(Path::new("/")).unwrap();
        assert!(!disk.file_system.is_empty(), "{disk:?}");
        let proc = Disk::of(Path::new("/proc")).unwrap();
        assert_eq!((proc.name.as_str(), proc.file_system.as_str()), ("", "proc"));
        assert!(Disk::of(Path::new("/does/not/exist")).is_err());
    }
}
