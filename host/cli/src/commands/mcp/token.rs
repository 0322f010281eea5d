//! The file that holds the token of `capsule mcp --http`.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use capsule_api::Secret;

use crate::Failure;

/// Characters of the shortest token that is taken: 128 bits in base64.
const SHORTEST: usize = 22;
/// Bytes of the longest file that is read.
const LONGEST: u64 = 4096;

/// What to do about a file that does not serve.
const OTHER_FILE: &str =
    "Name another file with `--token-file`, or remove this one: where there is none, it is made with a new token.";

/// The token in this file. Where there is no such file it is made, readable by its owner alone, with a new token.
pub(super) fn read_or_make(path: &Path) -> Result<Secret, Failure> {
    let refuse = |what: &str, error: &io::Error| {
        let message = format!("the token file {} cannot be {what}: {error}", path.display());
        Failure::usage(message, OTHER_FILE)
    };
    match fs::File::open(path) {
        Ok(file) => {
            let mode = file
                .metadata()
                .map_err(|error| refuse("read", &error))?
                .permissions()
                .mode();
            if mode & 0o077 != 0 {
                let path = path.display();
                let message = format!("the token file {path} can be read by others");
                let hint =
                    format!("Close it to them: `chmod 600 {path}`; if they may have read it, remove it instead.");
                return Err(Failure::usage(message, hint));
            }
            let mut text = String::new();
            file.take(LONGEST)
                .read_to_string(&mut text)
                .map_err(|error| refuse("read", &error))?;
            checked(text.trim()).map_err(|what| {
                let message = format!("the token file {} holds no token: {what}", path.display());
                Failure::usage(message, OTHER_FILE)
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(|error| refuse("written", &error)),
        Err(error) => Err(refuse("read", &error)),
    }
}

fn checked(text: &str) -> Result<Secret, String> {
    if text.len() < SHORTEST {
        return Err(format!(
            "it has {} characters, and {SHORTEST} are the fewest that keep strangers out",
            text.len()
        ));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has characters that a header cannot carry".into());
    }
    Ok(Secret::new(text))
}

fn make(path: &Path) -> io::Result<Secret> {
    // 244 random bits, from the operating system.
    let (first, second) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    let token = format!("{}{}", first.simple(), second.simple());
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // New, so that nothing that somebody else put there is written through.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(Secret::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Result<String, String> {
        match read_or_make(path) {
            Ok(token) => Ok(token.expose().to_owned()),
            Err(Failure::Error(error)) => Err(error.message.clone()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_token_is_private_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/token");
        let made = read(&path).unwrap();
        assert_eq!(
            (made.len(), fs::metadata(&path).unwrap().permissions().mode() & 0o777),
            (64, 0o600)
        );
        assert_eq!(read(&path), Ok(made.clone()));
        assert_ne!(read(&dir.path().join("other")), Ok(made));
    }

    #[test]
    fn a_file_that_others_read_or_that_holds_no_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for (text, mode, what) in [
            ("0123456789abcdefghijkl", 0o644, "can be read by others"),
            ("short", 0o600, "it has 5 characters"),
            ("0123456789 abcdefghijkl", 0o600, "a header cannot carry"),
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let message = read(&path).unwrap_err();
            assert!(message.contains(what), "{message}");
            assert!(!message.contains(text), "{message}");
        }
        fs::write(&path, "0123456789abcdefghijkl\n").unwrap();
        assert_eq!(read(&path), Ok("0123456789abcdefghijkl".into()));
    }
}
