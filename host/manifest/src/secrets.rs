//! `${NAME}` from the environment and `.env`, and the values that nobody may see.

use std::{
    borrow::Cow,
    collections::HashMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{OnceLock, PoisonError, RwLock},
};

use capsule_api::{Error, Secret, Secrets};

use crate::{
    codes,
    dotenv::{self, is_name},
    files::{self, Unreadable},
    redact::Patterns,
};

type Lookup = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The variables of a capsule: the process's environment first, then the file `.env` beside the manifest, read at the first name that the
/// environment does not have. `.env` never changes the environment itself, so no child process inherits it.
///
/// Expansion is not recursive: what a variable holds is taken as it is. `$${` stands for `${`; a `$` before anything else stands for itself.
/// `${NAME:-default}` takes the default where the variable is unset or empty; a default ends at the first `}`.
pub struct EnvSecrets {
    dotenv: PathBuf,
    environment: Lookup,
    file: OnceLock<Result<HashMap<String, String>, Error>>,
    protected: RwLock<Patterns>,
}

impl fmt::Debug for EnvSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvSecrets")
            .field("dotenv", &self.dotenv)
            .finish_non_exhaustive()
    }
}

impl EnvSecrets {
    /// The variables of the capsule in directory `base`, over the environment of this process. Reads nothing yet.
    pub fn new(base: &Path) -> Self {
        Self::with_environment(base, |name| std::env::var_os(name))
    }

    /// The same over another environment.
    pub fn with_environment(
        base: &Path,
        environment: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        Self {
            dotenv: base.join(".env"),
            environment: Box::new(environment),
            file: OnceLock::new(),
            protected: RwLock::default(),
        }
    }

    fn lookup(&self, name: &str) -> Result<Option<String>, Error> {
        if let Some(value) = (self.environment)(name) {
            let text = value.into_string();
            return text.map(Some).map_err(|_| {
                Error::new(
                    &codes::VARIABLE_NOT_TEXT,
                    format!("the variable `{name}` is not UTF-8 text"),
                )
            });
        }
        let file = self.file.get_or_init(|| read(&self.dotenv)).as_ref();
        Ok(file.map_err(Clone::clone)?.get(name).cloned())
    }

    fn variable(&self, inside: &str) -> Result<String, Error> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            let message =
                "a name between `${` and `}` may have only letters, digits and `_`, and may not begin with a digit";
            return Err(Error::new(&codes::VARIABLE_SYNTAX, message));
        }
        let value = self.lookup(name)?;
        match (value, default) {
            (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                let error = Error::new(&codes::VARIABLE_UNSET, format!("the variable `{name}` is not set"));
                let hint = format!(
                    "Export {name}, or write `{name}=…` into {}; `${{{name}:-…}}` would give it a default.",
                    self.dotenv.display()
                );
                Err(error.hint(hint).with("variable", name))
            }
        }
    }
}

fn read(path: &Path) -> Result<HashMap<String, String>, Error> {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(Unreadable::Missing) => return Ok(HashMap::new()),
        Err(other) => {
            let message = format!("{}: {other}", path.display());
            return Err(Error::new(&codes::DOTENV, message));
        }
    };
    let pairs = dotenv::parse(&text).map_err(|malformed| {
        let message = format!("{}:{}: {}", path.display(), malformed.line, malformed.why);
        Error::new(&codes::DOTENV, message)
    })?;
    Ok(pairs.into_iter().collect())
}

impl Secrets for EnvSecrets {
    fn expand(&self, text: &str) -> Result<String, Error> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            expanded.push_str(&rest[..dollar]);
            rest = &rest[dollar..];
            if let Some(after) = rest.strip_prefix("$${") {
                expanded.push_str("${");
                rest = after;
            } else if let Some(after) = rest.strip_prefix("${") {
                let (inside, after) = after
                    .split_once('}')
                    .ok_or_else(|| Error::new(&codes::VARIABLE_SYNTAX, "a `${` has no closing `}`"))?;
                expanded.push_str(&self.variable(inside)?);
                rest = after;
            } else {
                expanded.push('$');
                rest = &rest[1..];
            }
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn protect(&self, secret: &Secret) {
        let mut protected = self.protected.write().unwrap_or_else(PoisonError::into_inner);
        protected.add(secret.expose());
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.protected
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .redact(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(dir: &Path) -> EnvSecrets {
        EnvSecrets::with_environment(dir, |name| match name {
            "KEY" => Some("sk-from-the-environment".into()),
            "NESTED" => Some("${KEY}".into()),
            "EMPTY" => Some("".into()),
            _ => None,
        })
    }

    fn nowhere() -> EnvSecrets {
        secrets(Path::new("/nonexistent"))
    }

    #[test]
    fn variables_expand_once_with_defaults_and_an_escape() {
        let cases = [
            ("Bearer ${KEY}!", "Bearer sk-from-the-environment!"),
            ("${NESTED}", "${KEY}"),
            ("${NO:-fall back}", "fall back"),
            ("${NO:-}", ""),
            ("${EMPTY:-x}${EMPTY}", "x"),
            ("$${KEY} $KEY $ $$ a$", "${KEY} $KEY $ $$ a$"),
            ("$$${KEY}", "$${KEY}"),
        ];
        for (text, expected) in cases {
            assert_eq!(nowhere().expand(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_unset_variable_is_named_with_a_way_out() {
        let error = nowhere().expand("${API_KEY}").unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("manifest-variable-unset", "the variable `API_KEY` is not set")
        );
        assert_eq!(
            error.hint,
            "Export API_KEY, or write `API_KEY=…` into /nonexistent/.env; `${API_KEY:-…}` would give it a default."
        );
    }

    #[test]
    fn a_malformed_variable_is_an_error() {
        for text in ["${", "${KEY", "${}", "${1}", "${A B}", "${A-b}"] {
            assert_eq!(
                nowhere().expand(text).unwrap_err().code,
                "manifest-variable-syntax",
                "{text}"
            );
        }
    }

    #[test]
    fn dotenv_fills_in_what_the_environment_lacks() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".env"), "KEY=from-the-file\nOTHER=\"of the file\"\n").unwrap();
        let secrets = secrets(dir.path());
        assert_eq!(
            secrets.expand("${KEY} ${OTHER}").unwrap(),
            "sk-from-the-environment of the file"
        );
    }

    #[test]
    fn dotenv_is_read_only_when_a_name_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".env");
        std::fs::write(&file, "fine=1\nsk-secret-without-a-name\n").unwrap();
        let secrets = secrets(dir.path());
        assert_eq!(secrets.expand("${KEY}").unwrap(), "sk-from-the-environment");
        let error = secrets.expand("${fine}").unwrap_err();
        assert_eq!(error.code, "manifest-dotenv");
        assert_eq!(
            error.message,
            format!("{}:2: expected `NAME=value`; there is no `=`", file.display())
        );
    }

    #[test]
    fn a_protected_value_is_shown_nowhere() {
        let secrets = nowhere();
        secrets.protect(&Secret::new("sk-very-secret"));
        assert_eq!(secrets.redact("key=sk-very-secret;"), "key=[redacted];");
        assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
        assert!(!format!("{secrets:?}").contains("very"));
    }

    proptest! {
        #[test]
        fn any_text_expands_or_is_refused(text in "[$}{:A-Z\\-a ö]*") {
            let _ = nowhere().expand(&text);
        }

        #[test]
        fn text_without_a_variable_stays_as_it_is(text in "[^$]*") {
            prop_assert_eq!(nowhere().expand(&text).unwrap(), text);
        }

        #[test]
        fn escaped_text_comes_back(text: String) {
            let escaped = text.replace("${", "$${");
            prop_assert_eq!(nowhere().expand(&escaped).unwrap(), text);
        }
    }
}
