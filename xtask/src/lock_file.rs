//! Lock file of cargo: the packages that it names (pure).

/// A package of a lock file.
pub struct LockedPackage<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// Of what a registry has; what is built from a folder has none.
    pub checksum: Option<&'a str>,
}

/// The packages of a lock file, in its order.
pub fn packages(lock: &str) -> impl Iterator<Item = LockedPackage<'_>> {
    lock.split("[[package]]").filter_map(|entry| {
        let value = |key: &str| {
            let mut lines = entry.lines();
            let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"'))
        };
        // The head of the file has a version, and no name.
        Some(LockedPackage {
            name: value("name")?,
            version: value("version")?,
            checksum: value("checksum"),
        })
    })
}
