//! libfaketime, by which `chaos` sets the clocks of the processes under test.

use std::path::Path;

use crate::packages::Package;

/// Where Debian keeps libraries; a folder per architecture lies between.
const LIBRARIES: &str = "/usr/lib";

/// The library, which `chaos` looks for at the same place.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

const PACKAGES: [Package; 1] = [Package::named("libfaketime")];

/// System packages that are due because the library is missing.
pub fn packages_needed() -> &'static [Package] {
    if is_under(Path::new(LIBRARIES)) {
        &[]
    } else {
        &PACKAGES
    }
}

fn is_under(libraries: &Path) -> bool {
    let folders = libraries.read_dir().into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join(LIBRARY))
        .any(|library| library.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_library_is_found_whatever_the_architecture() {
        let folder = std::env::temp_dir().join(format!("xtask-faketime-{}", std::process::id()));
        let library = folder.join("some-linux-gnu").join(LIBRARY);
        fs::create_dir_all(library.parent().expect("has one")).expect("is writable");
        assert!(!is_under(&folder));
        fs::write(library, "").expect("the folder is ours");
        assert!(is_under(&folder));
        fs::remove_dir_all(&folder).expect("the folder is ours");
    }
}
